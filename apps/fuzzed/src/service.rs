//! The file service's server with an arbitrary client on one stream: no panic, well-formed frames in the answer, no
//! file changed except by a complete upload, and no file outside its folder.

use crate::network::{SentBytes, Untold, stream};
use narrows_files::Service;
use narrows_files::frames::FileFrameReader;
use narrows_files::message::FileFrame;
use narrows_files::path::is_part;
use narrows_files::service::Permits;
use std::path::{Path, PathBuf};

struct Folder {
    // Removed with the thread.
    all: tempfile::TempDir,
    root: PathBuf,
    service: Service,
}

const OUTSIDE: &[u8] = b"outside the folder";

fn folder() -> Folder {
    let all = tempfile::tempdir().expect("a folder");
    let root = all.path().join("root");
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::write(all.path().join("outside"), OUTSIDE).expect("a file");
    let permits = Permits { put: true, overwrite: true, ..Permits::default() };
    let service = Service::new(&root, permits, |_| ()).expect("a service");
    Folder { all, root, service }
}

/// Restores the initial files.
fn reset(root: &Path) {
    for entry in std::fs::read_dir(root).expect("the root").flatten() {
        let path = entry.path();
        let gone = if entry.file_type().is_ok_and(|t| t.is_dir()) {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        gone.expect("removed");
    }
    std::fs::write(root.join("f"), [7; 3000]).expect("a file");
    std::fs::create_dir(root.join("d")).expect("a folder");
    std::fs::write(root.join("d/.g.narrows-part"), b"half").expect("a file");
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside", root.join("out")).expect("a link");
}

thread_local! {
    static FOLDER: Folder = folder();
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    FOLDER.with(|folder| {
        reset(&folder.root);
        let said = SentBytes::default();
        folder.service.answer(&[1; 32], "fuzz", stream(bytes, &said), &Untold);
        let answer = said.take();
        let mut done = false;
        let mut frames = FileFrameReader::new(&answer[..]);
        loop {
            match frames.frame() {
                Ok(FileFrame::Data(data)) => {
                    assert!(!data.windows(4).any(|w| w == &OUTSIDE[..4]), "it left its folder");
                }
                Ok(FileFrame::Done) => done = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let outside = std::fs::read(folder.all.path().join("outside")).expect("the file outside");
        assert_eq!(outside, OUTSIDE, "it left its folder");
        if !done {
            let names: Vec<String> = std::fs::read_dir(&folder.root)
                .expect("the root")
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .filter(|n| !is_part(n))
                .collect();
            assert!(names.iter().all(|n| ["f", "d", "out"].contains(&n.as_str())), "{names:?}");
            assert_eq!(std::fs::read(folder.root.join("f")).expect("the file"), [7; 3000]);
        }
    });
}
