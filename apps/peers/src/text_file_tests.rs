//! Text files that are refused, and the errors.

use crate::access::{AllowList, KnownServers};
use crate::key::Identity;
use crate::learned::LearnedPaths;
use crate::text_file::{SHORT, read, read_settled, settled};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

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

/// Reads a file that has these texts in turn, each written at a time of its own. The last one stays.
fn read_of(texts: &[&str]) -> std::io::Result<String> {
    let mut at = 0;
    let read = || {
        let i = at.min(texts.len() - 1);
        at += 1;
        Ok((Some(UNIX_EPOCH + Duration::from_secs(i as u64)), texts[i].into()))
    };
    settled(read, || ())
}

/// A list that is empty, then half of it, then the whole, as a script writes it.
#[test]
fn file_under_writing_is_read_when_it_is_complete() {
    assert_eq!(read_of(&["", "", "a\n", "a\nb\n"]).unwrap(), "a\nb\n");
    assert_eq!(read_of(&["", " \n"]).unwrap(), " \n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    std::fs::write(&file, "a\n").unwrap();
    assert_eq!(read_settled(&file, SHORT).unwrap(), "a\n");
}

/// Also when the last read finds it empty: an empty list would be another list than the writer's.
#[test]
fn file_that_always_changes_is_refused_after_bounded_reads() {
    for texts in [["a\n", "a\nb\n"], ["a\n", ""]] {
        let e = read_of(&texts.repeat(50)).unwrap_err().to_string();
        assert!(e.contains("is being written") && e.contains("mv"), "{e}");
    }
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
