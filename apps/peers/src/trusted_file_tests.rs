use super::unix::is_private;
use super::*;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn why(path: &Path) -> String {
    open(path).unwrap_err().to_string()
}

/// A folder with a file, both for their owner alone.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    mode(folder.path(), 0o700);
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    mode(&file, 0o600);
    (folder, file)
}

#[test]
fn file_that_others_can_write_is_refused_with_chmod() {
    let (folder, file) = folder();
    for open_mode in [0o644, 0o640, 0o400] {
        mode(&file, open_mode);
        open(&file).unwrap();
    }
    for open_mode in [0o666, 0o602] {
        mode(&file, open_mode);
        let chmod = format!("chmod go-w {}", file.display());
        assert!(why(&file).ends_with(&chmod), "{}", why(&file));
    }
    mode(&file, 0o600);
    // A folder above it; with the sticky bit its entries are their owners'.
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::rename(&file, inner.join("file")).unwrap();
    let file = inner.join("file");
    mode(folder.path(), 0o777);
    let chmod = format!("folder {0}: chmod go-w {0}", folder.path().display());
    assert!(why(&file).ends_with(&chmod), "{}", why(&file));
    mode(folder.path(), 0o1777);
    open(&file).unwrap();
}

#[test]
fn folder_of_link_and_of_its_target_are_checked() {
    let (folder, file) = folder();
    let (other, _) = self::folder();
    let link = other.path().join("link");
    symlink(&file, &link).unwrap();
    open(&link).unwrap();
    open(&other.path().join("../").join(other.path().file_name().unwrap()).join("link")).unwrap();
    mode(other.path(), 0o777);
    assert!(why(&link).contains("chmod go-w"), "{}", why(&link));
    mode(other.path(), 0o700);
    mode(folder.path(), 0o777);
    assert!(why(&link).contains("chmod go-w"), "{}", why(&link));
    let around = other.path().join("around");
    symlink(&around, &around).unwrap();
    assert!(open(&around).is_err());
}

#[test]
fn file_or_link_of_another_user_is_refused_with_chown() {
    let (folder, file) = folder();
    let link = folder.path().join("link");
    symlink(&file, &link).unwrap();
    if chown(&file, Some(12345), None).is_err() {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    for path in [&file, &link] {
        let chown = format!("user 12345 can change {0}: chown 0 {0}", file.display());
        assert_eq!(why(path), chown);
    }
    chown(&file, Some(0), None).unwrap();
    std::os::unix::fs::lchown(&link, Some(12345), None).unwrap();
    assert!(why(&link).contains("chown -h 0"), "{}", why(&link));
    open(&file).unwrap();
    chown(folder.path(), Some(12345), None).unwrap();
    assert!(why(&file).contains("can change folder"), "{}", why(&file));
}

#[test]
fn pipe_or_device_is_refused_and_not_opened() {
    let (folder, _) = folder();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [&pipe, Path::new("/dev/null"), Path::new("/dev/zero")] {
        assert!(why(path).contains("is a pipe or a device"), "{}", why(path));
    }
    let e = open(folder.path()).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::IsADirectory);
    let e = open(&folder.path().join("absent")).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::NotFound);
}

#[test]
fn group_of_one_user_is_private() {
    let passwd = "root:x:0:0::/:/bin/sh\na:x:1000:1000::/:/bin/sh\nb:x:1001:1000::/:/bin/sh\n\
                  c:x:1002:1002::/:/bin/sh\nd:x:1003:1003::/:/bin/sh\n";
    let groups = "a:x:1000:\nc:x:1002:c\nd:x:1003:d,c\nstaff:x:50:c\n";
    assert!(is_private(passwd, groups, 1002, 1002));
    assert!(!is_private(passwd, groups, 1000, 1000), "the group of two users");
    assert!(!is_private(passwd, groups, 1003, 1003), "a member");
    assert!(!is_private(passwd, groups, 50, 1002), "another name");
    assert!(!is_private(passwd, groups, 1002, 1003));
    assert!(!is_private("", "", 1002, 1002), "nothing is known of it");
}
