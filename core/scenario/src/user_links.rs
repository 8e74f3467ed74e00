//! The user's own named links: a TOML file with a line `name = "SPECIFICATION"` for each.
//!
//! A program sets the file once ([`set_file`]); without that, a library reads no file.

use crate::link::BottleneckLink;
use crate::links::LINKS;
use crate::output_file;
use crate::text_file;
use narrows_base::SpecError;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Name of the file in a user's configuration folder.
pub const FILE_NAME: &str = "links.toml";
/// Limit on the file's size in bytes.
const MAX_FILE: u64 = 262_000;
/// Limit on a name's length in characters.
const MAX_NAME: usize = 32;

/// Reads all links of a file.
type ReadLinks = fn(&Path) -> Result<BTreeMap<String, String>, SpecError>;

/// The file, and its reader: a program that sets no file contains none.
static FILE: OnceLock<(PathBuf, ReadLinks)> = OnceLock::new();

/// Sets the file of the user's links, which need not exist. Only the first call has an effect.
pub fn set_file(file: PathBuf) {
    let _ = FILE.set((file, read));
}

/// Names and specifications of the user's links; empty without a file.
///
/// # Errors
/// The file cannot be read, or it is invalid.
pub fn all() -> Result<BTreeMap<String, String>, SpecError> {
    FILE.get().map_or_else(|| Ok(BTreeMap::new()), |(file, read)| read(file))
}

/// The specification of that name, if it is in the user's file.
///
/// # Errors
/// The file cannot be read, or it is invalid.
pub(crate) fn find(name: &str) -> Result<Option<String>, SpecError> {
    Ok(all()?.remove(name))
}

/// The names in the user's file, for suggestions; empty if it cannot be read.
pub(crate) fn names() -> Vec<String> {
    all().unwrap_or_default().into_keys().collect()
}

/// All links of a file; empty if it does not exist.
///
/// # Errors
/// It cannot be read, is too long, or contains anything but names and specifications.
pub fn read(file: &Path) -> Result<BTreeMap<String, String>, SpecError> {
    if !file.exists() {
        return Ok(BTreeMap::new());
    }
    let at = |why: &str| SpecError::new(format!("{}: {why}", file.display()));
    let text = text_file::read(file, MAX_FILE, "file of links")?;
    toml::from_str(&text).map_err(|e| {
        let why = e.message().lines().next().unwrap_or_default().to_string();
        at(&format!("{why}: a line of it is name = \"RATE,DELAY,...\""))
    })
}

/// Checks whether a link may have this name.
///
/// # Errors
/// The rule that the name violates.
pub fn check_name(name: &str) -> Result<(), SpecError> {
    let form = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
        && name.len() <= MAX_NAME;
    if !form {
        let shown: String = name.chars().take(MAX_NAME).flat_map(char::escape_default).collect();
        return Err(SpecError::new(format!(
            "'{shown}' is no name of a link: at most {MAX_NAME} of a-z, 0-9, - and _, a letter first"
        )));
    }
    if LINKS.iter().any(|l| l.descriptor.name == name) {
        return Err(SpecError::new(format!(
            "'{name}' is a link of narrows' own: take another name"
        )));
    }
    Ok(())
}

/// Adds a link to a file with a comment, or replaces the one of that name. The file is replaced as a whole.
///
/// # Errors
/// An invalid name or link, or the file cannot be read or written.
pub fn save(file: &Path, name: &str, link: &str, comment: Option<&str>) -> Result<(), SpecError> {
    check_name(name)?;
    BottleneckLink::parse(link, Path::new(""))?;
    let mut all = read(file)?;
    all.insert(name.into(), link.into());
    let at = |e: &dyn std::fmt::Display| SpecError::new(format!("{}: {e}", file.display()));
    let text = with_line(file, &all, name, comment)?;
    if text.len() as u64 > MAX_FILE {
        return Err(at(&"longer than 262 kB with this link"));
    }
    if let Some(folder) = file.parent() {
        // The folder is also that of keys and known servers.
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder).map_err(|e| at(&e))?;
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let written = output_file::create(&new)
        .and_then(|mut new| new.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&new, file));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&new);
        at(&e)
    })
}

/// The file's text with the line of one of these links renewed; other lines and their comments stay.
fn with_line(
    file: &Path,
    all: &BTreeMap<String, String>,
    name: &str,
    comment: Option<&str>,
) -> Result<String, SpecError> {
    let old = match file.exists() {
        true => text_file::read(file, MAX_FILE, "file of links")?,
        false => String::new(),
    };
    let is_other = |line: &&str| {
        let found = toml::from_str::<BTreeMap<String, String>>(line);
        found.map_or(true, |found| !found.contains_key(name))
    };
    let line = |name: &str, link: &str| {
        toml::Table::from_iter([(name.to_string(), link.to_string().into())]).to_string()
    };
    let mut text: String = old.lines().filter(is_other).map(|l| format!("{l}\n")).collect();
    text += line(name, &all[name]).trim_end();
    text += &comment.map_or("\n".into(), |comment| format!("  # {comment}\n"));
    // A value may take several lines.
    let is_whole = toml::from_str::<BTreeMap<String, String>>(&text).is_ok_and(|now| now == *all);
    if is_whole { Ok(text) } else { Ok(all.iter().map(|(name, link)| line(name, link)).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_saved_whole_and_read_again() {
        let folder = std::env::temp_dir().join(format!("narrows-links-{}", std::process::id()));
        let file = folder.join("links.toml");
        assert!(read(&file).unwrap().is_empty(), "a file that does not exist has no links");
        save(&file, "home", "20Mbit/s,10ms,loss=1%", None).unwrap();
        save(&file, "train", "2Mbit/s,60ms,loss=ge(g=1%,h=20%)", Some("rate: at least")).unwrap();
        // A link under the temporary file's name is not written through.
        let new = file.with_extension(format!("{}.new", std::process::id()));
        let elsewhere = folder.join("elsewhere");
        std::fs::write(&elsewhere, "kept").unwrap();
        std::fs::hard_link(&elsewhere, &new).unwrap();
        save(&file, "home", "30Mbit/s,10ms", None).unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "kept");
        let all = read(&file).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all["home"], "30Mbit/s,10ms");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("  # rate: at least\n"), "{text}");
        std::fs::write(&file, "home = \"\"\"\n1Mbit/s,1ms\"\"\"\n").unwrap();
        save(&file, "home", "30Mbit/s,10ms", Some("left out")).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "home = \"30Mbit/s,10ms\"\n");
        save(&file, "train", &all["train"], None).unwrap();
        for (name, link) in [("home", "fast"), ("geo", "1Mbit/s,1ms"), ("A b", "1Mbit/s,1ms")] {
            assert!(save(&file, name, link, None).is_err(), "{name} = {link}");
        }
        assert_eq!(read(&file).unwrap(), all, "what is refused changes nothing");
        for (broken, why) in [("home = 3", "name ="), ("home", "name ="), ("x = [", "name =")] {
            std::fs::write(&file, broken).unwrap();
            let e = read(&file).unwrap_err().to_string();
            assert!(e.contains(why) && e.lines().count() == 1, "{broken}: {e}");
        }
        std::fs::write(&file, "#".repeat(300 << 10)).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("longer than 262 kB"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
