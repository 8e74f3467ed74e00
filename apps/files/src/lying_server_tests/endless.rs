//! Endless answers, and answers that never come.

use super::*;

/// An endless listing of valid, left-out or invalid names, and endlessly nested folders.
#[test]
fn endless_listings_are_given_up() {
    let small = |entries: Vec<DirectoryEntry>| framed(&[FileFrame::Listed(entries)]);
    let names: Vec<DirectoryEntry> =
        (0..100).map(|n| entry(EntryKind::File, 1, &format!("{n:0250}"))).collect();
    for again in [
        small(Vec::new()),
        small(vec![entry(EntryKind::File, 0, ""); 100]),
        small(vec![entry(EntryKind::FolderLink, 0, "x"); 100]),
        small(names),
    ] {
        let rule = again.clone();
        let server = liar(move |_| Endless(Vec::new(), rule.clone()));
        let e = list(&server, &CleanPath::root()).unwrap_err();
        clear(&e);
        assert!(
            e.kind == ErrorKind::TooLarge && server.said() < 5_000_000,
            "{e}, {}",
            server.said()
        );
        let here = tempfile::tempdir().unwrap();
        let rule = again.clone();
        let server = liar(move |_| Endless(Vec::new(), rule.clone()));
        let e = get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(
            e.kind == ErrorKind::TooLarge && server.said() < 5_000_000,
            "{e}, {}",
            server.said()
        );
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
    // One below the other, and a hundred in each.
    for names in [vec!["a".to_string()], (0..100).map(|n| format!("{n:0200}")).collect()] {
        let here = tempfile::tempdir().unwrap();
        let folders = names.iter().map(|n| entry(EntryKind::Folder, 0, n)).collect();
        let all = listing(folders);
        let server = liar(move |_| Say(all.clone()));
        let e = get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(matches!(e.kind, ErrorKind::TooLarge | ErrorKind::BadPath), "{e}");
        assert!(server.said() < 10_000_000, "{}", server.said());
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
}

/// Of a file with the right size but other bytes, little is read only to be dropped.
#[test]
fn a_large_answer_that_is_not_wanted_is_not_read() {
    let here = tempfile::tempdir().unwrap();
    for name in ["f", "g"] {
        std::fs::write(here.path().join(name), bytes(5, 3_000_000)).unwrap();
    }
    let entries = ["f", "g"].iter().map(|n| entry(EntryKind::File, 3_000_000, n)).collect();
    let all = listing(entries);
    let begin = framed(&[FileFrame::Begin { start: 0, size: 1 << 63, mode: None }]);
    let block = framed(&[FileFrame::Data(&[7; 4000])]);
    let server = liar(move |request| match request {
        FileRequest::List { .. } => Say(all.clone()),
        _ => Endless(begin.clone(), block.clone()),
    });
    let e =
        get_tree(&server, &CleanPath::root(), |_| Ok(open(here.path())), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Exists && server.said() < 200_000, "{e}, {}", server.said());
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), bytes(5, 3_000_000));
}

/// Endless WAIT frames, or a byte of a valid answer now and then: no command waits forever.
#[test]
fn a_server_that_only_waits_or_trickles_is_given_up() {
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let holding = framed(&[FileFrame::Holding { held: none, whole: false }]);
    let begin = framed(&[FileFrame::Begin { start: 0, size: 9_000, mode: None }]);
    let waits = |_: &FileRequest| Trickle(Vec::new(), framed(&[FileFrame::Wait]));
    // A frame of 9000 bytes, of which some 150 arrive before the limit.
    let trickles = move |request: &FileRequest| {
        let (once, kind) = match request {
            FileRequest::Get { .. } => (begin.clone(), 2),
            FileRequest::Put { .. } => (holding.clone(), 7),
            _ => (Vec::new(), 8),
        };
        Trickle([once, vec![kind, 0, 0x23, 0x28]].concat(), vec![1])
    };
    let holds = framed(&[FileFrame::Holding { held: none, whole: false }]);
    let waits_after = move |_: &FileRequest| Trickle(holds.clone(), framed(&[FileFrame::Wait]));

    let errors = |server: &dyn Session| {
        let here = tempfile::tempdir().unwrap();
        let dir = open(here.path());
        let tree = here.path().join("d");
        std::fs::write(here.path().join("mine"), bytes(1, 3000)).unwrap();
        let errors = [
            put(server, &dir, Path::new("mine"), &path("f"), &control()).unwrap_err(),
            get(server, &path("f"), &dir, "f", &control()).unwrap_err(),
            get_tree(server, &path("d"), |_| Ok(open(&tree)), &control()).unwrap_err(),
            list(server, &path("d")).unwrap_err(),
        ];
        assert!(!here.path().join("f").exists() && !tree.exists());
        errors.iter().for_each(clear);
        errors
    };
    for e in errors(&liar(waits).given_up_soon()) {
        assert!(e.kind == ErrorKind::Cut && e.line.contains("reported work"), "{e}");
    }
    for e in errors(&liar(trickles).given_up_soon()) {
        assert!(e.kind == ErrorKind::Cut && e.line.contains("moved only"), "{e}");
    }
    // After a complete upload, the client waits for its result.
    let [upload, ..] = errors(&liar(waits_after).given_up_soon());
    assert!(upload.kind == ErrorKind::Cut && upload.line.contains("reported work"), "{upload}");
}

#[test]
fn endless_listing_ends_an_upload() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("f"), b"content").unwrap();
    let again = framed(&[FileFrame::Listed(vec![entry(EntryKind::File, 1, "f"); 100])]);
    let server = liar(move |request| match request {
        FileRequest::List { .. } => Endless(Vec::new(), again.clone()),
        _ => Say(framed(&[FileFrame::Done])),
    });
    let tree = UploadTree::contents(open(here.path()));
    let e = put_tree(&server, &tree, &path("d"), &control()).unwrap_err();
    clear(&e);
    assert_eq!(e.kind, ErrorKind::TooLarge);
}
