//! `narrows get`, `put`, `ls`, `key`: files over rrtp or TCP.

mod local;
pub use local::date;
mod observed;
mod open;
pub use open::pin;
mod options;
pub use options::{client_key, known_servers, server_key};
mod progress;
mod spool;

use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use crate::local_paths::shares;
use crate::record::RecordArgs;
use crate::terminal::{self, STOP, catch_interrupt, print, print_json_line};
use crate::transport::Reconfigure;
use clap::Args;
use narrows_files::client::{self, Summary};
use narrows_files::message::EntryKind;
use narrows_files::{Replace, Scheme, TransferControl, Url};
use narrows_lab::options::RARE;
use narrows_net::tap::Tap;
use narrows_peers::{Error, ErrorKind, error, key};
use observed::{record, shown};
use open::OpenSession;
use options::{TransferOptions, own_key};
use progress::TransferProgress;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub const GET: &str = "\
A URL is rrtp://HOST:PORT/PATH, over UDP, or tcp://HOST:PORT/PATH, over the
kernel's TCP; the default port is 47470. If it ends with /, it is a folder,
which is transferred with its contents. KEY@ before the host names the server's
key; without it the key is pinned at the first connection.

A file gets its final name when it is complete and its hash is correct. Until
then its bytes are in .NAME.narrows-part, and the same command resumes the
transfer. An existing file with the name is kept, unless you give --overwrite or
confirm.

Without -o the file or folder gets its own name in the current folder. -o NAME
gives it that name; -o DIR/ or -o . puts it into that folder under its own name.

Examples:
  narrows get rrtp://host/movie.mkv
  narrows get tcp://host/photos/ --protocol tcp+bbr    into ./photos
  narrows get rrtp://host/photos/ -o /tmp/             into /tmp/photos
  narrows get rrtp://host/movie.mkv --rate 20Mbit/s --rtt 600ms --loss 1%
  narrows get rrtp://host/movie.mkv --path eth0 --path wwan0    over both
  narrows get rrtp://host/movie.mkv --reconfigure 30s:rate=384kbit/s";

pub const PUT: &str = "\
If the URL ends with /, the file or folder is put there under its own name;
otherwise the URL names it. The server must permit it (narrows serve
--allow-put), and by default accepts only new names. The same command resumes an
interrupted transfer. A file gets its final name when it is complete and its
hash is correct. DIR/. means the contents of the folder, not the folder itself.
The standard input (-) and a pipe are put as a file that the URL names.

Examples:
  narrows put movie.mkv rrtp://host/
  narrows put photos rrtp://host/       makes photos there
  narrows put *.jpg photos rrtp://host/album/     several, in one transfer
  tar c photos | narrows put - rrtp://host/photos.tar     standard input
  narrows put photos rrtp://host/old    makes old there, with photos' contents
  narrows put photos/. rrtp://host/     the contents of photos, without a folder";

#[derive(Args, Debug)]
pub struct Get {
    /// The file or folder, as rrtp://HOST:PORT/PATH or tcp://HOST:PORT/PATH
    #[arg(value_name = "URL")]
    pub url: String,
    /// Local path; with / at its end, a folder that receives it under its own name; - is the standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace existing local files
    #[arg(long)]
    pub overwrite: bool,
    /// Also get new hidden files when the local folder exists already
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub hidden: bool,
    #[command(flatten)]
    pub options: TransferOptions,
    #[command(flatten)]
    pub reconfigure: Reconfigure,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
}

#[derive(Args, Debug)]
#[command(override_usage = "narrows put [OPTIONS] <FILE>... <URL>")]
pub struct Put {
    /// Local files and folders (- is the standard input), and last the destination, as rrtp://HOST:PORT/PATH or
    /// tcp://HOST:PORT/PATH
    #[arg(value_name = "FILE", required = true)]
    pub operands: Vec<PathBuf>,
    #[command(flatten)]
    pub options: TransferOptions,
    #[command(flatten)]
    pub reconfigure: Reconfigure,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
}

#[derive(Args, Debug)]
pub struct Ls {
    /// The folder, as rrtp://HOST:PORT/PATH or tcp://HOST:PORT/PATH
    #[arg(value_name = "URL")]
    pub url: String,
    #[command(flatten)]
    pub options: TransferOptions,
}

#[derive(Args, Debug)]
pub struct KeyArgs {
    /// Print the server's key, not the client's
    #[arg(long)]
    pub server: bool,
    /// Forget the key of this server, HOST:PORT; the next connection pins a new one
    #[arg(long, value_name = "HOST:PORT")]
    pub forget: Option<String>,
    /// File of the key
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

/// `narrows key`.
///
/// # Errors
/// There is no such server, or a file cannot be read or written.
pub fn key(a: &KeyArgs) -> Result<(), Failure> {
    if let Some(server) = &a.forget {
        let (host, port) = narrows_files::url::host_port(server)
            .map_err(|e| Failure::Input(format!("--forget '{}': {e}", error::shown(server))))?;
        let name =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        if known_servers()?.forget(&name)? {
            return print(&format!("{name} is forgotten; its key is kept at the next meeting\n"));
        }
        return Err(Failure::Input(format!("--forget: {name} is not known")));
    }
    let name = if a.server { "server.key" } else { "client.key" };
    let identity = own_key(a.identity.as_deref(), name)?;
    print(&format!("{}\n", key::text(identity.public())))
}

/// `narrows ls`.
///
/// # Errors
/// One line that describes the error.
pub fn ls(a: &Ls) -> Result<(), Failure> {
    let url = Url::read(&a.url)?;
    catch_interrupt();
    let opened = open::open(&url, &a.options, open::TransferDirection::Get, None)?;
    let listing = opened.while_busy(|| client::list(opened.session(), &url.path))?;
    if a.options.json {
        let entries: Vec<Value> = listing
            .entries
            .iter()
            .map(|e| {
                let kind = if e.kind == EntryKind::File { "file" } else { "folder" };
                json!({"name": e.name, "kind": kind, "bytes": e.size, "modified": e.modified})
            })
            .collect();
        let all = json!({
            "entries": entries, "hidden": listing.hidden, "left_out": listing.left_out,
        });
        return print_json_line(&all);
    }
    let mut text = String::new();
    for e in &listing.entries {
        let slash = if e.kind == EntryKind::File { "" } else { "/" };
        let size = if slash.is_empty() { local::size(e.size) } else { String::new() };
        text +=
            &format!("{size:>10}  {}  {}{slash}\n", local::date(e.modified), error::shown(&e.name));
    }
    for line in &listing.left_out {
        text += &format!("cannot be got: {line}\n");
    }
    let unnamed = listing.hidden.saturating_sub(listing.left_out.len() as u64);
    if unnamed > 0 {
        text += &format!("and {unnamed} more that cannot be got\n");
    }
    print(&text)
}

/// `narrows get`.
///
/// # Errors
/// One line that describes the error; the final name is not created then.
pub fn get(a: &Get) -> Result<(), Failure> {
    let url = Url::read(&a.url)?;
    can_be_told(&url, &a.reconfigure)?;
    let target = local::target(&url, a.output.as_deref())?;
    let shown = shown(&a.live, "get", &url, &a.options)?;
    let recording = record(&a.record, "get", &url, &a.options)?;
    let tap = ShownConnections::beside(shown.as_ref(), recording.tap("client"));
    let done = recording.finish(get_over(a, &url, &target, tap));
    ShownConnections::finish(shown.filter(|_| done.is_ok()));
    done
}

fn get_over(
    a: &Get,
    url: &Url,
    target: &local::DownloadTarget,
    tap: Option<Arc<dyn Tap>>,
) -> Result<(), Failure> {
    catch_interrupt();
    let opened = open::open(url, &a.options, open::TransferDirection::Get, tap)?;
    let (control, progress) = going(&a.options, target.shown(), url.folder);
    let asking = Arc::clone(&progress);
    let replace = match (a.overwrite, terminal::is_there()) {
        (true, _) => Replace::Always,
        (false, true) => Replace::Ask(Box::new(move |name| {
            asking.beside(|| {
                terminal::ask(&format!(
                    "{} is there already and is another file: replace it?",
                    error::shown(name)
                ))
            })
        })),
        (false, false) => Replace::Never,
    };
    let control = control.replacing(replace).with_hidden(a.hidden);
    let begun = Instant::now();
    let done = opened.watched(
        |silence| progress.tick(silence, || opened.unacknowledged(), &shares(&opened.carried())),
        &a.reconfigure,
        || {
            opened.while_busy(|| {
                progress.begin();
                opened.told_beside(|session| match target {
                    local::DownloadTarget::File(dir, name) => {
                        client::get(session, &url.path, dir, name, &control)
                    }
                    local::DownloadTarget::Folder(path) => {
                        let made = |mode| local::made(path, mode);
                        client::get_tree(session, &url.path, made, &control)
                    }
                    local::DownloadTarget::Output(spool, _) => {
                        client::get(session, &url.path, &spool.dir, spool::NAME, &control)
                    }
                })
            })
        },
    );
    progress.finish();
    let done = done.map_err(|e| folder_hint(e, &a.url))?;
    let is_stream = match target {
        local::DownloadTarget::Output(spool, None) => {
            spool.pass_on(std::io::stdout().lock())?;
            true
        }
        local::DownloadTarget::Output(spool, Some(pipe)) => {
            let failed = |e| Error::file(&error::shown(&pipe.display().to_string()), &e);
            let file = std::fs::File::options().write(true).open(pipe).map_err(failed)?;
            spool.pass_on(file)?;
            true
        }
        local::DownloadTarget::File(..) | local::DownloadTarget::Folder(_) => false,
    };
    let shown = target.shown();
    finish(&opened, &a.options, ("got", &shown, is_stream), &done, begun, &progress)
}

/// `narrows put`.
///
/// # Errors
/// One line that describes the error.
pub fn put(a: &Put) -> Result<(), Failure> {
    let Some((last, files)) = a.operands.split_last() else { return Ok(()) };
    let last = last.to_string_lossy();
    if files.is_empty() {
        let missing = if last.contains("://") { "file" } else { "destination" };
        let line = format!("put: the {missing} is missing: narrows put FILE rrtp://HOST:PORT/");
        return Err(Failure::Input(line));
    }
    let url = Url::read(&last)?;
    can_be_told(&url, &a.reconfigure)?;
    catch_interrupt();
    let source = local::source(files, &url)?;
    let shown = shown(&a.live, "put", &url, &a.options)?;
    let recording = record(&a.record, "put", &url, &a.options)?;
    let tap = ShownConnections::beside(shown.as_ref(), recording.tap("client"));
    let done = recording.finish(put_over(a, files, &url, &source, tap));
    ShownConnections::finish(shown.filter(|_| done.is_ok()));
    done
}

fn put_over(
    a: &Put,
    files: &[PathBuf],
    url: &Url,
    source: &local::UploadSource,
    tap: Option<Arc<dyn Tap>>,
) -> Result<(), Failure> {
    let opened = open::open(url, &a.options, open::TransferDirection::Put, tap)?;
    let shown = names(files);
    let (control, progress) =
        going(&a.options, shown.clone(), matches!(source, local::UploadSource::Folder(..)));
    let begun = Instant::now();
    let session = opened.session();
    let done = opened.watched(
        |silence| progress.tick(silence, || opened.unacknowledged(), &shares(&opened.carried())),
        &a.reconfigure,
        || {
            opened.while_busy(|| {
                progress.begin();
                match source {
                    local::UploadSource::File(dir, name, path) => {
                        client::put(session, dir, Path::new(name), path, &control)
                    }
                    local::UploadSource::Folder(tree, path) => {
                        client::put_tree(session, tree, path, &control)
                    }
                    local::UploadSource::Input(spool, path) => {
                        client::put(session, &spool.dir, Path::new(spool::NAME), path, &control)
                    }
                }
            })
        },
    );
    progress.finish();
    finish(&opened, &a.options, ("put", &shown, false), &done?, begun, &progress)
}

/// `a`, or `a and 2 more`.
fn names(files: &[PathBuf]) -> String {
    let first = files.first().map_or_else(String::new, |file| file.display().to_string());
    let first = error::shown(&first);
    match files.len().saturating_sub(1) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn can_be_told(url: &Url, reconfigure: &Reconfigure) -> Result<(), Failure> {
    match (url.scheme, reconfigure.reconfigure.is_empty()) {
        (Scheme::Tcp, false) => Err(Failure::Input(
            "--reconfigure is for rrtp: the kernel's TCP cannot be told; use an rrtp:// URL".into(),
        )),
        _ => Ok(()),
    }
}

fn going(
    options: &TransferOptions,
    what: String,
    folder: bool,
) -> (TransferControl, Arc<TransferProgress>) {
    let progress = Arc::new(TransferProgress::new(what, folder));
    let reported = Arc::clone(&progress);
    let naming = Arc::clone(&progress);
    let control = TransferControl::new(&STOP, options.hints.limit, move |step| reported.tell(step));
    (control.naming_left_out(move |line| naming.leave_out(line)), progress)
}

fn folder_hint(e: Error, url: &str) -> Error {
    if e.kind == ErrorKind::WrongType && e.line.ends_with("is a folder") {
        return e.and(&format!("to get it with all that is in it, say {}/", error::shown(url)));
    }
    e
}

/// Prints the result of a transfer, and stores the learned path.
fn finish(
    opened: &OpenSession,
    options: &TransferOptions,
    (verb, what, is_stream): (&str, &str, bool),
    done: &Summary,
    begun: Instant,
    progress: &TransferProgress,
) -> Result<(), Failure> {
    let seconds = begun.elapsed().as_secs_f64();
    let mbit = done.moved as f64 * 8e-6 / seconds.max(1e-9);
    // The transfer has succeeded, even if the path cannot be stored.
    if let Err(e) = opened.learn(&progress.delivered()) {
        terminal::note(&format!("narrows: --learn: this path is not stored: {e}"));
    }
    if options.json {
        let line = json!({
            "what": what, "bytes": done.bytes, "moved": done.moved, "seconds": seconds,
            "Mbit/s": mbit, "resumed_from": done.held, "files": done.files,
            "unchanged": done.unchanged, "skipped": done.skipped, "hidden": done.hidden,
            "protocol": opened.protocol(), "paths": opened.carried(),
        });
        // The standard output may carry the file.
        if is_stream {
            terminal::note(&line.to_string());
        } else {
            print_json_line(&line)?;
        }
        return all_taken(done);
    }
    let mut text = if done.unchanged == done.files && done.files > 0 {
        format!("{what} was there already, whole and the same: {}", local::size(done.bytes))
    } else {
        let of =
            if done.held > 0 { format!(" of {}", local::size(done.bytes)) } else { String::new() };
        let moved = local::size(done.moved);
        format!(
            "{verb} {what}: {moved}{of} in {seconds:.1} s, {}, {}",
            progress::rate(mbit),
            opened.protocol()
        )
    };
    let shares = shares(&opened.carried());
    if !shares.is_empty() {
        text += &format!("; {shares}");
    }
    if done.files != 1 {
        text += &format!("; {} files, {} of them there before", done.files, done.unchanged);
    }
    if done.skipped > 0 {
        text += &format!("; {} left out", done.skipped);
    }
    if done.hidden > 0 {
        text += &format!("; {} hidden left out (--hidden takes them along)", done.hidden);
    }
    if is_stream {
        terminal::note(&text);
    } else {
        print(&format!("{text}\n"))?;
    }
    all_taken(done)
}

/// Fails if entries of a folder were left out.
fn all_taken(done: &Summary) -> Result<(), Failure> {
    match done.skipped {
        0 => Ok(()),
        n => Err(Failure::Outside(format!(
            "{n} {} left out, named above; all else is whole",
            if n == 1 { "entry was" } else { "entries were" }
        ))),
    }
}
