//! Text files that are refused, and the errors.

use crate::access::{AllowList, KnownServers};
use crate::key::Identity;
use crate::learned::LearnedPaths;
use crate::text_file::{SHORT, read, read_settled};
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Every kind of file that is read whole: an endless one is refused in one line.
#[test]
#[cfg(unix)]
fn a_file_without_an_end_is_refused() {
    let zeros = Path::new("/dev/zero");
    let refused = [
        AllowList::load(zeros).err(),
        KnownServers::at(zeros.into()).get("a:1").err(),
        Identity::load_or_make(zeros).err(),
        LearnedPaths::at(zeros.into()).get("a:1").err(),
    ];
    for e in refused {
        let e = e.expect("refused").to_string();
        assert!(e.contains("is a pipe or a device") && e.lines().count() == 1, "{e}");
    }
    let long = tempfile::NamedTempFile::new().unwrap();
    long.as_file().set_len(SHORT + 1).unwrap();
    assert!(read(long.path(), SHORT).unwrap_err().to_string().contains("1 MB"));
}

/// A list that is empty, then half of it, then the whole, as a script writes it.
#[test]
fn file_under_writing_is_read_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    std::fs::write(&file, "").unwrap();
    let to = file.clone();
    let writing = spawn(move || {
        for text in ["", "a\n", "a\nb\n"] {
            std::fs::write(&to, text).unwrap();
            sleep(Duration::from_millis(30));
        }
    });
    assert_eq!(read_settled(&file, SHORT).unwrap(), "a\nb\n");
    writing.join().unwrap();
}

#[test]
fn file_that_always_changes_is_refused_after_bounded_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    std::fs::write(&file, "a\n").unwrap();
    let to = file.clone();
    let (stop, stopped) = std::sync::mpsc::channel();
    let writing = spawn(move || {
        let mut text = String::new();
        while stopped.recv_timeout(Duration::from_millis(5)).is_err() {
            text += "a\n";
            std::fs::write(&to, &text).unwrap();
        }
    });
    let e = read_settled(&file, SHORT).unwrap_err().to_string();
    stop.send(()).unwrap();
    writing.join().unwrap();
    assert!(e.contains("is being written") && e.contains("mv"), "{e}");
}

/// A file named by mistake may hold secrets.
#[test]
fn errors_do_not_show_lines_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shadow");
    std::fs::write(&file, "root:$y$salt$secret:19000:0:99999:7:::\nadmin secret\n").unwrap();
    for e in [
        AllowList::load(&file).err(),
        KnownServers::at(file.clone()).get("a:1").err(),
        Identity::load_or_make(&file).err(),
        LearnedPaths::at(file.clone()).get("a:1").err(),
    ] {
        let e = e.expect("refused").to_string();
        assert!(!e.contains("secret") && !e.contains("root:"), "{e}");
    }
}
