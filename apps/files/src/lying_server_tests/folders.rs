//! Listings of a misbehaving server, and its answers for the files in them.

use super::*;

/// Names that lead out, that are invalid, or that are reserved for partial files are left out. Unusual names stay in
/// their folder; of entries with equal names one is kept.
#[test]
fn a_tree_with_false_names_stays_in_its_folder() {
    let above = tempfile::tempdir().unwrap();
    let here = above.path().join("here");
    std::fs::create_dir(&here).unwrap();
    let entries = |names: &[&str], kind| -> Vec<DirectoryEntry> {
        names.iter().map(|n| entry(kind, 3, n)).collect()
    };
    let left = ["..", ".", "", "/", "/etc/passwd", "../out", "a/../../out", "a\0b", "\0"];
    let kept = [".narrows-part", ".f.NARROWS-PART", ".narrows-PART"];
    let odd = ["con", "a\\..\\b", "\u{1b}[2J", "\u{202e}txt.exe", "C:x", "-rf", "a\nb", "..."];
    let mut all = Vec::new();
    for kind in [EntryKind::File, EntryKind::Folder, EntryKind::FolderLink] {
        all.extend(entries(&left, kind));
        all.extend(entries(&kept, kind));
    }
    all.extend(entries(&odd, EntryKind::File));
    all.extend(entries(&["twice", "twice", "both"], EntryKind::File));
    all.extend(entries(&["both", "twice"], EntryKind::Folder));
    let long = "n".repeat(256);
    all.extend(entries(&[&long], EntryKind::File));
    let root = listing(all);
    let server = liar(move |request| match request {
        FileRequest::List { path, .. } if path == "d" => Say(root.clone()),
        FileRequest::List { .. } => Say(listing(Vec::new())),
        _ => Say(file(b"abc")),
    });
    let done = get_tree(&server, &path("d"), |_| Ok(open(&here)), &control()).unwrap();
    assert_eq!(done.files, odd.len() as u64 + 2);
    assert_eq!(done.skipped, 3 * (left.len() + kept.len()) as u64 + 1);
    assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 1, "it left its folder");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), odd.len() + 2);
    assert_eq!(std::fs::read(here.join("twice")).unwrap(), b"abc");
}

/// Sums of a server's numbers may exceed 64 bits.
#[test]
fn huge_counts_and_sizes_do_no_harm() {
    let here = tempfile::tempdir().unwrap();
    let mut entries: Vec<DirectoryEntry> =
        (0..9).map(|n| entry(EntryKind::File, u64::MAX - n, &format!("f{n}"))).collect();
    entries.extend((0..3).map(|n| entry(EntryKind::FolderLink, 1 << 63, &format!("l{n}"))));
    entries.push(entry(EntryKind::Folder, u64::MAX, "d"));
    let top = framed(&[
        FileFrame::Listed(entries),
        FileFrame::ListEnd { folder: true, hidden: u64::MAX, mode: None },
    ]);
    let links = (0..3).map(|n| entry(EntryKind::FolderLink, 0, &format!("l{n}"))).collect();
    let below = listing(links);
    let server = liar(move |request| match request {
        FileRequest::List { path, .. } if path.is_empty() => Say(top.clone()),
        FileRequest::List { .. } => Say(below.clone()),
        _ => Say(file(b"abc")),
    });
    let done =
        get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), &control()).unwrap();
    assert_eq!((done.files, done.skipped), (9, u64::MAX));
}

/// An ERROR of one file does not affect the files behind it on the same stream. A server that takes nothing any more
/// ends the transfer; complete files stay.
#[test]
fn false_error_of_one_file_does_not_stop_the_rest() {
    let entries = (0..40).map(|n| entry(EntryKind::File, 3, &format!("f{n:02}"))).collect();
    let all: Vec<u8> = listing(entries);
    for (kind, come) in [(ErrorKind::Exists, 39), (ErrorKind::Refused, 3)] {
        let here = tempfile::tempdir().unwrap();
        let all = all.clone();
        let server = liar(move |request| match request {
            FileRequest::List { .. } => Say(all.clone()),
            FileRequest::Get { path, .. } if path == "f03" => {
                Say(framed(&[FileFrame::Error(Error::new(kind, "a lie"))]))
            }
            _ => Say(file(b"abc")),
        });
        let e = get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(e.kind == kind && e.line.contains(&format!("{come} of 40")), "{e}");
        assert!(!here.path().join("f03").exists());
    }
}

#[test]
fn file_that_a_server_cannot_read_is_left_out() {
    let names = ["a", "b", "c"];
    let all = listing(names.map(|name| entry(EntryKind::File, 3, name)).to_vec());
    for kind in [ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::Changed, ErrorKind::Remote] {
        let here = tempfile::tempdir().unwrap();
        let all = all.clone();
        let server = liar(move |request| match request {
            FileRequest::List { .. } => Say(all.clone()),
            FileRequest::Get { path, .. } if path == "b" => {
                Say(framed(&[FileFrame::Error(Error::new(kind, "/b: invalid argument"))]))
            }
            _ => Say(file(b"abc")),
        });
        let lines = Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
        let named = Arc::clone(&lines);
        let control =
            control().naming_left_out(move |line| named.lock().unwrap().push(line.into()));
        let target = |_| Ok(open(here.path()));
        let done = get_tree(&server, &CleanPath::root(), target, &control).unwrap();
        assert_eq!((done.files, done.skipped), (2, 1));
        assert_eq!(*lines.lock().unwrap(), ["b: invalid argument".to_string()]);
    }
}
