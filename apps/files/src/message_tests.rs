use super::*;
use crate::frames::request_head;
use narrows_peers::ErrorKind;
use proptest::prelude::*;

fn round(frame: &FileFrame<'_>) {
    let (kind, payload) = frame.parts();
    assert_eq!(&FileFrame::read(kind, &payload).unwrap(), frame);
}

#[test]
fn every_frame_and_request_comes_back() {
    let held = HeldPrefix { bytes: 7, hash: [9; 32] };
    for frame in [
        FileFrame::Wait,
        FileFrame::Error(Error::new(ErrorKind::Full, "the disk is full")),
        FileFrame::Data(b"abc"),
        FileFrame::End([1; 32]),
        FileFrame::Begin { start: 3, size: u64::MAX, mode: None },
        FileFrame::Holding { held, whole: true },
        FileFrame::Start(5),
        FileFrame::Done,
        FileFrame::Listed(vec![
            DirectoryEntry { kind: EntryKind::File, size: 1, modified: -5, name: "ä".into() },
            DirectoryEntry { kind: EntryKind::FolderLink, size: 0, modified: 9, name: "b".into() },
        ]),
        FileFrame::ListEnd { folder: true, hidden: 2, mode: None },
        FileFrame::ListEnd { folder: true, hidden: 2, mode: Mode::from_bits(0o755) },
        FileFrame::Begin { start: 3, size: 9, mode: Mode::from_bits(0) },
        FileFrame::Tuned(Tuning { controller: "rrtp+bbr".into(), ..Tuning::default() }),
    ] {
        round(&frame);
    }
    for request in [
        FileRequest::List { path: "a/b".into(), modes: false },
        FileRequest::Get { path: "a".into(), held: None, modes: false },
        FileRequest::Get { path: "a".into(), held: Some(held), modes: false },
        FileRequest::Put { path: String::new(), size: 3, mode: None },
        FileRequest::MakeFolder { path: "x".into(), mode: None },
        FileRequest::List { path: "a/b".into(), modes: true },
        FileRequest::Get { path: "a".into(), held: Some(held), modes: true },
        FileRequest::Put { path: String::new(), size: 3, mode: Mode::from_bits(0o600) },
        FileRequest::MakeFolder { path: "x".into(), mode: Some(Mode::ANY) },
        FileRequest::Tune(Tuning::default()),
        FileRequest::Tune(Tuning {
            path: PathHints {
                rate: Some(Rate::from_bps(1_500_000)),
                rtt: Some(Duration::from_millis(80)),
                loss: Some(0.01),
            },
            controller: "rrtp+bbr".into(),
        }),
    ] {
        let bytes = request.bytes();
        let (head, body) = bytes.split_first_chunk().unwrap();
        let head = request_head(*head).unwrap();
        assert_eq!(FileRequest::read(head, body).unwrap(), request);
        assert_eq!(head.length, body.len());
    }
}

#[test]
fn permissions_with_other_bits_are_refused() {
    for bits in [0o1000_u16, 0o4755, 0o2755, u16::MAX] {
        let put = FileRequest::Put { path: "f".into(), size: 3, mode: Some(Mode::ANY) };
        let making = FileRequest::MakeFolder { path: "d".into(), mode: Some(Mode::ANY) };
        for request in [put, making] {
            let mut bytes = request.bytes();
            let at = bytes.len() - 2;
            bytes[at..].copy_from_slice(&bits.to_be_bytes());
            let (head, body) = bytes.split_first_chunk().unwrap();
            assert!(FileRequest::read(request_head(*head).unwrap(), body).is_err());
        }
        let begin = FileFrame::Begin { start: 0, size: 3, mode: Some(Mode::ANY) };
        let end = FileFrame::ListEnd { folder: true, hidden: 0, mode: Some(Mode::ANY) };
        for frame in [begin, end] {
            let (kind, mut payload) = frame.parts();
            let at = payload.len() - 2;
            payload[at..].copy_from_slice(&bits.to_be_bytes());
            assert!(FileFrame::read(kind, &payload).is_err());
        }
    }
}

#[test]
fn request_without_permissions_has_the_oldest_version() {
    let version = |request: FileRequest| request.bytes()[2];
    assert_eq!(version(FileRequest::Put { path: "f".into(), size: 3, mode: None }), 2);
    assert_eq!(version(FileRequest::Put { path: "f".into(), size: 3, mode: Some(Mode::ANY) }), 3);
    assert_eq!(version(FileRequest::Tune(Tuning::default())), 2);
    for version in [1, 4] {
        assert_eq!(
            request_head([b'N', b'F', version, 1, 0, 0]).unwrap_err().kind,
            ErrorKind::Version
        );
    }
}

#[test]
fn an_errors_text_cannot_drive_a_terminal() {
    let (kind, payload) = FileFrame::Error(Error::new(ErrorKind::Full, "a\u{1b}[2J\nb")).parts();
    let FileFrame::Error(e) = FileFrame::read(kind, &payload).unwrap() else { panic!("no error") };
    assert_eq!(e.line, "a\\u{1b}[2J\\nb");
}

proptest! {
    #[test]
    fn no_bytes_of_a_peer_break_the_decoders(
        kind in 0u8..12,
        version in OLDEST_VERSION..=VERSION,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = FileRequest::read(RequestHead { version, kind, length: bytes.len() }, &bytes);
        if let Ok(frame) = FileFrame::read(kind, &bytes) {
            let (again, payload) = frame.parts();
            prop_assert_eq!(again, kind);
            prop_assert_eq!(FileFrame::read(again, &payload).unwrap(), frame);
        }
    }
}
