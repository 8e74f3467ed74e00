//! Text files that are refused, and the errors.

use crate::access::{AllowList, KnownServers};
use crate::key::Identity;
use crate::learned::LearnedPaths;
use crate::text_file::{SHORT, read};
use std::path::Path;

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
