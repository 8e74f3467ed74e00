//! One answer that fits no request, ends early, belongs to another file, or makes a false claim.

use super::*;

/// Answers that fit no request.
fn nonsense() -> Vec<Vec<u8>> {
    let held = HeldPrefix { bytes: 1 << 63, hash: [0; 32] };
    let control = "\u{1b}]0;x\u{7}\r\n\u{202e}\u{e0041}".repeat(5000);
    let mut too_long = vec![0xff, 0xff];
    too_long.extend(control.as_bytes().iter().take(100));
    vec![
        Vec::new(),
        framed(&[FileFrame::Wait, FileFrame::Wait]),
        framed(&[FileFrame::Start(u64::MAX)]),
        framed(&[FileFrame::Data(b"data of nothing")]),
        framed(&[FileFrame::End([0; 32])]),
        framed(&[FileFrame::Begin { start: u64::MAX, size: 0, mode: None }]),
        framed(&[FileFrame::Begin { start: 7, size: 9, mode: None }]),
        framed(&[
            FileFrame::Holding { held, whole: true },
            FileFrame::Holding { held, whole: false },
        ]),
        framed(&[FileFrame::Holding { held, whole: true }, FileFrame::Tuned(Tuning::default())]),
        // ERROR frames with a long text, control characters, invalid UTF-8, a wrong length, and no text.
        framed(&[FileFrame::Error(Error::new(ErrorKind::Remote, control.clone()))]),
        raw(1, &[&[0, 14, 0xea, 0x60][..], &control.as_bytes()[..60_000]].concat()),
        raw(1, &[0, 1, 0, 3, 0xff, 0xfe, 0xc0]),
        raw(1, &too_long),
        raw(1, &[]),
        raw(1, &[0xff, 0xff, 0, 0]),
        // Entries of an unknown kind, truncated, with a name that is not UTF-8; unknown frame kinds; a frame that is
        // too long.
        raw(8, &[9; 40]),
        raw(8, &[1; 12]),
        raw(8, &[&[1; 17][..], &[0, 2, 0xff, 0xff]].concat()),
        raw(9, &[1]),
        raw(77, b"?"),
        raw(255, &[]),
        vec![2, 0xff, 0xff, 0xff, 1, 2, 3],
    ]
}

/// Each command fails on a malformed answer, and leaves no files.
#[test]
fn malformed_answer_gives_one_clear_error_per_command() {
    for (i, lie) in nonsense().into_iter().enumerate() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("from")).unwrap();
        std::fs::write(here.path().join("from/mine"), bytes(1, 3000)).unwrap();
        let dir = open(here.path());
        let from = open(&here.path().join("from"));
        let said = lie.clone();
        let server = liar(move |_| SayAndEnd(said.clone()));
        let sources = UploadTree::contents(open(&here.path().join("from")));
        let tree = tempfile::tempdir().unwrap();
        let errors = [
            get(&server, &path("f"), &dir, "f", &control()).unwrap_err(),
            get_tree(&server, &path("d"), |_| Ok(open(tree.path())), &control()).unwrap_err(),
            put(&server, &from, Path::new("mine"), &path("f"), &control()).unwrap_err(),
            put_tree(&server, &sources, &path("d"), &control()).unwrap_err(),
            list(&server, &path("d")).unwrap_err(),
            make_folder(&server, &path("d")).unwrap_err(),
        ];
        errors.iter().for_each(clear);
        assert!(!here.path().join("f").exists(), "lie {i}");
        assert_eq!(std::fs::read_dir(tree.path()).unwrap().count(), 0, "lie {i}");
        assert_eq!(std::fs::read(here.path().join("from/mine")).unwrap(), bytes(1, 3000));
        // A random answer may be a valid TUNED, but no other valid frame here.
        if let Err(e) = tune(&server, Tuning::default()) {
            clear(&e);
        }
    }
}

/// A server that ends its stream properly but too early, at any byte of a valid answer.
#[test]
fn answer_cut_at_any_byte_is_an_error() {
    let content = bytes(2, 40);
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let taken = framed(&[FileFrame::Holding { held: none, whole: false }, FileFrame::Done]);
    let entries = vec![entry(EntryKind::File, 40, "f"), entry(EntryKind::Folder, 0, "d")];
    for (what, answer) in [file(&content), listing(entries), taken].into_iter().enumerate() {
        for end in 0..=answer.len() {
            let here = tempfile::tempdir().unwrap();
            let dir = open(here.path());
            let is_whole = end == answer.len();
            let said = answer[..end].to_vec();
            let server = liar(move |_| SayAndEnd(said.clone()));
            let error = match what {
                0 => get(&server, &path("f"), &dir, "f", &control()).err(),
                1 => list(&server, &path("d")).err(),
                _ => {
                    std::fs::write(here.path().join("mine"), &content).unwrap();
                    put(&server, &dir, Path::new("mine"), &path("f"), &control()).err()
                }
            };
            assert_eq!(here.path().join("f").exists(), what == 0 && is_whole);
            match error {
                Some(e) => {
                    clear(&e);
                    // In PUT both answers arrive before the upload, so another error is possible.
                    assert!(e.kind == ErrorKind::Cut || what == 2, "{what} cut at {end}: {e}");
                    assert!(!is_whole || what == 2, "{what}: {e}");
                }
                None => assert!(is_whole, "{what} cut at {end} passes for whole"),
            }
        }
    }
}

/// More bytes, fewer, huge sizes, other bytes; the right bytes of a file that was not requested.
#[test]
fn wrong_lengths_and_hashes_never_get_a_name() {
    let abc = &b"abc"[..];
    let end = FileFrame::End(hash(abc));
    let begin = |size| FileFrame::Begin { start: 0, size, mode: None };
    let held = part_name("f");
    for (i, lie) in [
        vec![begin(1 << 63), FileFrame::Data(abc), end.clone()],
        vec![begin(u64::MAX), FileFrame::Data(abc), end.clone()],
        vec![begin(0), FileFrame::Data(abc), end.clone()],
        vec![begin(0), end.clone()],
        vec![begin(2), FileFrame::Data(abc), end.clone()],
        vec![begin(3), FileFrame::Data(b"abd"), end.clone()],
        vec![
            begin(3),
            FileFrame::Data(abc),
            FileFrame::Data(b""),
            FileFrame::Data(b"c"),
            end.clone(),
        ],
        vec![begin(3), begin(3), FileFrame::Data(abc), end.clone()],
        vec![begin(3), FileFrame::Data(abc), FileFrame::Done],
        // It claims that the held bytes are the file's beginning, although more is held than the file has.
        vec![FileFrame::Begin { start: 5, size: 3, mode: None }, end.clone()],
        vec![
            FileFrame::Begin { start: 4, size: 1 << 63, mode: None },
            FileFrame::Data(abc),
            end.clone(),
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let here = tempfile::tempdir().unwrap();
        std::fs::write(here.path().join(&held), b"held5").unwrap();
        let said = framed(&lie);
        let server = liar(move |_| SayAndEnd(said.clone()));
        let e = get(&server, &path("f"), &open(here.path()), "f", &control()).unwrap_err();
        clear(&e);
        assert!(matches!(e.kind, ErrorKind::Protocol | ErrorKind::Corrupt), "lie {i}: {e}");
        assert!(!here.path().join("f").exists(), "lie {i}");
        let kept = std::fs::metadata(here.path().join(&held)).map_or(0, |m| m.len());
        assert!(kept <= 5, "lie {i}: {kept} bytes kept of a lie");
    }
    // An endless answer is abandoned as soon as it exceeds the announced size.
    let here = tempfile::tempdir().unwrap();
    let block = framed(&[FileFrame::Data(&[7; 4000])]);
    let endless = liar(move |_| Endless(framed(&[begin(50_000)]), block.clone()));
    let e = get(&endless, &path("f"), &open(here.path()), "f", &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Protocol && endless.said() < 100_000, "{e}, {}", endless.said());
}

/// A server may claim to hold any part of an upload: the file is read, never changed, and sent whole if the claim is
/// false.
#[test]
fn false_claim_to_hold_an_upload_is_ignored() {
    let here = tempfile::tempdir().unwrap();
    let content = bytes(3, 5000);
    std::fs::write(here.path().join("mine"), &content).unwrap();
    for (bytes, hash) in [
        (5001, hash(&content)),
        (1 << 63, hash(&content)),
        (u64::MAX, [0; 32]),
        (5000, [0; 32]),
        (17, hash(&content)),
    ] {
        for whole in [false, true] {
            let held = FileFrame::Holding { held: HeldPrefix { bytes, hash }, whole };
            let said = framed(&[held]);
            let server = liar(move |_| Say(said.clone()));
            let e = put(&server, &open(here.path()), Path::new("mine"), &path("f"), &control());
            // The stream ends without DONE, because the server parses the rest as the next request.
            clear(&e.unwrap_err());
            assert_eq!(server.started.load(Ordering::SeqCst), 0, "it is sent whole");
            assert_eq!(std::fs::read(here.path().join("mine")).unwrap(), content);
        }
    }
    // DONE before the file was sent.
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let said = framed(&[FileFrame::Holding { held: none, whole: false }, FileFrame::Done]);
    let large = bytes(4, 3_000_000);
    std::fs::write(here.path().join("large"), &large).unwrap();
    let early = liar(move |_| SayAndEnd(said.clone()));
    let e =
        put(&early, &open(here.path()), Path::new("large"), &path("f"), &control()).unwrap_err();
    assert!(e.kind == ErrorKind::Protocol && e.line.contains("before the end"), "{e}");
}
