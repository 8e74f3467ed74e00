//! Servers that say what no honest one says, to each of the client's commands: it ends with one clear
//! error or with what it asked for, within its folder, and in memory that is bounded.

use crate::bench_tests::{bytes, control, open, pair};
use crate::client::{get, get_tree, list, make_folder, put, put_tree, tune};
use crate::error::{Error, Kind};
use crate::frames::{self, Frames};
use crate::message::{DirectoryEntry, EntryKind, Frame, HeldPrefix, Request, Tuning};
use crate::path::{CleanPath, part_name};
use crate::stream::{Session, Stream};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is said to a request.
enum Lie {
    /// This, and the next request is answered too.
    Say(Vec<u8>),
    /// This, and nothing after it.
    SayAndEnd(Vec<u8>),
    /// This once, then that for as long as somebody listens.
    Endless(Vec<u8>, Vec<u8>),
    /// This once, then that every 2 ms.
    Trickle(Vec<u8>, Vec<u8>),
}
use Lie::{Endless, Say, SayAndEnd, Trickle};

/// Next to nothing may come for so long.
const MAX_STALL: Duration = Duration::from_millis(300);

/// A server that answers every request by a rule, and counts what it could say.
struct Liar<F> {
    rule: Arc<F>,
    said: Arc<AtomicU64>,
    /// Where the last upload began.
    started: Arc<AtomicU64>,
}

fn liar<F: Fn(&Request) -> Lie>(rule: F) -> Liar<F> {
    Liar { rule: Arc::new(rule), said: Arc::default(), started: Arc::new(AtomicU64::new(u64::MAX)) }
}

impl<F> Liar<F> {
    fn said(&self) -> u64 {
        self.said.load(Ordering::SeqCst)
    }
}

impl<F: Fn(&Request) -> Lie + Send + Sync + 'static> Session for Liar<F> {
    fn open(&self) -> Result<Stream, Error> {
        let (ours, theirs) = pair(i64::MAX);
        let (rule, said) = (Arc::clone(&self.rule), Arc::clone(&self.said));
        let started = Arc::clone(&self.started);
        std::thread::spawn(move || {
            let Stream { input, mut output } = theirs;
            let mut frames = Frames::new(input);
            let mut say = |bytes: &[u8]| {
                said.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                output.write_all(bytes).is_ok()
            };
            while let Ok(Some(request)) = frames::request(frames.input()) {
                let told = match rule(&request) {
                    Say(bytes) => say(&bytes),
                    SayAndEnd(bytes) => {
                        say(&bytes);
                        break;
                    }
                    Endless(once, again) => {
                        say(&once);
                        while say(&again) {}
                        break;
                    }
                    Trickle(once, again) => {
                        say(&once);
                        while say(&again) {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        break;
                    }
                };
                // The upload that follows, if one is sent unasked or after HOLDING.
                let goes_on = match request {
                    Request::Put { size, .. } => {
                        if let Ok(Frame::Start(at)) = frames.frame() {
                            started.store(at, Ordering::SeqCst);
                        }
                        frames.skip(size).is_ok()
                    }
                    _ => true,
                };
                if !told || !goes_on {
                    break;
                }
            }
            let _ = output.finish();
            let _ = std::io::copy(frames.input(), &mut std::io::sink());
        });
        Ok(ours)
    }
    fn protocol(&self) -> String {
        "lies".into()
    }
    fn max_stall(&self) -> Duration {
        MAX_STALL
    }
}

fn path(text: &str) -> CleanPath {
    CleanPath::read(text).unwrap()
}
fn framed(list: &[Frame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    list.iter().for_each(|f| frames::write(&mut out, f).unwrap());
    out
}
fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
fn entry(kind: EntryKind, size: u64, name: &str) -> DirectoryEntry {
    DirectoryEntry { kind, size, modified: i64::MIN, name: name.into() }
}
fn listing(entries: Vec<DirectoryEntry>) -> Vec<u8> {
    framed(&[Frame::Listed(entries), Frame::ListEnd { folder: true, hidden: 0 }])
}
/// A whole file.
fn file(content: &[u8]) -> Vec<u8> {
    let size = content.len() as u64;
    framed(&[Frame::Begin { start: 0, size }, Frame::Data(content), Frame::End(hash(content))])
}
fn raw(kind: u8, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[kind, a, b, c], payload].concat()
}

/// One line that a terminal can be shown, and not a long one.
fn clear(e: &Error) {
    assert!(!e.line.is_empty() && e.line.len() < 12_000, "{} bytes of error", e.line.len());
    assert!(!e.line.chars().any(narrows_base::text::is_hidden), "{:?}", e.line);
}

/// Answers that fit no request at all.
fn nonsense() -> Vec<Vec<u8>> {
    let held = HeldPrefix { bytes: 1 << 63, hash: [0; 32] };
    let control = "\u{1b}]0;x\u{7}\r\n\u{202e}\u{e0041}".repeat(5000);
    let mut too_long = vec![0xff, 0xff];
    too_long.extend(control.as_bytes().iter().take(100));
    vec![
        Vec::new(),
        framed(&[Frame::Wait, Frame::Wait]),
        framed(&[Frame::Start(u64::MAX)]),
        framed(&[Frame::Data(b"data of nothing")]),
        framed(&[Frame::End([0; 32])]),
        framed(&[Frame::Begin { start: u64::MAX, size: 0 }]),
        framed(&[Frame::Begin { start: 7, size: 9 }]),
        framed(&[Frame::Holding { held, whole: true }, Frame::Holding { held, whole: false }]),
        framed(&[Frame::Holding { held, whole: true }, Frame::Tuned(Tuning::default())]),
        // Errors whose text is long, would drive a terminal, is no text, lies about its length, is none.
        framed(&[Frame::Error(Error::new(Kind::Remote, control.clone()))]),
        raw(1, &[&[0, 14, 0xea, 0x60][..], &control.as_bytes()[..60_000]].concat()),
        raw(1, &[0, 1, 0, 3, 0xff, 0xfe, 0xc0]),
        raw(1, &too_long),
        raw(1, &[]),
        raw(1, &[0xff, 0xff, 0, 0]),
        // Entries of no kind, cut, with a name that is no text; kinds of no frame; a frame too long.
        raw(8, &[9; 40]),
        raw(8, &[1; 12]),
        raw(8, &[&[1; 17][..], &[0, 2, 0xff, 0xff]].concat()),
        raw(9, &[1]),
        raw(77, b"?"),
        raw(255, &[]),
        vec![2, 0xff, 0xff, 0xff, 1, 2, 3],
    ]
}

/// To each command nonsense is an error, and leaves nothing.
#[test]
fn nonsense_of_a_server_is_one_clear_error_to_every_command() {
    for (i, lie) in nonsense().into_iter().enumerate() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("from")).unwrap();
        std::fs::write(here.path().join("from/mine"), bytes(1, 3000)).unwrap();
        let (dir, from) = (open(here.path()), open(&here.path().join("from")));
        let said = lie.clone();
        let server = liar(move |_| SayAndEnd(said.clone()));
        let tree = tempfile::tempdir().unwrap();
        let errors = [
            get(&server, &path("f"), &dir, "f", &control()).unwrap_err(),
            get_tree(&server, &path("d"), || Ok(open(tree.path())), &control()).unwrap_err(),
            put(&server, &from, Path::new("mine"), &path("f"), &control()).unwrap_err(),
            put_tree(&server, &from, &path("d"), &control()).unwrap_err(),
            list(&server, &path("d")).unwrap_err(),
            make_folder(&server, &path("d")).unwrap_err(),
        ];
        errors.iter().for_each(clear);
        assert!(!here.path().join("f").exists(), "lie {i}");
        assert_eq!(std::fs::read_dir(tree.path()).unwrap().count(), 0, "lie {i}");
        assert_eq!(std::fs::read(here.path().join("from/mine")).unwrap(), bytes(1, 3000));
        // Of TUNE the answer may be true by chance, of nothing else here.
        if let Err(e) = tune(&server, Tuning::default()) {
            clear(&e);
        }
    }
}

/// A server that ends its stream properly, but too early, at any byte of a true answer.
#[test]
fn an_answer_that_ends_early_is_an_error_at_every_byte() {
    let content = bytes(2, 40);
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let taken = framed(&[Frame::Holding { held: none, whole: false }, Frame::Done]);
    let entries = vec![entry(EntryKind::File, 40, "f"), entry(EntryKind::Folder, 0, "d")];
    for (what, answer) in [file(&content), listing(entries), taken].into_iter().enumerate() {
        for end in 0..=answer.len() {
            let here = tempfile::tempdir().unwrap();
            let (dir, is_whole) = (open(here.path()), end == answer.len());
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
                    // Of PUT both answers come before a byte was sent, which is none.
                    assert!(e.kind == Kind::Cut || what == 2, "{what} cut at {end}: {e}");
                    assert!(!is_whole || what == 2, "{what}: {e}");
                }
                None => assert!(is_whole, "{what} cut at {end} passes for whole"),
            }
        }
    }
}

/// More bytes, fewer, huge sizes, other bytes; the right bytes of a file that was not asked for.
#[test]
fn wrong_lengths_and_hashes_never_get_a_name() {
    let (abc, end) = (&b"abc"[..], Frame::End(hash(b"abc")));
    let begin = |size| Frame::Begin { start: 0, size };
    let held = part_name("f");
    for (i, lie) in [
        vec![begin(1 << 63), Frame::Data(abc), end.clone()],
        vec![begin(u64::MAX), Frame::Data(abc), end.clone()],
        vec![begin(0), Frame::Data(abc), end.clone()],
        vec![begin(0), end.clone()],
        vec![begin(2), Frame::Data(abc), end.clone()],
        vec![begin(3), Frame::Data(b"abd"), end.clone()],
        vec![begin(3), Frame::Data(abc), Frame::Data(b""), Frame::Data(b"c"), end.clone()],
        vec![begin(3), begin(3), Frame::Data(abc), end.clone()],
        vec![begin(3), Frame::Data(abc), Frame::Done],
        // It claims that what is held is the file's beginning, and more is held than there is.
        vec![Frame::Begin { start: 5, size: 3 }, end.clone()],
        vec![Frame::Begin { start: 4, size: 1 << 63 }, Frame::Data(abc), end.clone()],
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
        assert!(matches!(e.kind, Kind::Protocol | Kind::Corrupt), "lie {i}: {e}");
        assert!(!here.path().join("f").exists(), "lie {i}");
        let kept = std::fs::metadata(here.path().join(&held)).map_or(0, |m| m.len());
        assert!(kept <= 5, "lie {i}: {kept} bytes kept of a lie");
    }
    // What is never over is given up as soon as it is more than was said.
    let here = tempfile::tempdir().unwrap();
    let block = framed(&[Frame::Data(&[7; 4000])]);
    let endless = liar(move |_| Endless(framed(&[begin(50_000)]), block.clone()));
    let e = get(&endless, &path("f"), &open(here.path()), "f", &control()).unwrap_err();
    assert!(e.kind == Kind::Protocol && endless.said() < 100_000, "{e}, {}", endless.said());
}

/// A server may claim to hold anything of an upload: the file is read, never changed, and sent whole if
/// the claim is false.
#[test]
fn what_a_server_claims_to_hold_is_not_believed() {
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
            let held = Frame::Holding { held: HeldPrefix { bytes, hash }, whole };
            let said = framed(&[held]);
            let server = liar(move |_| Say(said.clone()));
            let e = put(&server, &open(here.path()), Path::new("mine"), &path("f"), &control());
            // Its stream ends without DONE, since it takes the rest for the next request.
            clear(&e.unwrap_err());
            assert_eq!(server.started.load(Ordering::SeqCst), 0, "it is sent whole");
            assert_eq!(std::fs::read(here.path().join("mine")).unwrap(), content);
        }
    }
    // DONE for what was not sent yet.
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let said = framed(&[Frame::Holding { held: none, whole: false }, Frame::Done]);
    let large = bytes(4, 3_000_000);
    std::fs::write(here.path().join("large"), &large).unwrap();
    let early = liar(move |_| SayAndEnd(said.clone()));
    let e =
        put(&early, &open(here.path()), Path::new("large"), &path("f"), &control()).unwrap_err();
    assert!(e.kind == Kind::Protocol && e.line.contains("before the end"), "{e}");
}

/// Names that lead out, that are none, or are kept for partial files are left out; what looks odd stays
/// in its folder; of entries with one name there is one.
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
        Request::List { path } if path == "d" => Say(root.clone()),
        Request::List { .. } => Say(listing(Vec::new())),
        _ => Say(file(b"abc")),
    });
    let done = get_tree(&server, &path("d"), || Ok(open(&here)), &control()).unwrap();
    assert_eq!(done.files, odd.len() as u64 + 2);
    assert_eq!(done.skipped, 3 * (left.len() + kept.len()) as u64 + 1);
    assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 1, "it left its folder");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), odd.len() + 2);
    assert_eq!(std::fs::read(here.join("twice")).unwrap(), b"abc");
}

/// A listing without end, of names that are kept or left out or of none, and folders in folders for ever.
#[test]
fn endless_listings_are_given_up() {
    let small = |entries: Vec<DirectoryEntry>| framed(&[Frame::Listed(entries)]);
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
        assert!(e.kind == Kind::Busy && server.said() < 1_200_000, "{e}, {}", server.said());
        let here = tempfile::tempdir().unwrap();
        let rule = again.clone();
        let server = liar(move |_| Endless(Vec::new(), rule.clone()));
        let e = get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(e.kind == Kind::Busy && server.said() < 5_000_000, "{e}, {}", server.said());
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
    // One below the other, and a hundred in each.
    for names in [vec!["a".to_string()], (0..100).map(|n| format!("{n:0200}")).collect()] {
        let here = tempfile::tempdir().unwrap();
        let folders = names.iter().map(|n| entry(EntryKind::Folder, 0, n)).collect();
        let all = listing(folders);
        let server = liar(move |_| Say(all.clone()));
        let e = get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(matches!(e.kind, Kind::Busy | Kind::BadPath), "{e}");
        assert!(server.said() < 10_000_000, "{}", server.said());
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
    }
}

/// Sums of what a server says have no end that a number has.
#[test]
fn huge_counts_and_sizes_do_no_harm() {
    let here = tempfile::tempdir().unwrap();
    let mut entries: Vec<DirectoryEntry> =
        (0..9).map(|n| entry(EntryKind::File, u64::MAX - n, &format!("f{n}"))).collect();
    entries.extend((0..3).map(|n| entry(EntryKind::FolderLink, 1 << 63, &format!("l{n}"))));
    entries.push(entry(EntryKind::Folder, u64::MAX, "d"));
    let top = framed(&[Frame::Listed(entries), Frame::ListEnd { folder: true, hidden: u64::MAX }]);
    let links = (0..3).map(|n| entry(EntryKind::FolderLink, 0, &format!("l{n}"))).collect();
    let below = listing(links);
    let server = liar(move |request| match request {
        Request::List { path } if path.is_empty() => Say(top.clone()),
        Request::List { .. } => Say(below.clone()),
        _ => Say(file(b"abc")),
    });
    let done = get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), &control()).unwrap();
    assert_eq!((done.files, done.skipped), (9, u64::MAX));
}

/// An ERROR that only says that a name is taken leaves the files behind it on the same stream alone; one
/// of another kind ends the transfer, with what is whole.
#[test]
fn a_false_error_of_one_file_keeps_no_other_from_coming() {
    let entries = (0..40).map(|n| entry(EntryKind::File, 3, &format!("f{n:02}"))).collect();
    let all: Vec<u8> = listing(entries);
    for (kind, come) in [(Kind::Exists, 39), (Kind::NotFound, 3)] {
        let here = tempfile::tempdir().unwrap();
        let all = all.clone();
        let server = liar(move |request| match request {
            Request::List { .. } => Say(all.clone()),
            Request::Get { path, .. } if path == "f03" => {
                Say(framed(&[Frame::Error(Error::new(kind, "a lie"))]))
            }
            _ => Say(file(b"abc")),
        });
        let e = get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), &control())
            .unwrap_err();
        clear(&e);
        assert!(e.kind == kind && e.line.contains(&format!("{come} of 40")), "{e}");
        assert!(!here.path().join("f03").exists());
    }
}

/// Of a file of the right size, but with other bytes, little is read only to be thrown away.
#[test]
fn a_large_answer_that_is_not_wanted_is_not_read() {
    let here = tempfile::tempdir().unwrap();
    for name in ["f", "g"] {
        std::fs::write(here.path().join(name), bytes(5, 3_000_000)).unwrap();
    }
    let entries = ["f", "g"].iter().map(|n| entry(EntryKind::File, 3_000_000, n)).collect();
    let all = listing(entries);
    let begin = framed(&[Frame::Begin { start: 0, size: 1 << 63 }]);
    let block = framed(&[Frame::Data(&[7; 4000])]);
    let server = liar(move |request| match request {
        Request::List { .. } => Say(all.clone()),
        _ => Endless(begin.clone(), block.clone()),
    });
    let e =
        get_tree(&server, &CleanPath::root(), || Ok(open(here.path())), &control()).unwrap_err();
    assert!(e.kind == Kind::Exists && server.said() < 200_000, "{e}, {}", server.said());
    assert_eq!(std::fs::read(here.path().join("f")).unwrap(), bytes(5, 3_000_000));
}

/// WAIT for ever, and a byte now and then of a true answer: neither keeps a client for ever, whatever it asks.
#[test]
fn a_server_that_only_waits_or_trickles_is_given_up() {
    let none = HeldPrefix { bytes: 0, hash: hash(b"") };
    let holding = framed(&[Frame::Holding { held: none, whole: false }]);
    let begin = framed(&[Frame::Begin { start: 0, size: 9_000 }]);
    let waits = |_: &Request| Trickle(Vec::new(), framed(&[Frame::Wait]));
    // A frame of 9000 bytes, of which some 150 come until the time is over.
    let trickles = move |request: &Request| {
        let (once, kind) = match request {
            Request::Get { .. } => (begin.clone(), 2),
            Request::Put { .. } => (holding.clone(), 7),
            _ => (Vec::new(), 8),
        };
        Trickle([once, vec![kind, 0, 0x23, 0x28]].concat(), vec![1])
    };
    let holds = framed(&[Frame::Holding { held: none, whole: false }]);
    let waits_after = move |_: &Request| Trickle(holds.clone(), framed(&[Frame::Wait]));

    let errors = |server: &dyn Session| {
        let here = tempfile::tempdir().unwrap();
        let (dir, tree) = (open(here.path()), here.path().join("d"));
        std::fs::write(here.path().join("mine"), bytes(1, 3000)).unwrap();
        let errors = [
            put(server, &dir, Path::new("mine"), &path("f"), &control()).unwrap_err(),
            get(server, &path("f"), &dir, "f", &control()).unwrap_err(),
            get_tree(server, &path("d"), || Ok(open(&tree)), &control()).unwrap_err(),
            list(server, &path("d")).unwrap_err(),
        ];
        assert!(!here.path().join("f").exists() && !tree.exists());
        errors.iter().for_each(clear);
        errors
    };
    for e in errors(&liar(waits)) {
        assert!(e.kind == Kind::Cut && e.line.contains("at work"), "{e}");
    }
    for e in errors(&liar(trickles)) {
        assert!(e.kind == Kind::Cut && e.line.contains("moved only"), "{e}");
    }
    // Of an upload that was sent whole the end is waited for.
    let [upload, ..] = errors(&liar(waits_after));
    assert!(upload.kind == Kind::Cut && upload.line.contains("at work"), "{upload}");
}
