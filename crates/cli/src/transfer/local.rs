//! The local side of a transfer: files and folders.

use super::spool::Spool;
use crate::failure::Failure;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_files::{CleanPath, Url};
use narrows_peers::{Error, error};
use std::path::{Path, PathBuf};

/// Destination of `get`.
pub enum DownloadTarget {
    /// A file: its open folder and its name.
    File(Dir, String),
    /// A folder, which is made when the first entry arrives.
    Folder(PathBuf),
    /// The standard output, after the file is complete and checked.
    Output(Spool),
}

impl DownloadTarget {
    /// Path for display.
    pub fn shown(&self) -> String {
        match self {
            DownloadTarget::File(_, name) => error::shown(name),
            DownloadTarget::Folder(path) => error::shown(&path.display().to_string()),
            DownloadTarget::Output(_) => "-".into(),
        }
    }
}

/// Source of `put`.
pub enum UploadSource {
    /// A file: its open folder, its name, and the path at the server.
    File(Dir, String, CleanPath),
    /// A folder with all its entries, and the path at the server.
    Folder(Dir, CleanPath),
    /// The standard input, stored as a file, and the path at the server.
    Input(Spool, CleanPath),
}

fn open(path: &Path) -> Result<Dir, Error> {
    Dir::open_ambient_dir(path, ambient_authority())
        .map_err(|e| Error::file(&error::shown(&path.display().to_string()), &e))
}

/// Opens a folder for writing; makes it if it is missing.
pub fn made(path: &Path) -> Result<Dir, Error> {
    std::fs::create_dir_all(path)
        .map_err(|e| Error::file(&error::shown(&path.display().to_string()), &e))?;
    open(path)
}

/// Splits a path into folder and name.
fn parted(path: &Path) -> Result<(PathBuf, String), Failure> {
    let name = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| {
        let shown = error::shown(&path.display().to_string());
        Failure::Input(format!("'{shown}' names no file; its last part must be a name in UTF-8"))
    })?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")).to_path_buf(), name.to_string()))
}

/// Whether a path names only a parent folder, not the new name: `dir/`, `.`, `..`, `dir/.`.
fn names_nothing(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    let last = text.rsplit(std::path::is_separator).next().unwrap_or_default();
    matches!(last, "" | "." | "..")
}

/// The destination of `get`. A folder is made if it is missing; a file's parent folder is not.
pub fn target(url: &Url, output: Option<&Path>) -> Result<DownloadTarget, Failure> {
    if output == Some(Path::new("-")) {
        if url.folder {
            return Err(Failure::Input("-o -: a folder is no stream; name a file".into()));
        }
        return Ok(DownloadTarget::Output(Spool::new()?));
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
    let (folder, name) = match output {
        None => (PathBuf::from("."), own),
        Some(path) if path.is_dir() => (path.to_path_buf(), own),
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
pub fn source(file: &Path, url: &Url) -> Result<UploadSource, Failure> {
    if file == Path::new("-") {
        if url.folder || url.path.is_root() {
            let line = "put -: name the file at the server, as in rrtp://host/name";
            return Err(Failure::Input(line.into()));
        }
        let spool = Spool::new()?;
        spool.fill(std::io::stdin())?;
        return Ok(UploadSource::Input(spool, url.path.clone()));
    }
    let shown = error::shown(&file.display().to_string());
    let about = std::fs::metadata(file).map_err(|e| Error::file(&shown, &e))?;
    if about.is_dir() {
        // `photos/.` means the content of the folder; `.` and `..` are not names for the server.
        let text = file.as_os_str().to_string_lossy();
        let contents = matches!(text.rsplit(std::path::is_separator).next(), Some("." | ".."));
        let path = if url.folder && !contents {
            url.path.join(&parted(file)?.1)?
        } else {
            url.path.clone()
        };
        return Ok(UploadSource::Folder(open(file)?, path));
    }
    // A symbolic link given on the command line is followed; links are not followed beyond the folder that it leads to.
    let real = std::fs::canonicalize(file).map_err(|e| Error::file(&shown, &e))?;
    let (folder, name) = parted(&real)?;
    let path = if url.folder {
        let (_, own) = parted(file)?;
        url.path.join(&own)?
    } else {
        url.path.clone()
    };
    Ok(UploadSource::File(open(&folder)?, name, path))
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
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
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
