//! The local side of a transfer: files and folders.

use super::spool::Spool;
use crate::failure::Failure;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_files::client::{UploadPart, UploadTree};
use narrows_files::mode::Mode;
use narrows_files::{CleanPath, Url};
use narrows_peers::{Error, error};
use std::path::{Path, PathBuf};

/// Destination of `get`.
pub enum DownloadTarget {
    /// A file: its open folder and its name.
    File(Dir, String),
    /// A folder, which is made when the first entry arrives.
    Folder(PathBuf),
    /// The standard output, or a pipe at this path, after the file is complete and checked.
    Output(Spool, Option<PathBuf>),
}

impl DownloadTarget {
    /// Path for display.
    pub fn shown(&self) -> String {
        match self {
            DownloadTarget::File(_, name) => error::shown(name),
            DownloadTarget::Folder(path) => error::shown(&path.display().to_string()),
            DownloadTarget::Output(_, None) => "-".into(),
            DownloadTarget::Output(_, Some(path)) => error::shown(&path.display().to_string()),
        }
    }
}

/// Source of `put`.
pub enum UploadSource {
    /// A file: its open folder, its name, and the path at the server.
    File(Dir, String, CleanPath),
    /// The contents of a folder, or several files and folders, and the folder at the server.
    Folder(UploadTree, CleanPath),
    /// The standard input or a pipe, stored as a file, and the path at the server.
    Input(Spool, CleanPath),
}

fn open(path: &Path) -> Result<Dir, Error> {
    Dir::open_ambient_dir(path, ambient_authority())
        .map_err(|e| Error::file(&error::shown(&path.display().to_string()), &e))
}

/// Opens a folder for writing; makes it if it is missing, with these permissions.
pub fn made(path: &Path, mode: Option<Mode>) -> Result<Dir, Error> {
    let failed = |e: std::io::Error| Error::file(&error::shown(&path.display().to_string()), &e);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    if !path.is_dir() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        if let Some(mode) = mode {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode.for_folder());
        }
        builder.create(path).map_err(failed)?;
    }
    open(path)
}

/// A folder and a name in it.
struct Parted {
    folder: PathBuf,
    name: String,
}

/// Splits a path into folder and name.
fn parted(path: &Path) -> Result<Parted, Failure> {
    let name = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| {
        let shown = error::shown(&path.display().to_string());
        Failure::Input(format!("'{shown}' names no file; its last part must be a name in UTF-8"))
    })?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_path_buf();
    Ok(Parted { folder, name: name.to_string() })
}

/// Whether a path names only a parent folder, not the new name: `dir/`, `.`, `..`, `dir/.`.
fn names_nothing(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    let last = text.rsplit(std::path::is_separator).next().unwrap_or_default();
    matches!(last, "" | "." | "..")
}

/// The destination of `get`. A folder is made if it is missing; a file's parent folder is not.
pub fn target(url: &Url, output: Option<&Path>) -> Result<DownloadTarget, Failure> {
    let is_stream = |about: &std::fs::Metadata| is_pipe(about) || is_device(about);
    let pipe = output.filter(|path| std::fs::metadata(path).is_ok_and(|about| is_stream(&about)));
    let is_standard = output == Some(Path::new("-"));
    if is_standard || pipe.is_some() {
        if url.folder {
            let shown = error::shown(&pipe.unwrap_or(Path::new("-")).display().to_string());
            let line = format!("-o {shown}: a folder is no stream; name a file");
            return Err(Failure::Input(line));
        }
        let pipe = pipe.filter(|_| !is_standard).map(Path::to_path_buf);
        return Ok(DownloadTarget::Output(Spool::new()?, pipe));
    }
    if url.folder {
        let path = match (output, url.path.name()) {
            (Some(path), Some(name)) if names_nothing(path) => path.join(name),
            (Some(path), _) => path.to_path_buf(),
            (None, Some(name)) => PathBuf::from(name),
            (None, None) => {
                let line =
                    "the server's whole folder has no name of its own: say where to with -o DIR";
                return Err(Failure::Input(line.into()));
            }
        };
        return Ok(DownloadTarget::Folder(path));
    }
    let own = url.path.name().unwrap_or_default().to_string();
    let Parted { folder, name } = match output {
        None => Parted { folder: PathBuf::from("."), name: own },
        Some(path) if path.is_dir() => Parted { folder: path.to_path_buf(), name: own },
        Some(path) => {
            if path.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
                let shown = error::shown(&path.display().to_string());
                return Err(Failure::Input(format!("{shown}: no such folder; make it first")));
            }
            parted(path)?
        }
    };
    Ok(DownloadTarget::File(open(&folder)?, name))
}

/// The source of `put`, with its path at the server.
pub fn source(files: &[PathBuf], url: &Url) -> Result<UploadSource, Failure> {
    let [file] = files else { return several(files, url) };
    match LocalFile::of(file)? {
        LocalFile::Stream(input) => {
            if url.folder || url.path.is_root() {
                let shown = error::shown(&file.display().to_string());
                let line =
                    format!("put {shown}: name the file at the server, as in rrtp://host/name");
                return Err(Failure::Input(line));
            }
            let spool = Spool::new()?;
            match input {
                Some(path) => spool.fill(move || std::fs::File::open(path))?,
                None => spool.fill(|| Ok(std::io::stdin()))?,
            }
            Ok(UploadSource::Input(spool, url.path.clone()))
        }
        LocalFile::Folder => {
            let path = if url.folder && !is_contents(file) {
                url.path.join(&parted(file)?.name)?
            } else {
                url.path.clone()
            };
            Ok(UploadSource::Folder(UploadTree::contents(open(file)?), path))
        }
        LocalFile::Regular(real) => {
            let path =
                if url.folder { url.path.join(&parted(file)?.name)? } else { url.path.clone() };
            let Parted { folder, name } = parted(&real)?;
            Ok(UploadSource::File(open(&folder)?, name, path))
        }
    }
}

/// Several files and folders, each under its own name.
fn several(files: &[PathBuf], url: &Url) -> Result<UploadSource, Failure> {
    if !url.folder {
        let line = "several files or folders: end the URL with /, for the folder to put them in";
        return Err(Failure::Input(line.into()));
    }
    let mut tree = UploadTree::empty();
    for file in files {
        let shown = error::shown(&file.display().to_string());
        let alone = |what: &str| Failure::Input(format!("{shown}: {what} is put alone"));
        let part = match LocalFile::of(file)? {
            LocalFile::Stream(_) => return Err(alone("a stream")),
            LocalFile::Folder if is_contents(file) => return Err(alone("the content of a folder")),
            LocalFile::Folder => UploadPart { dir: open(file)?, file: None },
            LocalFile::Regular(real) => {
                let Parted { folder, name } = parted(&real)?;
                UploadPart { dir: open(&folder)?, file: Some(name) }
            }
        };
        let name = parted(file)?.name;
        tree.add(&name, part).map_err(|e| Failure::Input(e.to_string()))?;
    }
    Ok(UploadSource::Folder(tree, url.path.clone()))
}

/// `photos/.` means the contents of the folder; `.` and `..` are no names for the server.
fn is_contents(folder: &Path) -> bool {
    let text = folder.as_os_str().to_string_lossy();
    matches!(text.rsplit(std::path::is_separator).next(), Some("." | ".."))
}

/// A source on the command line.
enum LocalFile {
    Folder,
    /// A regular file. A symbolic link on the command line is followed; links are not followed beyond the folder that
    /// it leads to.
    Regular(PathBuf),
    /// The standard input, or a pipe at this path.
    Stream(Option<PathBuf>),
}

impl LocalFile {
    fn of(file: &Path) -> Result<LocalFile, Failure> {
        if file == Path::new("-") {
            return Ok(LocalFile::Stream(None));
        }
        let shown = error::shown(&file.display().to_string());
        let about = std::fs::metadata(file).map_err(|e| Error::file(&shown, &e))?;
        if about.is_dir() {
            return Ok(LocalFile::Folder);
        }
        if is_pipe(&about) {
            return Ok(LocalFile::Stream(Some(file.to_path_buf())));
        }
        if !about.is_file() {
            let line = format!("{shown}: is neither a file, a folder nor a pipe");
            return Err(Failure::Input(line));
        }
        match std::fs::canonicalize(file) {
            Ok(real) => Ok(LocalFile::Regular(real)),
            // An open file that has no name any more, as a shell's here-document.
            Err(_) => Ok(LocalFile::Stream(Some(file.to_path_buf()))),
        }
    }
}

#[cfg(unix)]
fn is_pipe(about: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type())
}
#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

/// Whether it is a device that takes bytes in order, such as `/dev/null`.
#[cfg(unix)]
fn is_device(about: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&about.file_type())
}
#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

/// A number of bytes for display.
pub fn size(bytes: u64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let x = bytes as f64;
    match units.iter().find(|(_, u)| x >= 0.9995 * u) {
        Some((name, unit)) => format!("{:.1} {name}", x / unit),
        None => format!("{bytes} B"),
    }
}

/// Seconds since 1970 as a date in UTC (algorithm: Howard Hinnant's `civil_from_days`).
pub fn date(seconds: i64) -> String {
    // Up to the year 9999.
    let seconds = seconds.clamp(0, 253_402_300_799);
    let days = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400);
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3600, rest % 3600 / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_dates_are_as_people_write_them() {
        for (n, text) in
            [(0, "0 B"), (999, "999 B"), (999_999, "1.0 MB"), (1_500_000_000, "1.5 GB")]
        {
            assert_eq!(size(n), text);
        }
        for (s, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400, "2000-02-29 00:00"),
            (1_735_689_599, "2024-12-31 23:59"),
            (i64::MAX, "9999-12-31 23:59"),
            (i64::MIN, "1970-01-01 00:00"),
        ] {
            assert_eq!(date(s), text);
        }
    }
}
