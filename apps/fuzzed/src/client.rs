//! The file service's client with an arbitrary server: no panic, no incomplete file under a final name, and no file
//! outside the target folder.

use crate::network::{Hostile, control};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_files::client::{UploadTree, get, get_tree, list, put, put_tree, tune};
use narrows_files::path::{CleanPath, check_name, part_name};
use std::path::Path;

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a folder");
}

/// The first byte selects the command and the files that exist before.
pub fn run(bytes: &[u8]) {
    let Some((how, answers)) = bytes.split_first() else { return };
    FOLDER.with(|folder| {
        let here = folder.path().join("here");
        let _ = std::fs::remove_dir_all(&here);
        std::fs::create_dir_all(&here).expect("a folder");
        let server = Hostile::new(answers);
        let open = || Dir::open_ambient_dir(&here, ambient_authority()).expect("the folder");
        let path = CleanPath::read("f").expect("a path");
        match how % 6 {
            0 => {
                if how & 16 != 0 {
                    std::fs::write(here.join(part_name("f")), [7; 100]).expect("a file");
                }
                let done = get(&server, &path, &open(), "f", &control());
                assert_eq!(done.is_ok(), here.join("f").exists());
            }
            1 => {
                std::fs::write(here.join("f"), [7; 100]).expect("a file");
                let done = get(&server, &path, &open(), "f", &control());
                let now = std::fs::read(here.join("f")).expect("the file of before or a new one");
                assert!(done.is_ok() || now == [7; 100], "half a file under its name");
            }
            2 => {
                std::fs::write(here.join("f"), [7; 3000]).expect("a file");
                let _ = put(&server, &open(), Path::new("f"), &path, &control());
                assert_eq!(std::fs::read(here.join("f")).expect("the file"), [7; 3000]);
            }
            3 => {
                if let Ok(listing) = list(&server, &path) {
                    assert!(listing.entries.iter().all(|e| check_name(&e.name).is_ok()));
                }
                let _ = tune(&server, Default::default());
            }
            4 => {
                let _ = get_tree(&server, &path, |_| Ok(open()), &control());
            }
            _ => {
                std::fs::create_dir(here.join("d")).expect("a folder");
                std::fs::write(here.join("d/f"), b"some").expect("a file");
                let _ = put_tree(&server, &UploadTree::contents(open()), &path, &control());
            }
        }
        let beside = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(beside, 1, "it left its folder");
    });
}
