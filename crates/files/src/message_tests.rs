use super::*;
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
        FileFrame::Begin { start: 3, size: u64::MAX },
        FileFrame::Holding { held, whole: true },
        FileFrame::Start(5),
        FileFrame::Done,
        FileFrame::Listed(vec![
            DirectoryEntry { kind: EntryKind::File, size: 1, modified: -5, name: "ä".into() },
            DirectoryEntry { kind: EntryKind::FolderLink, size: 0, modified: 9, name: "b".into() },
        ]),
        FileFrame::ListEnd { folder: true, hidden: 2 },
        FileFrame::Tuned(Tuning { controller: "rrtp+bbr".into(), ..Tuning::default() }),
    ] {
        round(&frame);
    }
    for request in [
        FileRequest::List { path: "a/b".into() },
        FileRequest::Get { path: "a".into(), held: None },
        FileRequest::Get { path: "a".into(), held: Some(held) },
        FileRequest::Put { path: String::new(), size: 3 },
        FileRequest::MakeFolder { path: "x".into() },
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
        assert_eq!(FileRequest::read(bytes[3], &bytes[6..]).unwrap(), request);
        assert_eq!(usize::from(u16::from_be_bytes([bytes[4], bytes[5]])), bytes.len() - 6);
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
    fn no_bytes_of_a_peer_break_the_decoders(kind in 0u8..12, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = FileRequest::read(kind, &bytes);
        if let Ok(frame) = FileFrame::read(kind, &bytes) {
            let (again, payload) = frame.parts();
            prop_assert_eq!(again, kind);
            prop_assert_eq!(FileFrame::read(again, &payload).unwrap(), frame);
        }
    }
}
