use super::*;
use narrows_peers::Kind;
use proptest::prelude::*;

fn round(frame: &Frame<'_>) {
    let (kind, payload) = frame.parts();
    assert_eq!(&Frame::read(kind, &payload).unwrap(), frame);
}

#[test]
fn every_frame_and_request_comes_back() {
    let held = HeldPrefix { bytes: 7, hash: [9; 32] };
    for frame in [
        Frame::Wait,
        Frame::Error(Error::new(Kind::Full, "the disk is full")),
        Frame::Data(b"abc"),
        Frame::End([1; 32]),
        Frame::Begin { start: 3, size: u64::MAX },
        Frame::Holding { held, whole: true },
        Frame::Start(5),
        Frame::Done,
        Frame::Listed(vec![
            DirectoryEntry { kind: EntryKind::File, size: 1, modified: -5, name: "ä".into() },
            DirectoryEntry { kind: EntryKind::FolderLink, size: 0, modified: 9, name: "b".into() },
        ]),
        Frame::ListEnd { folder: true, hidden: 2 },
        Frame::Tuned(Tuning { controller: "rrtp+bbr".into(), ..Tuning::default() }),
    ] {
        round(&frame);
    }
    for request in [
        Request::List { path: "a/b".into() },
        Request::Get { path: "a".into(), held: None },
        Request::Get { path: "a".into(), held: Some(held) },
        Request::Put { path: String::new(), size: 3 },
        Request::MakeFolder { path: "x".into() },
        Request::Tune(Tuning::default()),
        Request::Tune(Tuning {
            path: PathHints {
                rate: Some(Rate::from_bps(1_500_000)),
                rtt: Some(Duration::from_millis(80)),
                loss: Some(0.01),
            },
            controller: "rrtp+bbr".into(),
        }),
    ] {
        let bytes = request.bytes();
        assert_eq!(Request::read(bytes[3], &bytes[6..]).unwrap(), request);
        assert_eq!(usize::from(u16::from_be_bytes([bytes[4], bytes[5]])), bytes.len() - 6);
    }
}

#[test]
fn an_errors_text_cannot_drive_a_terminal() {
    let (kind, payload) = Frame::Error(Error::new(Kind::Full, "a\u{1b}[2J\nb")).parts();
    let Frame::Error(e) = Frame::read(kind, &payload).unwrap() else { panic!("no error") };
    assert_eq!(e.line, "a\\u{1b}[2J\\nb");
}

proptest! {
    #[test]
    fn no_bytes_of_a_peer_break_the_decoders(kind in 0u8..12, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::read(kind, &bytes);
        if let Ok(frame) = Frame::read(kind, &bytes) {
            let (again, payload) = frame.parts();
            prop_assert_eq!(again, kind);
            prop_assert_eq!(Frame::read(again, &payload).unwrap(), frame);
        }
    }
}
