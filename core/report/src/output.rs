//! The output files of a run; each is written completely or not at all.

use crate::columns::Columns;
use crate::variables::{Explained, of_measures, of_series};
use crate::{html, json, picture, seeds, series, summary};
use narrows_lab::outcome::Outcome;
use narrows_scenario::output_file;
use narrows_scenario::text_file::plain;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Checks before the simulation that the path is a folder, or that it can be created.
///
/// # Errors
/// One line that names the obstacle.
pub fn check_folder(folder: &Path) -> Result<(), String> {
    check_folder_of("--out", folder)
}

/// The same for another flag.
///
/// # Errors
/// One line that names the obstacle.
pub fn check_folder_of(flag: &str, folder: &Path) -> Result<(), String> {
    if folder.as_os_str().is_empty() {
        return Err(format!("{flag} needs the name of a folder"));
    }
    // If it does not exist yet, its closest existing ancestor must be a folder.
    match folder.ancestors().find(|a| a.exists()) {
        Some(there) if !there.is_dir() => {
            Err(format!("{flag} {}: {} is a file, not a folder", folder.display(), there.display()))
        }
        _ => Ok(()),
    }
}

/// Checks before the simulation that a file can be written.
///
/// # Errors
/// One line that names the obstacle.
pub fn check_file(flag: &str, file: &Path) -> Result<(), String> {
    let shown = file.display();
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
    if file.is_dir() || file.file_name().is_none() {
        return Err(format!("{flag} {shown}: that is a folder, not a file"));
    }
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(format!("{flag} {shown}: there is no folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The files of one run in a folder.
pub struct RunFiles<'a> {
    folder: &'a Path,
    written: Vec<PathBuf>,
}

impl<'a> RunFiles<'a> {
    /// Creates the folder, if there is none.
    ///
    /// # Errors
    /// One line that names the folder and the error.
    pub fn new(folder: &'a Path) -> Result<RunFiles<'a>, String> {
        fs::create_dir_all(folder)
            .map_err(|e| format!("cannot create the folder {}: {}", folder.display(), plain(&e)))?;
        Ok(RunFiles { folder, written: Vec::new() })
    }

    /// Writes a file.
    ///
    /// # Errors
    /// One line that names the file, the error, and the files of this run that the folder has.
    pub fn add(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), String> {
        let file = whole(&self.folder.join(name), write).map_err(|e| {
            let names = self.written.iter().filter_map(|f| f.file_name());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            match &names[..] {
                [] => e,
                _ => format!("{e}; of this run there are only {}", names.join(", ")),
            }
        })?;
        self.written.push(file);
        Ok(())
    }

    /// Writes a table as `NAME.csv`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn csv(&mut self, name: &str, table: &Columns) -> Result<(), String> {
        self.add(&format!("{name}.csv"), |file| file.write_all(table.csv().as_bytes()))
    }

    /// Writes a table as `NAME.parquet`, with metadata of the file and meanings of its columns. Nothing is written
    /// without the feature `parquet`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn parquet(
        &mut self,
        name: &str,
        table: &Columns,
        about: &[(&str, String)],
        explain: impl Fn(&str) -> Explained,
    ) -> Result<(), String> {
        #[cfg(feature = "parquet")]
        return self.add(&format!("{name}.parquet"), |file| {
            table.parquet(file, about, explain).map_err(|e| io::Error::other(e.to_string()))
        });
        #[cfg(not(feature = "parquet"))]
        {
            let _ = (name, table, about, explain);
            Ok(())
        }
    }

    /// The paths of the files.
    pub fn paths(self) -> Vec<PathBuf> {
        self.written
    }
}

/// Writes all files into `folder` and returns their paths.
///
/// # Errors
/// One line that names the file and the error.
pub fn write_all(outcome: &Outcome, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = report(outcome, folder)?;
    files.add("comparison.svg", |f| f.write_all(picture::svg(outcome).as_bytes()))?;
    Ok(files.paths())
}

/// The same without the picture that compares.
///
/// # Errors
/// One line that names the file and the error.
pub fn write_report(outcome: &Outcome, folder: &Path) -> Result<Vec<PathBuf>, String> {
    report(outcome, folder).map(RunFiles::paths)
}

fn report<'a>(outcome: &Outcome, folder: &'a Path) -> Result<RunFiles<'a>, String> {
    let mut files = RunFiles::new(folder)?;
    let mut text = serde_json::to_string_pretty(&json::outcome(outcome)).unwrap_or_default();
    text.push('\n');
    files.add("summary.json", |f| f.write_all(text.as_bytes()))?;
    files.add("summary.csv", |f| f.write_all(summary::csv(outcome).as_bytes()))?;
    let about = series::about(outcome);
    if let Some(table) = seeds::table(outcome) {
        files.csv("seeds", &table)?;
        files.parquet("seeds", &table, &about, of_measures)?;
    }
    let table = series::table(outcome);
    match cfg!(feature = "parquet") {
        true => files.parquet("series", &table, &about, of_series(outcome))?,
        false => files.csv("series", &table)?,
    }
    files.add("report.html", |f| f.write_all(html::html(outcome).as_bytes()))?;
    Ok(files)
}

/// Writes a temporary file next to the destination and moves it there once it is complete.
///
/// # Errors
/// One line that names the file and the error.
pub fn whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<PathBuf, String> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let made = output_file::create(&part).and_then(|mut file| write(&mut file));
    let done = made.and_then(|()| fs::rename(&part, path));
    match done {
        Ok(()) => Ok(path.to_path_buf()),
        Err(e) => {
            // An incomplete file is useless. If it cannot be removed, the first error is still the one to report.
            let _ = fs::remove_file(&part);
            Err(format!("cannot write {}: {}", path.display(), plain(&e)))
        }
    }
}
