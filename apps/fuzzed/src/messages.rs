//! Requests and frames of the file service from any peer: no panic, bounded memory, and decoded messages are encoded
//! and decoded again unchanged.

use narrows_files::frames::{self, FileFrameReader};
use narrows_files::message::{FileFrame, FileRequest, MAX_FRAME};
use narrows_files::path::CleanPath;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    if let Ok(Some(request)) = frames::request(&mut &bytes[..]) {
        let again = frames::request(&mut &request.bytes()[..]).expect("what was written is read");
        assert_eq!(again.as_ref(), Some(&request));
        if let FileRequest::Get { path, .. } | FileRequest::Put { path, .. } = &request
            && let Ok(clean) = CleanPath::read(path)
        {
            assert!(clean.names().all(|n| n != ".." && !n.contains(['/', '\0'])));
            assert_eq!(CleanPath::read(&clean.to_string()).as_ref(), Ok(&clean));
        }
    }
    let mut frames = FileFrameReader::new(bytes);
    while let Ok(frame) = frames.frame() {
        same(&frame);
    }
    if let Some((kind, payload)) = bytes.split_first()
        && let Ok(frame) = FileFrame::read(*kind, payload)
    {
        same(&frame);
    }
}

fn same(frame: &FileFrame<'_>) {
    let (kind, payload) = frame.parts();
    assert!(payload.len() <= MAX_FRAME + 16 || matches!(frame, FileFrame::Data(_)));
    match FileFrame::read(kind, &payload) {
        // The error text is truncated once, and then stays.
        Ok(FileFrame::Error(e)) => assert!(e.line.chars().all(|c| !c.is_control())),
        again => assert_eq!(again.as_ref(), Ok(frame)),
    }
}
