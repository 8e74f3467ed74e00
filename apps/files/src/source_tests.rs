//! Files as they occur on disks: with names and kinds that cannot be transferred, with holes, growing while they are
//! sent, and partial files that link to other files.

use crate::bench_tests::{Memory, bytes, control, open, replacing, tree};
use crate::client::{UploadPart, UploadTree, get, get_tree, list, put, put_tree};
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
fn each_omitted_entry_is_named_with_its_reason() {
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
        let done = put_tree(&server, &tree(from.path()), &path("all"), control).unwrap();
        (done.files, done.skipped)
    });
    let server = Memory::new(from.path(), puts());
    named(&|control| {
        let here = tempfile::tempdir().unwrap();
        let done =
            get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), control).unwrap();
        (done.files, done.skipped)
    });
    let listed = list(&server, &path("in")).unwrap();
    // A link to a folder is listed as one.
    assert_eq!((listed.hidden, listed.left_out.len(), listed.entries.len()), (4, 4, 2));
    // The marker of an unfinished folder, which a server does not list, is named as well.
    std::fs::write(at.join(".narrows-part"), "").unwrap();
    let to = tempfile::tempdir().unwrap();
    let server = Memory::new(to.path(), puts());
    let done = put_tree(&server, &tree(from.path()), &path("all"), &control()).unwrap();
    assert_eq!(done.skipped, 1 + expected.len() as u64);
}

#[test]
fn bytes_appended_during_sending_do_not_matter() {
    let there = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
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
fn shortened_or_overwritten_source_is_named() {
    let there = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
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
    let there = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
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
fn partial_file_as_symlink_is_not_followed() {
    let content = bytes(5, 400_000);
    type Link = fn(&Path, &Path) -> std::io::Result<()>;
    let links: [Link; 2] =
        [|from, to| std::fs::hard_link(from, to), |from, to| std::os::unix::fs::symlink(from, to)];
    for link in links {
        for victims in [b"alias ls=ls\n".to_vec(), content[..1000].to_vec()] {
            let there = tempfile::tempdir().unwrap();
            let here = tempfile::tempdir().unwrap();
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

/// Files of procfs say that they have no bytes, those of sysfs that they have a page.
#[test]
#[cfg(target_os = "linux")]
fn files_with_false_sizes_arrive_with_their_content() {
    let there = tempfile::tempdir().unwrap();
    let here = tempfile::tempdir().unwrap();
    let server = Memory::new(there.path(), puts());
    // A long file: its bytes are counted first. No other test changes this process, which ends with its input.
    let mut process = std::process::Command::new("cat");
    process.envs((0..12).map(|n| (format!("LONG{n}"), "x".repeat(100_000))));
    process.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut process = process.spawn().unwrap();
    let environment = format!("proc/{}/environ", process.id());
    // The kernel fills it in a moment after the start.
    while std::fs::read(Path::new("/").join(&environment)).unwrap().len() < 1_000_000 {
        assert!(process.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    let names = ["proc/version", "sys/devices/system/cpu/possible", &environment];
    let mut tree = UploadTree::empty();
    for name in &names {
        let content = std::fs::read(Path::new("/").join(name)).unwrap();
        let said = std::fs::metadata(Path::new("/").join(name)).unwrap().len();
        assert_ne!(said, content.len() as u64, "{name}");
        let last = path(name).name().unwrap().to_string();
        put(&server, &open(Path::new("/")), Path::new(name), &path(&last), &control()).unwrap();
        assert!(std::fs::read(there.path().join(&last)).unwrap() == content, "{name}");
        let special = Memory::new(Path::new("/"), Permits::default());
        let done = get(&special, &path(name), &open(here.path()), &last, &control()).unwrap();
        assert_eq!(done.bytes, content.len() as u64);
        assert!(std::fs::read(here.path().join(&last)).unwrap() == content, "{name}");
        let done = get(&special, &path(name), &open(here.path()), &last, &control()).unwrap();
        assert_eq!(done.unchanged, 1, "{name}");
        let part = UploadPart { dir: open(Path::new("/")), file: Some((*name).to_string()) };
        tree.add(&last, part).unwrap();
    }
    for unchanged in [0, names.len() as u64] {
        let done = put_tree(&server, &tree, &path("several"), &control()).unwrap();
        assert_eq!((done.files, done.unchanged), (names.len() as u64, unchanged));
    }
    let several = std::fs::read(there.path().join("several/version")).unwrap();
    assert_eq!(several, std::fs::read("/proc/version").unwrap());
    // A folder of such files, and once more.
    let random = Memory::new(Path::new("/proc/sys/kernel"), Permits::default());
    let target = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let done = get_tree(&random, &path("random"), |_| Ok(open(target.path())), &replacing());
        assert!(done.unwrap().files > 2);
    }
    let id = std::fs::read(target.path().join("boot_id")).unwrap();
    assert_eq!(id, std::fs::read("/proc/sys/kernel/random/boot_id").unwrap());
    drop(process.stdin.take());
    process.wait().unwrap();
}

/// More entries than one frame holds: the folder is put, listed, got and put again.
#[test]
fn folder_of_many_entries_is_listed_in_parts() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let back = tempfile::tempdir().unwrap();
    let count = 1_500;
    for n in 0..count {
        std::fs::write(here.path().join(format!("f{n}")), b"").unwrap();
    }
    let server = Memory::new(there.path(), puts());
    let put = || put_tree(&server, &tree(here.path()), &CleanPath::root(), &control()).unwrap();
    assert_eq!((put().unchanged, put().unchanged), (0, count));
    let listed = list(&server, &CleanPath::root()).unwrap().entries;
    assert!(listed.is_sorted_by(|a, b| a.name < b.name) && listed.len() as u64 == count);
    let target = |_| Ok(open(back.path()));
    assert_eq!(get_tree(&server, &CleanPath::root(), target, &control()).unwrap().files, count);
}

#[test]
fn folder_too_large_to_get_is_refused_before_put() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    // The tests' limit for listings is 4 MiB.
    for n in 0..12_000 {
        std::fs::write(here.path().join(format!("{n:0250}")), b"").unwrap();
    }
    let server = Memory::new(there.path(), puts());
    let e = put_tree(&server, &tree(here.path()), &path("d"), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::TooLarge && !there.path().join("d").exists(), "{e}");
}

#[test]
fn several_files_and_folders_are_put_under_their_names() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(here.path().join("d/e")).unwrap();
    for (name, content) in [("a", "a"), ("b", "b"), ("d/c", "c"), ("d/e/f", "f")] {
        std::fs::write(here.path().join(name), content).unwrap();
    }
    let mut several = UploadTree::empty();
    let part = |file: &str| UploadPart { dir: open(here.path()), file: Some(file.into()) };
    several.add("a", part("a")).unwrap();
    several.add("z", part("b")).unwrap();
    let folder = UploadPart { dir: open(&here.path().join("d")), file: None };
    several.add("d", folder).unwrap();
    assert!(several.add("a", part("b")).is_err());
    assert!(several.add("..", part("b")).is_err());
    let server = Memory::new(there.path(), puts());
    for unchanged in [0, 4] {
        let done = put_tree(&server, &several, &path("to"), &control()).unwrap();
        assert_eq!((done.files, done.unchanged), (4, unchanged));
    }
    for (name, content) in [("a", "a"), ("z", "b"), ("d/c", "c"), ("d/e/f", "f")] {
        assert_eq!(std::fs::read_to_string(there.path().join("to").join(name)).unwrap(), content);
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
        part.finish(blake3::hash(b"content").as_bytes(), false, None).unwrap();
        assert_eq!(mode(name), mode("usual"));
    }
}
