//! Whole folders: first what there is, then file by file, a few at a time.

use super::{Summary, get, list, make_folder, put};
use crate::error::{Error, Kind, shown};
use crate::go::{Go, Step};
use crate::message::EntryKind;
use crate::path::{CleanPath, check_name, is_part};
use crate::stream::Session;
use cap_std::fs::Dir;
use std::sync::{Mutex, PoisonError};

/// Files on their way at the same time.
const AT_ONCE: usize = 4;
/// Files and folders of one walk.
const WALK_MOST: usize = 1_000_000;

/// A walk's result: folders from above to below, and files.
#[derive(Default)]
struct Walk {
    folders: Vec<CleanPath>,
    files: Vec<CleanPath>,
    skipped: u64,
}

impl Walk {
    fn check(&self) -> Result<(), Error> {
        if self.folders.len() + self.files.len() > WALK_MOST {
            let line = "more than 1000000 files and folders: get or put parts of it";
            return Err(Error::new(Kind::Busy, line));
        }
        Ok(())
    }
}

/// Gets everything below the folder `path` into the folder that `open` opens, once it is known that
/// there is something to get.
///
/// # Errors
/// The first that occurs; files that are whole by then stay.
pub fn get_tree(
    session: &dyn Session,
    path: &CleanPath,
    open: impl FnOnce() -> Result<Dir, Error>,
    go: &Go,
) -> Result<Summary, Error> {
    // Paths of the walk are relative to `path`.
    let mut walk = Walk { folders: vec![CleanPath::root()], ..Walk::default() };
    let mut next = 0;
    while let Some(folder) = walk.folders.get(next).cloned() {
        next += 1;
        go.check()?;
        let listing = list(session, &below(path, &folder)?)?;
        if !listing.folder {
            let line = format!("/{path}: is a file; leave the last '/' away");
            return Err(Error::new(Kind::WrongType, line));
        }
        walk.skipped = walk.skipped.saturating_add(listing.hidden);
        for entry in &listing.entries {
            match entry.kind {
                EntryKind::File => {
                    go.tell(Step::Expect(entry.size));
                    walk.files.push(folder.join(&entry.name)?);
                }
                EntryKind::Folder => walk.folders.push(folder.join(&entry.name)?),
                EntryKind::FolderLink => walk.skipped += 1,
            }
        }
        walk.check()?;
    }
    let dir = open()?;
    for folder in &walk.folders {
        dir.create_dir_all(folder.relative()).map_err(|e| Error::file(&told(folder), &e))?;
    }
    each(&walk, go, |file| {
        let (folder, name) = file.split().ok_or_else(|| Error::protocol("a file without name"))?;
        let inside =
            dir.open_dir(folder.relative()).map_err(|e| Error::file(&told(&folder), &e))?;
        get(session, &below(path, file)?, &inside, name, go).map_err(|e| e.at(&told(file)))
    })
}

/// Puts everything below `dir` into the folder `path`, which is made where it is missing.
///
/// # Errors
/// The first that occurs; files that are whole by then stay.
pub fn put_tree(
    session: &dyn Session,
    dir: &Dir,
    path: &CleanPath,
    go: &Go,
) -> Result<Summary, Error> {
    let mut walk = Walk { folders: vec![CleanPath::root()], ..Walk::default() };
    let mut next = 0;
    while let Some(folder) = walk.folders.get(next).cloned() {
        next += 1;
        go.check()?;
        look(dir, &folder, &mut walk, go)?;
        walk.check()?;
    }
    for folder in &walk.folders {
        go.check()?;
        make_folder(session, &below(path, folder)?)?;
    }
    each(&walk, go, |file| put(session, dir, &file.relative(), &below(path, file)?, go))
}

/// One local folder's entries, sorted.
fn look(dir: &Dir, folder: &CleanPath, walk: &mut Walk, go: &Go) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::file(&told(folder), &e);
    let inside = dir.open_dir(folder.relative()).map_err(failed)?;
    let mut names = Vec::new();
    for entry in inside.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        match entry.file_name().into_string() {
            Ok(name) if is_part(&name) => {}
            Ok(name) if check_name(&name).is_ok() => names.push(name),
            _ => walk.skipped += 1,
        }
    }
    names.sort_unstable();
    for name in names {
        let link = inside.symlink_metadata(&name).is_ok_and(|a| a.is_symlink());
        match inside.metadata(&name) {
            Ok(about) if about.is_file() => {
                go.tell(Step::Expect(about.len()));
                walk.files.push(folder.join(&name)?);
            }
            Ok(about) if about.is_dir() && !link => walk.folders.push(folder.join(&name)?),
            // Links to folders, links out of here or to nothing, devices.
            _ => walk.skipped += 1,
        }
    }
    Ok(())
}

/// Does it for every file, a few at a time.
fn each(
    walk: &Walk,
    go: &Go,
    one: impl Fn(&CleanPath) -> Result<Summary, Error> + Sync,
) -> Result<Summary, Error> {
    let files = Mutex::new(walk.files.iter());
    let result = Mutex::new((Summary { skipped: walk.skipped, ..Summary::default() }, None));
    let work = || {
        loop {
            if result.lock().unwrap_or_else(PoisonError::into_inner).1.is_some() {
                return;
            }
            let Some(file) = files.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                return;
            };
            let done = go.check().and_then(|()| one(file));
            let mut all = result.lock().unwrap_or_else(PoisonError::into_inner);
            match done {
                Ok(summary) => all.0.add(summary),
                Err(e) => all.1 = all.1.take().or(Some(e)),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(walk.files.len()) {
            scope.spawn(work);
        }
    });
    let (summary, failed) = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed {
        None => Ok(summary),
        Some(e) => Err(e.and(&format!(
            "{} of {} files are whole, the same command goes on",
            summary.files,
            walk.files.len()
        ))),
    }
}

fn below(path: &CleanPath, relative: &CleanPath) -> Result<CleanPath, Error> {
    relative.names().iter().try_fold(path.clone(), |path, name| path.join(name))
}

fn told(path: &CleanPath) -> String {
    if path.is_root() { ".".into() } else { shown(&path.to_string()) }
}
