//! Malicious uploads: many, empty, unfinished, of one name at once, and at the limits that the server's owner set.

use crate::bench_tests::{Memory, bytes, control, open, random_key, tree};
use crate::client::{make_folder, put, put_tree};
use crate::frames::{self, FileFrameReader};
use crate::message::{FileFrame, FileRequest};
use crate::path::{CleanPath, is_part};
use crate::service::Permits;
use crate::stream::{FileStream, Session};
use narrows_peers::error::ErrorKind;
use std::io::Write;
use std::path::Path;

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn puts() -> Permits {
    Permits { put: true, ..Permits::default() }
}

/// Files, folders and bytes below a folder.
fn there(root: &Path) -> (u64, u64) {
    let mut names = 0;
    let mut bytes = 0;
    for entry in std::fs::read_dir(root).unwrap().flatten() {
        let about = entry.metadata().unwrap();
        names += 1;
        if about.is_dir() {
            let below = there(&entry.path());
            names += below.0;
            bytes += below.1;
        } else {
            bytes += about.len();
        }
    }
    (names, bytes)
}

/// Begins an upload with a new key, and abandons it.
fn left_half_way(memory: &mut Memory, key: u8, name: &str, some: &[u8]) {
    memory.client = [key; 32];
    let FileStream { input, mut output } = memory.open().unwrap();
    let mut frames = FileFrameReader::new(input);
    output
        .write_all(&FileRequest::Put { path: name.into(), size: 1 << 40, mode: None }.bytes())
        .unwrap();
    let begun = frames.frame().is_ok();
    // The server may refuse it at any time.
    let _ = frames::send(output.as_mut(), &FileFrame::Start(0));
    let _ = frames::send(output.as_mut(), &FileFrame::Data(some));
    assert!(begun);
}

/// Empty files, nested folders and uploads of one byte: everything that needs a name on the disk counts.
#[test]
fn a_quota_bounds_names_too() {
    let root = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("empty"), b"").unwrap();
    let quota = 100_000;
    let empty = Memory::new(root.path(), Permits { quota: Some(quota), ..puts() });
    let all = (0..1000).map_while(|n| {
        let done =
            put(&empty, &open(here.path()), Path::new("empty"), &path(&n.to_string()), &control());
        done.map_err(|e| assert_eq!(e.kind, ErrorKind::Full, "{e}")).ok()
    });
    assert_eq!(all.count(), 100);
    assert_eq!(there(root.path()), (100, 0));
    // A restarted server counts the same.
    let again = Memory::new(root.path(), Permits { quota: Some(quota + 3000), ..puts() });
    make_folder(&again, &path("a/b")).unwrap();
    make_folder(&again, &path("a/b")).unwrap();
    let deep = make_folder(&again, &path("a/b/c/d")).unwrap_err();
    assert_eq!(deep.kind, ErrorKind::Full, "{deep}");
    make_folder(&again, &path("a/b/c")).unwrap();
    assert_eq!(make_folder(&again, &path("e")).unwrap_err().kind, ErrorKind::Full);
    assert_eq!(there(root.path()), (103, 0), "nothing of what was refused");
    // Nested folders, as a client puts them.
    std::fs::create_dir_all(here.path().join("x/y/z")).unwrap();
    assert_eq!(
        put_tree(&again, &tree(here.path()), &path("t"), &control()).unwrap_err().kind,
        ErrorKind::Full
    );
}

/// A file of exactly the limit fits, and one byte more does not. A file that exceeds its announced size is refused.
#[test]
fn sizes_and_quotas_are_exact() {
    let here = tempfile::tempdir().unwrap();
    for (n, fits) in [(10_000, true), (10_001, false)] {
        std::fs::write(here.path().join("mine"), bytes(1, n)).unwrap();
        let dir = open(here.path());
        let root = tempfile::tempdir().unwrap();
        let max = Permits { max_size: Some(10_000), ..puts() };
        let done =
            put(&Memory::new(root.path(), max), &dir, Path::new("mine"), &path("f"), &control());
        assert_eq!(done.as_ref().err().map(|e| e.kind), (!fits).then_some(ErrorKind::TooLarge));
        assert_eq!(root.path().join("f").exists(), fits);
        let root = tempfile::tempdir().unwrap();
        // Every name counts a thousand bytes.
        let quota = Permits { quota: Some(11_000), ..puts() };
        let done =
            put(&Memory::new(root.path(), quota), &dir, Path::new("mine"), &path("f"), &control());
        assert_eq!(done.as_ref().err().map(|e| e.kind), (!fits).then_some(ErrorKind::Full));
        assert_eq!(root.path().join("f").exists(), fits);
    }
    let root = tempfile::tempdir().unwrap();
    let memory = Memory::new(root.path(), Permits { max_size: Some(4), ..puts() });
    let FileStream { input, mut output } = memory.open().unwrap();
    let mut frames = FileFrameReader::new(input);
    output.write_all(&FileRequest::Put { path: "f".into(), size: 4, mode: None }.bytes()).unwrap();
    assert!(matches!(frames.frame().unwrap(), FileFrame::Holding { .. }));
    for frame in [FileFrame::Start(0), FileFrame::Data(b"more")] {
        frames::send(output.as_mut(), &frame).unwrap();
    }
    // The server may have closed the stream already.
    let _ = frames::send(output.as_mut(), &FileFrame::Data(&[7; 100_000]));
    assert_eq!(frames.frame().unwrap_err().kind, ErrorKind::Protocol);
    drop((frames, output));
    memory.settle();
    assert!(there(root.path()).1 <= 4 && !root.path().join("f").exists());
}

/// Unfinished uploads of one name by many keys, each within its limit, count until they are removed.
#[test]
fn partial_uploads_of_throw_away_keys_stay_within_the_quota() {
    let root = tempfile::tempdir().unwrap();
    let quota = 1_000_000_u64;
    // The announced sizes alone would exceed the quota, so none is announced here.
    let mut memory = Memory::new(root.path(), puts());
    for key in 0..20 {
        left_half_way(&mut memory, key, &format!("f{key}"), &[7; 20_000]);
    }
    memory.settle();
    let (names, held) = there(root.path());
    assert!(names == 20 && held <= 400_000, "{names} names, {held} bytes");
    let counted = names * 1000 + held;
    let bounded = Memory::new(root.path(), Permits { quota: Some(quota), ..puts() });
    let here = tempfile::tempdir().unwrap();
    let room = (quota - counted - 1000) as usize;
    std::fs::write(here.path().join("mine"), bytes(1, room + 1)).unwrap();
    let e =
        put(&bounded, &open(here.path()), Path::new("mine"), &path("g"), &control()).unwrap_err();
    assert_eq!(e.kind, ErrorKind::Full);
    std::fs::write(here.path().join("mine"), bytes(1, room)).unwrap();
    put(&bounded, &open(here.path()), Path::new("mine"), &path("g"), &control()).unwrap();
}

/// Concurrent uploads that would each fit alone never exceed the quota together.
#[test]
fn uploads_at_the_same_time_share_the_quota() {
    for seed in 0..20 {
        let root = tempfile::tempdir().unwrap();
        let quota = 200_000;
        let memory = Memory::new(root.path(), Permits { quota: Some(quota), ..puts() });
        let whole: u64 = std::thread::scope(|scope| {
            let memory = &memory;
            let one = |n: u64| {
                let here = tempfile::tempdir().unwrap();
                let size = 30_000 + random_key(seed, n, 60_000) as usize;
                std::fs::write(here.path().join("mine"), bytes(n, size)).unwrap();
                let to = path(&format!("f{n}"));
                let done = put(memory, &open(here.path()), Path::new("mine"), &to, &control());
                done.map_err(|e| assert_eq!(e.kind, ErrorKind::Full, "{e}")).is_ok() as u64
            };
            let threads: Vec<_> = (0..6).map(|n| scope.spawn(move || one(n))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        memory.settle();
        let (names, held) = there(root.path());
        assert!(held + 1000 * names <= quota, "seed {seed}: {held} bytes, {names} names");
        assert!(whole < 6, "seed {seed}: not all of them fit");
    }
}

/// Two clients repeatedly put one name at the same time: one complete file results, and the other client gets an error.
#[test]
fn two_simultaneous_puts_of_one_name_leave_one_whole() {
    for overwrite in [false, true] {
        for seed in 0..40 {
            let root = tempfile::tempdir().unwrap();
            let permits = || Permits { put: true, overwrite, ..Permits::default() };
            let mut first = Memory::new(root.path(), permits());
            let mut second = Memory::new(root.path(), permits());
            // One service, two keys.
            second.service = std::sync::Arc::clone(&first.service);
            first.client = [1; 32];
            second.client = [2; 32];
            let contents =
                [1, 2].map(|n| bytes(seed + n, random_key(seed, n, 60_000) as usize + 1));
            let done = std::thread::scope(|scope| {
                let both = [(&first, &contents[0]), (&second, &contents[1])];
                let threads = both.map(|(memory, content)| {
                    scope.spawn(move || {
                        let here = tempfile::tempdir().unwrap();
                        std::fs::write(here.path().join("mine"), content).unwrap();
                        put(memory, &open(here.path()), Path::new("mine"), &path("f"), &control())
                    })
                });
                threads.map(|t| t.join().unwrap())
            });
            first.settle();
            second.settle();
            let is = std::fs::read(root.path().join("f")).unwrap();
            let winner = contents.iter().position(|c| *c == is).expect("one of both, whole");
            assert!(done[winner].is_ok(), "seed {seed}: {done:?}");
            for e in done.iter().filter_map(|d| d.as_ref().err()) {
                assert!(matches!(e.kind, ErrorKind::Busy | ErrorKind::Exists), "seed {seed}: {e}");
            }
            assert!(overwrite || done.iter().filter(|d| d.is_ok()).count() == 1, "{done:?}");
            let parts = std::fs::read_dir(root.path()).unwrap().flatten();
            let parts = parts.filter(|e| is_part(e.file_name().to_str().unwrap())).count();
            assert_eq!(parts, 0, "seed {seed}: {done:?}");
        }
    }
}
