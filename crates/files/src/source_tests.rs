//! Files as they occur on disks: with names and kinds that cannot be transferred, with holes, growing while they are
//! sent, and partial files that link to other files.

use crate::bench_tests::{Memory, bytes, control, open};
use crate::client::{get, get_tree, list, put, put_tree};
use crate::path::{CleanPath, part_name, upload_name};
use crate::service::Permits;
use crate::{ProgressEvent, TransferControl};
use narrows_peers::error::ErrorKind;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn puts() -> Permits {
    Permits { put: true, overwrite: true, ..Permits::default() }
}
static NEVER: AtomicBool = AtomicBool::new(false);

/// Calls `act` when the first bytes are moved.
fn when_moving(act: impl Fn() + Send + Sync + 'static) -> TransferControl {
    let done = AtomicBool::new(false);
    TransferControl::new(&NEVER, None, move |step| {
        if matches!(step, ProgressEvent::Moved(_)) && !done.swap(true, Ordering::SeqCst) {
            act();
        }
    })
}

#[test]
#[cfg(unix)]
fn each_entry_that_is_left_out_is_named_with_its_reason() {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    let from = tempfile::tempdir().unwrap();
    let at = from.path().join("in");
    std::fs::create_dir(&at).unwrap();
    std::fs::write(at.join("a.txt"), "x").unwrap();
    std::fs::write(at.join(std::ffi::OsStr::from_bytes(b"caf\xe9\n.txt")), "x").unwrap();
    std::fs::write(at.join("b.narrows-part"), "x").unwrap();
    symlink("/nowhere", at.join("dead")).unwrap();
    symlink(".", at.join("round")).unwrap();
    let _socket = UnixListener::bind(at.join("socket")).unwrap();
    let expected = [
        r"in/b.narrows-part: the name of a partial transfer",
        r"in/caf\xe9\n.txt: its name is not UTF-8",
        "in/dead: a link that leads nowhere, or out of the folder",
        "in/round: a link to a folder",
        "in/socket: a socket, a pipe or a device",
    ];
    let named = |transfer: &dyn Fn(&TransferControl) -> (u64, u64)| {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let control =
            control().naming_left_out(move |line| kept.lock().unwrap().push(line.to_string()));
        assert_eq!(transfer(&control), (1, expected.len() as u64));
        let mut lines = lines.lock().unwrap().clone();
        lines.sort_unstable();
        assert_eq!(lines, expected);
    };
    let to = tempfile::tempdir().unwrap();
    let server = Memory::new(to.path(), puts());
    named(&|control| {
        let done = put_tree(&server, &open(from.path()), &path("all"), control).unwrap();
        (done.files, done.skipped)
    });
    let server = Memory::new(from.path(), puts());
    named(&|control| {
        let here = tempfile::tempdir().unwrap();
        let done =
            get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), control).unwrap();
        (done.files, done.skipped)
    });
    let listed = list(&server, &path("in")).unwrap();
    // A link to a folder is listed as one.
    assert_eq!((listed.hidden, listed.left_out.len(), listed.entries.len()), (4, 4, 2));
    // The marker of an unfinished folder, which a server does not list, is named as well.
    std::fs::write(at.join(".narrows-part"), "").unwrap();
    let to = tempfile::tempdir().unwrap();
    let server = Memory::new(to.path(), puts());
    let done = put_tree(&server, &open(from.path()), &path("all"), &control()).unwrap();
    assert_eq!(done.skipped, 1 + expected.len() as u64);
}

#[test]
fn what_is_appended_while_a_file_is_sent_does_not_matter() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = bytes(1, 3_000_000);
    let append = |log: std::path::PathBuf| {
        when_moving(move || {
            let mut log = File::options().append(true).open(&log).unwrap();
            log.write_all(b"one more line\n").unwrap();
        })
    };
    let server = Memory::new(there.path(), puts());
    std::fs::write(there.path().join("log"), &content).unwrap();
    let control = append(there.path().join("log"));
    get(&server, &path("log"), &open(here.path()), "log", &control).unwrap();
    assert_eq!(std::fs::read(here.path().join("log")).unwrap(), content);
    let control = append(here.path().join("log"));
    put(&server, &open(here.path()), Path::new("log"), &path("put"), &control).unwrap();
    assert_eq!(std::fs::read(there.path().join("put")).unwrap(), content);
    assert_eq!(std::fs::metadata(here.path().join("log")).unwrap().len(), 3_000_014);
}

#[test]
fn a_file_that_becomes_shorter_or_is_written_over_is_said_to_be() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Memory::new(there.path(), puts());
    let log = here.path().join("log");
    for (shorter, said) in [(true, "shorter"), (false, "written over")] {
        std::fs::write(&log, bytes(2, 3_000_000)).unwrap();
        let changed = log.clone();
        let control = when_moving(move || {
            let mut file = File::options().write(true).open(&changed).unwrap();
            if shorter {
                file.set_len(10).unwrap();
            } else {
                file.seek(SeekFrom::Start(5)).unwrap();
                file.write_all(b"new").unwrap();
                // Later than any clock error of the file system.
                let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
                file.set_modified(later).unwrap();
            }
        });
        let e = put(&server, &open(here.path()), Path::new("log"), &path("log"), &control);
        let e = e.unwrap_err();
        assert!(e.kind == ErrorKind::Changed && e.line.contains(said), "{e}");
        assert!(!there.path().join("log").exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn holes_stay_holes() {
    use std::os::unix::fs::MetadataExt as _;
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut file = File::create(there.path().join("disk")).unwrap();
    file.write_all(&bytes(3, 5_000)).unwrap();
    file.seek(SeekFrom::Start(7_000_001)).unwrap();
    file.write_all(&bytes(4, 100_000)).unwrap();
    file.set_len(16_000_123).unwrap();
    if file.metadata().unwrap().blocks() * 512 > 1_000_000 {
        return eprintln!("skipped: this file system has no holes");
    }
    let server = Memory::new(there.path(), puts());
    get(&server, &path("disk"), &open(here.path()), "disk", &control()).unwrap();
    // An earlier attempt had ended at an unaligned offset.
    let part = here.path().join(part_name("again"));
    std::fs::write(&part, &std::fs::read(there.path().join("disk")).unwrap()[..6_000_007]).unwrap();
    get(&server, &path("disk"), &open(here.path()), "again", &control()).unwrap();
    put(&server, &open(here.path()), Path::new("disk"), &path("put"), &control()).unwrap();
    let content = std::fs::read(there.path().join("disk")).unwrap();
    let all = [here.path().join("disk"), here.path().join("again"), there.path().join("put")];
    for (n, copy) in all.iter().enumerate() {
        assert!(std::fs::read(copy).unwrap() == content, "{}", copy.display());
        let stored = std::fs::metadata(copy).unwrap().blocks() * 512;
        // The first 6 MB of the second file were stored as a whole.
        assert!(n == 1 || stored < 1_000_000, "{}: {stored}", copy.display());
    }
}

/// An attacker placed a link under the partial file's name. Its target stays unchanged, also if it has the beginning of
/// the file.
#[test]
#[cfg(unix)]
fn a_partial_file_that_is_a_link_is_not_written_through() {
    let content = bytes(5, 400_000);
    type Link = fn(&Path, &Path) -> std::io::Result<()>;
    let links: [Link; 2] =
        [|from, to| std::fs::hard_link(from, to), |from, to| std::os::unix::fs::symlink(from, to)];
    for link in links {
        for victims in [b"alias ls=ls\n".to_vec(), content[..1000].to_vec()] {
            let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let server = Memory::new(there.path(), puts());
            std::fs::write(there.path().join("f"), &content).unwrap();
            let victim = here.path().join("victim");
            std::fs::write(&victim, &victims).unwrap();
            link(&victim, &here.path().join(part_name("f"))).unwrap();
            get(&server, &path("f"), &open(here.path()), "f", &control()).unwrap();
            let at_server = there.path().join("victim");
            std::fs::write(&at_server, &victims).unwrap();
            link(&at_server, &there.path().join(upload_name("g", &server.client))).unwrap();
            put(&server, &open(here.path()), Path::new("f"), &path("g"), &control()).unwrap();
            for (copy, victim) in
                [(here.path().join("f"), victim), (there.path().join("g"), at_server)]
            {
                assert!(std::fs::read(copy).unwrap() == content);
                assert!(std::fs::read(victim).unwrap() == victims);
            }
        }
    }
}

/// Until it is complete, a file is read by its owner alone; then it has the mode of any new file.
#[test]
#[cfg(unix)]
fn a_partial_file_is_private_until_it_is_complete() {
    use crate::partial_file::TargetFile;
    use std::os::unix::fs::PermissionsExt as _;
    let here = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        std::fs::metadata(here.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    std::fs::write(here.path().join("usual"), "").unwrap();
    // One that an earlier version left is made private, too.
    std::fs::write(here.path().join(part_name("old")), "").unwrap();
    for name in ["new", "old"] {
        let target = TargetFile::new(open(here.path()), name).unwrap();
        let mut part = target.part(None).unwrap();
        part.append(b"content").unwrap();
        assert_eq!(mode(&part_name(name)), 0o600);
        part.finish(blake3::hash(b"content").as_bytes(), false).unwrap();
        assert_eq!(mode(name), mode("usual"));
    }
}
