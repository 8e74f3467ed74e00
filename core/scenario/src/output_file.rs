//! Creates the files that commands write, without following links. A symbolic link that another user has placed under
//! an output's name is not written through.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Creates an empty file. An existing file or link of this name is removed; its contents are not changed.
///
/// # Errors
/// The name is a folder's, or the system refuses.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    // Fails if a link was created in between, instead of following it.
    File::options().write(true).create_new(true).open(path)
}

/// Opens the file at its end; creates it if it does not exist.
///
/// # Errors
/// The name is a link's, another name leads to the same file, or the system refuses.
pub fn append(path: &Path) -> io::Result<File> {
    match File::options().append(true).create_new(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file; remove it or choose another folder"));
    }
    let file = File::options().append(true).open(path)?;
    if !is_only_name(&found, &file.metadata()?) {
        return Err(io::Error::other(
            "it is a file that has another name, too; remove it or choose another folder",
        ));
    }
    Ok(file)
}

/// Whether the opened file is the one found before, and has no second name.
#[cfg(unix)]
fn is_only_name(found: &fs::Metadata, opened: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino()) == (opened.dev(), opened.ino()) && opened.nlink() == 1
}

/// On other systems only administrators can create links.
#[cfg(not(unix))]
fn is_only_name(_: &fs::Metadata, opened: &fs::Metadata) -> bool {
    opened.is_file()
}

/// Creates a folder within an output's folder if it does not exist.
///
/// # Errors
/// The name is a link's or a file's, or the system refuses.
pub fn folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it is a link or a file, not a folder")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn planted_symlink_is_replaced_or_refused_never_followed() {
        let folder = std::env::temp_dir().join(format!("narrows-output-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let treasure = folder.join("treasure");
        let name = folder.join("output");
        let plants: [fn(&Path, &Path) -> io::Result<()>; 2] =
            [|from, to| symlink(from, to), |from, to| fs::hard_link(from, to)];
        for plant in plants {
            fs::write(&treasure, "gold").unwrap();
            plant(&treasure, &name).unwrap();
            let refused = append(&name).unwrap_err().to_string();
            assert!(refused.contains("choose another folder"), "{refused}");
            create(&name).unwrap().write_all(b"lead").unwrap();
            assert_eq!(fs::read(&treasure).unwrap(), b"gold");
            assert_eq!(fs::read(&name).unwrap(), b"lead");
            append(&name).unwrap().write_all(b"!").unwrap();
            assert_eq!(fs::read(&name).unwrap(), b"lead!");
            fs::remove_file(&name).unwrap();
        }
        assert!(create(&folder).is_err(), "a folder stays");
        symlink(&folder, folder.join("below")).unwrap();
        assert!(super::folder(&folder.join("below")).is_err());
        super::folder(&folder.join("own")).unwrap();
        super::folder(&folder.join("own")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
