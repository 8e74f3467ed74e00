//! Measures the prose of the docs and of comments: sentence length, words that hide the subject, comments that repeat a
//! name, and names with several definitions.
//!
//! Code blocks, inline code, tables, headings and quoted words are left out.

use crate::members;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words in a sentence from which it counts as long.
const LONG_SENTENCE: usize = 36;

/// Subjects that name no part of the system.
const VAGUE: [&str; 8] =
    ["who", "whose", "whoever", "nobody", "somebody", "what", "nothing", "none"];

/// Words that add no meaning to a name.
const FILLERS: [&str; 12] =
    ["the", "a", "an", "of", "its", "this", "to", "is", "in", "for", "as", "at"];

/// The largest part of a page's sentences that may be long.
const MAX_LONG: f64 = 0.04;

/// The most vague words in a sentence, in the mean of a page.
const MAX_VAGUE: f64 = 0.03;

/// The most type names with two definitions or more in the workspace.
const MAX_SHARED_NAMES: usize = 40;

/// Sentences below which a page's shares are chance.
const MIN_SENTENCES: usize = 25;

/// Counts of one page, or of the comments of one crate.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    sentences: usize,
    long: usize,
    vague: usize,
}

impl Counts {
    /// Counts a paragraph. Returns the sentences that count as long or vague.
    fn add(&mut self, paragraph: &str) -> Vec<String> {
        let mut faults = Vec::new();
        for sentence in sentences(paragraph) {
            let is_long = sentence.len() >= LONG_SENTENCE;
            let vague = sentence.iter().filter(|w| VAGUE.contains(&w.as_str())).count();
            self.sentences += 1;
            self.long += usize::from(is_long);
            self.vague += vague;
            if is_long || vague > 0 {
                faults.push(sentence.join(" "));
            }
        }
        faults
    }

    fn long_share(&self) -> f64 {
        self.long as f64 / self.sentences.max(1) as f64
    }

    fn vague_share(&self) -> f64 {
        self.vague as f64 / self.sentences.max(1) as f64
    }

    fn fails(&self) -> bool {
        self.sentences >= MIN_SENTENCES
            && (self.long_share() > MAX_LONG || self.vague_share() > MAX_VAGUE)
    }
}

/// The prose of the whole tree.
#[derive(Default)]
struct Tree {
    pages: BTreeMap<PathBuf, Counts>,
    /// File, line of the paragraph, and sentence of each long one and each with a vague subject.
    faults: Vec<String>,
    /// File and line of comments that repeat a name, or continue the comment before.
    empty: Vec<String>,
    /// Where each type is defined.
    types: BTreeMap<String, Vec<PathBuf>>,
}

/// Without arguments, prints a line for each page and crate, the worst last. With the beginnings of paths, prints the
/// sentences below them that are long or have a vague subject.
pub fn report(root: &Path, below: &[String]) -> Result<(), String> {
    let tree = Tree::read(root)?;
    if !below.is_empty() {
        let chosen = |line: &&String| below.iter().any(|b| line.starts_with(b.as_str()));
        tree.faults.iter().chain(&tree.empty).filter(chosen).for_each(|line| println!("{line}"));
        return Ok(());
    }
    let mut rows: Vec<_> = tree.pages.iter().filter(|(_, c)| c.sentences > 0).collect();
    rows.sort_by(|a, b| a.1.vague_share().total_cmp(&b.1.vague_share()));
    println!(
        "sentences  long %  vague per 100  page or crate (*: above {MAX_LONG} or {MAX_VAGUE})"
    );
    for (path, counts) in rows {
        println!(
            "{:9}  {:6.1}  {:13.1}  {}{}",
            counts.sentences,
            100.0 * counts.long_share(),
            100.0 * counts.vague_share(),
            path.display(),
            if counts.fails() { "  *" } else { "" },
        );
    }
    println!("\ncomments without content: {}", tree.empty.len());
    for line in &tree.empty {
        println!("  {line}");
    }
    let shared = tree.shared_names();
    let all = tree.types.len();
    println!(
        "type names defined twice or more: {} of {all}, at most {MAX_SHARED_NAMES}",
        shared.len()
    );
    for (name, places) in shared {
        println!("  {name}: {places}");
    }
    Ok(())
}

impl Tree {
    fn read(root: &Path) -> Result<Tree, String> {
        let mut tree = Tree::default();
        for page in pages(root).map_err(|e| format!("docs: {e}"))? {
            let text = read(&page)?;
            let mut counts = Counts::default();
            let page = within(root, &page);
            tree.count(&page, 0, &text, &mut counts);
            tree.pages.insert(page, counts);
        }
        for folder in members::folders(root).map_err(|e| format!("crates: {e}"))? {
            let mut files = Vec::new();
            rust_files(&folder.join("src"), &mut files).map_err(|e| format!("crates: {e}"))?;
            let mut counts = Counts::default();
            for file in files {
                tree.add_source(&within(root, &file), &read(&file)?, &mut counts);
            }
            tree.pages.insert(within(root, &folder), counts);
        }
        Ok(tree)
    }

    /// Counts a text that begins after line `above` of a file.
    fn count(&mut self, file: &Path, above: usize, text: &str, counts: &mut Counts) {
        for (line, paragraph) in paragraphs(text.lines()) {
            for sentence in counts.add(&paragraph) {
                self.faults.push(format!("{}:{}: {sentence}", file.display(), above + line));
            }
        }
    }

    fn add_source(&mut self, file: &Path, text: &str, counts: &mut Counts) {
        let is_test = file.components().any(|c| c.as_os_str().to_string_lossy().contains("tests"));
        for block in comment_blocks(text) {
            self.count(file, block.at - 1, &block.lines.join("\n"), counts);
            let first = block.lines.first().map_or("", |l| l.as_str());
            let continues = first.starts_with('…') || first.starts_with("...");
            if continues || block.repeats_the_name() {
                self.empty.push(format!("{}:{}: {first}", file.display(), block.at));
            }
        }
        if !is_test {
            for name in text.lines().filter_map(defined_type) {
                self.types.entry(name.into()).or_default().push(file.into());
            }
        }
    }

    /// Type names with two definitions or more, and where they are.
    fn shared_names(&self) -> Vec<(&str, String)> {
        let places = |files: &[PathBuf]| {
            files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        self.types
            .iter()
            .filter(|(_, files)| files.len() > 1)
            .map(|(name, files)| (name.as_str(), places(files)))
            .collect()
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn within(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).into()
}

/// The pages that people read: those at the top, and of `docs`.
fn pages(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for folder in [root.to_path_buf(), root.join("docs")] {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
    into.sort();
    Ok(())
}

/// Paragraphs and list items of Markdown with their first lines, without code, tables and headings.
fn paragraphs<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(usize, String)> {
    let mut found = vec![(1, String::new())];
    let mut in_code = false;
    for (number, line) in (1..).zip(lines) {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
        } else if line.is_empty() || line.starts_with(['|', '#', '<']) {
            found.push((number + 1, String::new()));
        } else {
            if is_list_item(line) {
                found.push((number, String::new()));
            }
            let (_, paragraph) = found.last_mut().expect("it begins with one");
            *paragraph += line;
            paragraph.push(' ');
        }
    }
    found.retain(|(_, p)| !p.trim().is_empty());
    found
}

fn is_list_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (number.len() < line.len() && number.starts_with(". "))
}

/// The words of each sentence in lower case. Inline code is one word, quoted words are left out.
fn sentences(paragraph: &str) -> Vec<Vec<String>> {
    let text = without(&without(paragraph, '`', "code"), '"', "quoted");
    let mut found = vec![Vec::new()];
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !bare.is_empty() {
            found.last_mut().expect("it begins with one").push(bare.to_lowercase());
        }
        let end = word.trim_end_matches([')', '*', '_']);
        if end.ends_with(['.', '!', '?']) && !is_abbreviation(end) {
            found.push(Vec::new());
        }
    }
    found.retain(|words| !words.is_empty());
    found
}

fn is_abbreviation(word: &str) -> bool {
    matches!(word.trim_start_matches('('), "e.g." | "i.e." | "cf." | "vs." | "Fig." | "eq." | "al.")
}

/// Replaces the text between two of `mark` by a word.
fn without(text: &str, mark: char, word: &str) -> String {
    let mut parts = text.split(mark);
    let mut result = parts.next().unwrap_or_default().to_string();
    while let Some(inside) = parts.next() {
        match parts.next() {
            Some(after) => {
                result += word;
                result += after;
            }
            None => result += inside,
        }
    }
    result
}

/// Consecutive comment lines of one kind, and the line of code below.
struct Block {
    at: usize,
    lines: Vec<String>,
    is_doc: bool,
    below: String,
}

impl Block {
    /// Whether a doc comment has only words of the documented name.
    fn repeats_the_name(&self) -> bool {
        let Some(name) = documented_name(&self.below).filter(|_| self.is_doc) else {
            return false;
        };
        let name_words = name_words(name);
        let text = self.lines.join(" ").to_lowercase();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        words.iter().all(|w| {
            FILLERS.contains(w)
                || name_words.iter().any(|n| n.trim_end_matches('s') == w.trim_end_matches('s'))
        })
    }
}

/// `max_idle` and `MaxIdle` are *max* and *idle*.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && last_lower) {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("it begins with one").extend(c.to_lowercase());
        }
        last_lower = c.is_lowercase();
    }
    words
}

fn comment_blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let kind = ["//!", "///", "//"].into_iter().find(|k| line.starts_with(k));
        match kind {
            Some(kind) => {
                if open != Some(kind) {
                    let is_doc = kind == "///";
                    blocks.push(Block {
                        at: number + 1,
                        lines: Vec::new(),
                        is_doc,
                        below: String::new(),
                    });
                }
                let block = blocks.last_mut().expect("one was pushed");
                block.lines.push(line[kind.len()..].trim().into());
                open = Some(kind);
            }
            None => {
                let is_attribute = line.starts_with("#[");
                if let Some(block) =
                    blocks.last_mut().filter(|b| b.below.is_empty() && !is_attribute)
                {
                    block.below = line.into();
                }
                if !is_attribute {
                    open = None;
                }
            }
        }
    }
    blocks
}

/// The name of the item, field or variant that a line defines.
fn documented_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    while words
        .peek()
        .is_some_and(|w| w.starts_with("pub") || ["async", "unsafe", "const"].contains(w))
    {
        if words.next() == Some("const") && words.peek().is_some_and(|w| *w != "fn") {
            return words.next().map(identifier);
        }
    }
    let first = words.next()?;
    let name = match first {
        "fn" | "struct" | "enum" | "trait" | "type" | "mod" | "static" => words.next()?,
        other => other,
    };
    Some(identifier(name)).filter(|n| !n.is_empty())
}

fn identifier(word: &str) -> &str {
    word.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The type that a line begins to define.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|w| w.starts_with("pub"));
    let kind = words.next()?;
    let is_type = !line.starts_with("//") && ["struct", "enum", "trait", "union"].contains(&kind);
    words.next().map(identifier).filter(|name| is_type && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        let mut counts = Counts::default();
        for (_, paragraph) in paragraphs(text.lines()) {
            counts.add(&paragraph);
        }
        counts
    }

    #[test]
    fn a_fault_names_the_line_of_its_paragraph() {
        let mut tree = Tree::default();
        tree.add_source(
            "a.rs".as_ref(),
            "\n\n// Fine.\n//\n// Nobody\n// knows.\n",
            &mut Counts::default(),
        );
        assert_eq!(tree.faults, ["a.rs:5: nobody knows"]);
    }

    #[test]
    fn a_sentence_ends_at_its_stop_and_a_paragraph_ends_one() {
        let text = "One sentence (e.g. this one). A second\nover two lines\n\n- an item\n- another. With two.";
        assert_eq!(counts(text).sentences, 5);
    }

    #[test]
    fn only_sentences_beyond_the_limit_are_long() {
        let text = |words: usize| format!("{}.", vec!["word"; words].join(" "));
        assert_eq!(counts(&text(LONG_SENTENCE - 1)).long, 0);
        assert_eq!(counts(&text(LONG_SENTENCE)).long, 1);
    }

    #[test]
    fn vague_subjects_count_outside_of_code_quotes_and_tables() {
        let text = "Nobody knows, whoever asks.\n\n| who | what |\n\n`nobody` and \"whoever\" are words.\n\n```\nwho\n```";
        assert_eq!(counts(text), Counts { sentences: 2, long: 0, vague: 2 });
    }

    #[test]
    fn a_comment_repeats_a_name_if_it_adds_no_word() {
        let empty = |text: &str| {
            let mut tree = Tree::default();
            tree.add_source("a.rs".as_ref(), text, &mut Counts::default());
            tree.empty.len()
        };
        assert_eq!(empty("/// The maximum window.\npub struct MaximumWindow;"), 1);
        assert_eq!(empty("/// The limits.\n#[derive(Debug)]\npub const LIMIT: u32 = 1;"), 1);
        assert_eq!(empty("/// The maximum window in bytes.\npub maximum_window: u64,"), 0);
        assert_eq!(empty("/// … and its end.\nend: u64,"), 1);
    }

    #[test]
    fn a_type_of_the_same_name_in_two_files_is_shared() {
        let mut tree = Tree::default();
        for file in ["a.rs", "b.rs", "c_tests.rs"] {
            let text = "pub struct State {\n}\npub(crate) enum Only".to_string() + &file[..1];
            tree.add_source(file.as_ref(), &text, &mut Counts::default());
        }
        assert_eq!(tree.shared_names(), [("State", "a.rs b.rs".to_string())]);
    }
}
