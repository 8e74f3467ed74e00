//! `narrows serve`: serves a folder, for reading and, if permitted, for writing.

use crate::daemon::{self, catch_signals};
use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use crate::log::{Log, LogArgs, LogLevel};
use crate::metrics::MetricsArgs;
use crate::record::RecordArgs;
use crate::settings::{self, KeptSettings};
use crate::terminal::{STOP, print};
use crate::transfer::server_key;
use crate::transport::{Hints, TransportArgs, bare_number, bytes, rate};
use clap::Args;
use narrows_base::Rate;
use narrows_files::rrtp::{Permit, ServerControl};
use narrows_files::service::{AnsweredRequest, PATH_SHOWN, Permits};
use narrows_files::{Service, rrtp, tcp, url};
use narrows_lab::options::RARE;
use narrows_peers::access::AllowList;
use narrows_peers::learned::LearnedPaths;
use narrows_peers::{Error, ErrorKind, error, key};
use serde_json::{Map, Value};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Interval of searches for abandoned partial uploads.
const SWEEP: Duration = Duration::from_secs(3600);

pub const HELP: &str = "\
The folder is served by rrtp over UDP and by TCP, on the same port number. Every
host that can connect may read it; by default that is only this machine. With
--clients, only clients with a key in FILE are accepted: one key per line as
`narrows key` prints it; # begins a comment.

Over rrtp the server sends with the controller of the client's --protocol, if
that is driven by acknowledgements. Controllers that send at a rate given by the
receiver need --permit-rate-driven. If the server's own --protocol is not rrtp,
it applies to all clients.

With --allow-put clients may put files under new names. Incomplete files are in
.NAME.KEY.upload.narrows-part, one for each client, and are removed a week after
the last attempt.

The log has a line with the time for each request. It goes to the error stream
(with priorities for systemd's journal), or to --log FILE.

Examples:
  narrows serve .                                      for this machine
  narrows serve /srv/files --listen '[::]:47470'       for all hosts
  narrows serve . --live                               a page of connections
  narrows serve inbox --listen '[::]:47470' --allow-put --clients friends.txt";

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The folder to serve
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Listen at HOST:PORT; port 0 takes a free one [default: 127.0.0.1:47470]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Let clients put new files here
    #[arg(long)]
    pub allow_put: bool,
    /// Let clients also replace existing files
    #[arg(long)]
    pub overwrite: bool,
    /// Maximum size of a file
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub max_size: Option<u64>,
    /// Accept no more files when DIR holds this much
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub quota: Option<u64>,
    /// Maximum rate of each client, over all of its connections and in both directions together; without --clients, of
    /// each address
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub client_limit: Option<Rate>,
    /// Accept only clients with a key in this file; "all" accepts every client, as without this option
    #[arg(long, value_name = "FILE|all")]
    pub clients: Option<PathBuf>,
    /// Read flags and DIR from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// This server's key [default: server.key in the folder that `narrows key` names]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Store measured paths to clients, and begin with them when a client returns (rrtp)
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub learn: bool,
    /// Let clients choose protocols that send at a rate given by the client (tear-reliable, rrtp-lasthop, rrtp+tfrc,
    /// rrtp+fixed), up to this rate
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "RATE", value_parser = rate)]
    pub permit_rate_driven: Option<Rate>,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

/// The word for every client, instead of a file.
const ALL: &str = "all";

/// What a reload changes, but does not remove.
struct KeptPermits {
    clients: Option<PathBuf>,
    max_size: Option<u64>,
    quota: Option<u64>,
    client_limit: Option<Rate>,
}

impl KeptPermits {
    fn of(a: &ServeArgs) -> KeptPermits {
        KeptPermits {
            clients: a.clients.clone(),
            max_size: a.max_size,
            quota: a.quota,
            client_limit: a.client_limit,
        }
    }

    /// The permissions. Reads the list of clients by `read`.
    fn permits(
        &self,
        a: &ServeArgs,
        read: fn(&Path) -> Result<AllowList, Error>,
    ) -> Result<Permits, Failure> {
        let put = a.allow_put;
        let overwrite = a.overwrite;
        if !put && (overwrite || a.max_size.is_some() || a.quota.is_some()) {
            let line = "--overwrite, --max-size and --quota are for uploads: say --allow-put, too";
            return Err(Failure::Input(line.into()));
        }
        let list = self.clients.as_deref().filter(|list| *list != Path::new(ALL));
        let clients = list.map(read).transpose().map_err(|e| e.at("--clients"))?;
        Ok(Permits {
            put,
            overwrite,
            max_size: self.max_size,
            quota: self.quota,
            rate: self.client_limit,
            clients,
        })
    }
}

/// Reads the file and the list of clients again, and replaces the permissions.
fn reload(
    before: &ServeArgs,
    in_force: &mut KeptPermits,
    control: &ServerControl,
    log: &Log,
) -> Result<String, Failure> {
    let a: ServeArgs = settings::again()?;
    let mut kept = KeptSettings::default();
    let bounds = KeptPermits {
        clients: kept.or("clients", a.clients.clone(), &in_force.clients),
        max_size: kept.or("max-size", a.max_size, &in_force.max_size),
        quota: kept.or("quota", a.quota, &in_force.quota),
        client_limit: kept.or("client-limit", a.client_limit, &in_force.client_limit),
    };
    let permits = bounds.permits(&a, AllowList::reload)?;
    let admitted = match &permits.clients {
        Some(list) => format!("{} clients", list.len()),
        None if a.config.is_none() => return daemon::nothing_to_reload(),
        None => "all clients".into(),
    };
    control.set_permits(permits);
    log.reconfigure(&a.log);
    *in_force = bounds;
    let is_bound = a.listen == before.listen;
    let listen = if is_bound { "" } else { "; listen changes only by a restart" };
    Ok(format!("{admitted}{}{listen}", kept.line()))
}

/// `narrows serve`.
///
/// # Errors
/// The folder cannot be served, or the address cannot be used.
pub fn serve(a: &ServeArgs) -> Result<(), Failure> {
    if let (Some(file), None) = (&a.config, &a.clients) {
        let file = error::shown(&file.display().to_string());
        return Err(Failure::Input(format!(
            "--config: {file}: clients is missing: a file of keys, or \"all\" for every client"
        )));
    }
    if a.dir.is_file() {
        let file = error::shown(&a.dir.display().to_string());
        return Err(Failure::Input(format!("{file} is a file; serve takes its folder")));
    }
    catch_signals();
    let config = a.transport.connection()?;
    let mut bounds = KeptPermits::of(a);
    let permits = bounds.permits(a, AllowList::load)?;
    let may_put = permits.put;
    let has_quota = permits.quota.is_some();
    let open_to_all = permits.clients.is_none();
    let log = Arc::new(Log::new(&a.log)?);
    let lines = log.clone();
    let metrics = a.metrics.endpoint()?;
    let requests = metrics.requests.clone();
    let refusals = metrics.refusals.clone();
    let service = Arc::new(Service::new(&a.dir, permits, move |event| {
        let level = match event.failed.as_ref().map(|e| e.kind) {
            Some(ErrorKind::Local | ErrorKind::Full) => LogLevel::Error,
            Some(_) => LogLevel::Warning,
            None => LogLevel::Info,
        };
        requests.add(&[event.what, if event.failed.is_some() { "failed" } else { "ok" }], 1);
        event.failed.iter().for_each(|e| refusals.add(&[e.kind.word()], 1));
        // Only the address: a client may use any number of ports.
        let source = event.from.rsplit_once(':').map_or(event.from.as_str(), |(host, _)| host);
        lines.event(level, source, &event.to_string(), fields(event));
    })?);
    let identity = server_key(a.identity.as_deref())?;
    let learned = learned(a.learn, &a.transport.hints)?;
    let listen = address(a.listen.as_deref().unwrap_or("127.0.0.1:47470"))?;
    let over_tcp = tcp::TcpServer::bind(listen, identity.clone(), Arc::clone(&service))?
        .limited(a.transport.hints.limit);
    // Both transports use the same port number, even if the system chose it.
    let at = over_tcp.address()?;
    let shown = ShownConnections::open(&a.live, "serve", config.protocol.label())?;
    let recording = a.record.start("serve", config.protocol.label(), format!("UDP at {at}"))?;
    let tap = ShownConnections::beside(shown.as_ref(), recording.tap("server"));
    let tap = metrics.beside(tap);
    // With another --protocol than rrtp, clients cannot choose; otherwise they may.
    let permit = match a.permit_rate_driven {
        _ if a.transport.protocol != "rrtp" => Permit::Own,
        Some(max) => Permit::Any(max),
        None => Permit::Listed,
    };
    let kept = Arc::clone(&service);
    let mut over_udp = rrtp::RrtpServer::bind(at, &identity, service, config, permit, tap)?;
    if let Some(learned) = learned {
        over_udp = over_udp.learning(learned);
    }
    let control = over_udp.control();
    let name = key::text(identity.public());
    let folder = error::shown(&a.dir.display().to_string());
    let how = if may_put { "to read and to put" } else { "to read" };
    let mut text = format!("Serving {folder} {how}\n");
    for at in narrows_net::reachable(at) {
        text += &format!("  rrtp://{name}@{at}/\n  tcp://{name}@{at}/\n");
    }
    if at.ip().is_unspecified() {
        text += "Behind a NAT, the URL needs its public address instead of this machine's.\n";
    }
    if open_to_all && !at.ip().is_loopback() {
        text +=
            "Every host that reaches this address is accepted; --clients FILE restricts that.\n";
    }
    if may_put && open_to_all && !has_quota && !at.ip().is_loopback() {
        text += "Clients may fill the disk; --quota bounds that.\n";
    }
    print(&text)?;
    let spawn = |work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().spawn(work).map_err(|e| Failure::from(Error::no_thread(&e)))
    };
    spawn(Box::new(move || over_tcp.run()))?;
    let udp = spawn(Box::new(move || over_udp.run()))?;
    daemon::ready();
    let mut swept = Instant::now();
    while !STOP.load(Ordering::SeqCst) {
        if udp.is_finished() {
            return recording.finish(Err(Failure::Outside("the UDP socket has failed".into())));
        }
        if kept.permits().put && swept.elapsed() >= SWEEP {
            swept = Instant::now();
            let service = Arc::clone(&kept);
            // If no thread is available, try again in an hour.
            let _ = spawn(Box::new(move || service.sweep()));
        }
        daemon::reload(&log, || reload(a, &mut bounds, &control, &log));
        std::thread::sleep(Duration::from_millis(100));
    }
    daemon::stopping();
    control.end();
    drop(shown);
    recording.finish(Ok(()))
}

/// Fields of a request in a log of JSON.
fn fields(event: &AnsweredRequest) -> Map<String, Value> {
    let mut fields = Map::from_iter([
        ("client".into(), event.from.as_str().into()),
        ("request".into(), event.what.into()),
        ("path".into(), event.path.chars().take(PATH_SHOWN).collect::<String>().into()),
        ("bytes".into(), event.bytes.into()),
        ("seconds".into(), event.took.as_secs_f64().into()),
    ]);
    if let Some(e) = &event.failed {
        fields.insert("error".into(), e.kind.word().into());
    }
    fields
}

/// The file of learned paths, if `--learn` is set.
///
/// # Errors
/// Hints are set as well, or the file is invalid.
pub fn learned(learn: bool, hints: &Hints) -> Result<Option<LearnedPaths>, Failure> {
    if !learn {
        return Ok(None);
    }
    if hints.rate.is_some() || hints.rtt.is_some() || hints.loss.is_some() {
        let line = "--learn: --rate, --rtt and --loss say the same of all paths; leave out one or \
                    the other";
        return Err(Failure::Input(line.into()));
    }
    let file = LearnedPaths::at(key::config_folder()?.join("clients.toml"));
    // Report an invalid file now, not when a client connects.
    file.get("")?;
    Ok(Some(file))
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let bad = |why: &str| {
        let shown = error::shown(text);
        Failure::Input(format!(
            "--listen '{shown}': {why}; HOST:PORT is expected, as in [::]:47470"
        ))
    };
    let (host, port) = url::host_port(text).map_err(|e| bad(&e))?;
    bare_number("--listen", text, &host)?;
    let mut found = (host.as_str(), port).to_socket_addrs().map_err(|_| bad("no such host"))?;
    found.next().ok_or_else(|| bad("no such host"))
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        use narrows_peers::ErrorKind as K;
        match e.kind {
            K::Input => Failure::Input(e.line),
            K::Interrupted => Failure::Stopped(e.line),
            _ => Failure::Outside(e.line),
        }
    }
}
