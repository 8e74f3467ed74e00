//! Files whose errors name them, and sections of pages.

#[cfg(feature = "validate")]
use serde::{Serialize, de::DeserializeOwned};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Adds a path to an error.
pub fn failed(path: &Path) -> impl Fn(io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |e| format!("{path}: {e}")
}

pub fn read(path: impl AsRef<Path>) -> Result<String, String> {
    fs::read_to_string(&path).map_err(failed(path.as_ref()))
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(&path, content).map_err(failed(path.as_ref()))
}

/// The entries of a folder, by name.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let all = fs::read_dir(folder).and_then(|all| all.map(|e| Ok(e?.path())).collect());
    let mut all: Vec<PathBuf> = all.map_err(failed(folder))?;
    all.sort();
    Ok(all)
}

/// The Rust files in a folder and the folders below it, by path.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes a value as JSON.
#[cfg(feature = "validate")]
pub fn keep(path: impl AsRef<Path>, value: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| e.to_string())?;
    write(path, text + "\n")
}

/// Reads a value that [`keep`] wrote.
#[cfg(feature = "validate")]
pub fn kept<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T, String> {
    serde_json::from_str(&read(&path)?).map_err(|e| format!("{}: {e}", path.as_ref().display()))
}

/// Puts a section on a page between its marks, or at the page's end. The rest of the page stays.
#[cfg(feature = "measure")]
pub fn write_section(page: &str, name: &str, section: &str) -> Result<(), String> {
    let text = read(page)?;
    let appended = || format!("{}\n\n{}", text.trim_end(), marked(name, section));
    write(page, with_section(&text, name, section).unwrap_or_else(appended))?;
    eprintln!("wrote {page}");
    Ok(())
}

/// A page with another section between the marks of this name.
#[cfg(feature = "validate")]
pub fn with_section(page: &str, name: &str, section: &str) -> Option<String> {
    let [begin, end] = marks(name);
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{}{after}", marked(name, section)))
}

/// A section with its marks.
#[cfg(feature = "validate")]
pub fn marked(name: &str, section: &str) -> String {
    let [begin, end] = marks(name);
    format!("{begin}{section}{end}")
}

/// The section between the marks of this name.
#[cfg(feature = "validate")]
pub fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let [begin, end] = marks(name);
    Some(page.split_once(&begin)?.1.split_once(&end)?.0)
}

/// Lines before and after a section.
#[cfg(feature = "validate")]
pub fn marks(name: &str) -> [String; 2] {
    ["begin", "end"].map(|side| format!("<!-- {side} {name} -->\n"))
}

#[cfg(all(test, feature = "validate"))]
mod tests {
    use super::*;

    #[test]
    fn section_is_replaced_and_surrounding_text_stays() {
        let page = "# Page\n\n<!-- begin figures -->\none\n<!-- end figures -->\n\nMore.\n";
        let two = page.replace("one", "two");
        assert_eq!(with_section(page, "figures", "two\n"), Some(two));
        assert_eq!(section(page, "figures"), Some("one\n"));
        assert_eq!(with_section(page, "others", "two\n"), None);
    }
}
