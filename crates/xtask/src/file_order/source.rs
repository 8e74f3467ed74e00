//! Names in a source file: its imports and its paths, found in its words without a parser of Rust.

use std::collections::BTreeSet;

/// An import, with groups taken apart: `use a::{b, c as d}` is two.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportPath {
    /// The imported path.
    pub path: Vec<String>,
    /// Its local name; `*` for a glob import.
    pub name: String,
    /// Whether it is a re-export.
    pub public: bool,
}

/// Names that a file uses outside of its tests.
#[derive(Default, Debug)]
pub struct SourceNames {
    /// Imports of the file.
    pub uses: Vec<ImportPath>,
    /// Paths in its code.
    pub paths: Vec<Vec<String>>,
    /// Every word of its code but for imports.
    pub words: BTreeSet<String>,
    /// Modules in files of their own that exist for tests only.
    pub tests: Vec<String>,
}

/// Reads a file's text.
pub fn read(text: &str) -> SourceNames {
    let words = words(text);
    let (mut source, mut at) = (SourceNames::default(), 0);
    let word = |i: usize| words.get(i).map_or("", String::as_str);
    while at < words.len() {
        match word(at) {
            "#" if word(at + 1) == "[" => {
                let end = after(&words, at + 1, "[", "]");
                let attribute = &words[at..end];
                at = end;
                if attribute.iter().any(|w| w == "cfg") && attribute.iter().any(|w| w == "test") {
                    at = skip_tests(&words, at, &mut source.tests);
                }
            }
            "use" => {
                let end = (at..words.len()).find(|i| word(*i) == ";").unwrap_or(words.len());
                // `pub use`, `pub(crate) use`.
                let public = at > 0 && (word(at - 1) == "pub" || word(at - 1) == ")");
                import(&words[at + 1..end], &[], public, &mut source.uses);
                at = end;
            }
            first if is_name(first) => {
                let mut path = vec![first.to_string()];
                at += 1;
                while word(at) == "::" && is_name(word(at + 1)) {
                    path.push(word(at + 1).to_string());
                    at += 2;
                }
                source.words.extend(path.iter().cloned());
                if path.len() > 1 {
                    source.paths.push(path);
                }
            }
            _ => at += 1,
        }
    }
    source
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The place behind the bracket that closes the one at `at`.
fn after(words: &[String], at: usize, open: &str, close: &str) -> usize {
    let mut depth = 0;
    for (i, word) in words.iter().enumerate().skip(at) {
        if word == open {
            depth += 1;
        } else if word == close {
            depth -= 1;
            if depth == 0 {
                return i + 1;
            }
        }
    }
    words.len()
}

/// Behind `#[cfg(test)]`: a module's body is passed over, and a module in a file of its own noted.
fn skip_tests(words: &[String], at: usize, tests: &mut Vec<String>) -> usize {
    let found = words.iter().skip(at).take(6).position(|w| w == "mod").map(|i| at + i);
    let before =
        |i: &usize| words[at..*i].iter().all(|w| ["pub", "(", "crate", ")"].contains(&w.as_str()));
    let Some(module) = found.filter(before) else { return at };
    match words.get(module + 2).map(String::as_str) {
        Some("{") => after(words, module + 2, "{", "}"),
        _ => {
            tests.extend(words.get(module + 1).cloned());
            module + 2
        }
    }
}

/// Takes an import apart.
fn import(words: &[String], before: &[String], public: bool, out: &mut Vec<ImportPath>) {
    let mut path = before.to_vec();
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "::" => at += 1,
            "{" => {
                let (mut begin, mut depth) = (at + 1, 0);
                for i in at..words.len() {
                    let word = words[i].as_str();
                    depth += i32::from(word == "{") - i32::from(word == "}");
                    if depth == 0 || (depth == 1 && word == ",") {
                        if begin < i {
                            import(&words[begin..i], &path, public, out);
                        }
                        begin = i + 1;
                    }
                }
                return;
            }
            "as" => break,
            name => {
                path.push(name.to_string());
                at += 1;
            }
        }
    }
    if path.last().is_some_and(|p| p == "self") && path.len() > 1 {
        path.pop();
    }
    let alias = words.get(at + 1).filter(|_| words.get(at).is_some_and(|w| w == "as"));
    if let Some(name) = alias.or(path.last()).cloned() {
        out.push(ImportPath { path, name, public });
    }
}

/// Names and punctuation; no comments, no literals.
fn words(text: &str) -> Vec<String> {
    let c: Vec<char> = text.chars().collect();
    let at = |i: usize| c.get(i).copied().unwrap_or('\0');
    let (mut out, mut i) = (Vec::new(), 0);
    while i < c.len() {
        if at(i) == '/' && at(i + 1) == '/' {
            while i < c.len() && at(i) != '\n' {
                i += 1;
            }
        } else if let Some(end) = raw_string(&c, i) {
            i = end;
        } else if at(i) == '"' {
            i += 1;
            while i < c.len() && at(i) != '"' {
                i += if at(i) == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if at(i) == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            // A character literal; otherwise it is a lifetime.
            i += if at(i + 1) == '\\' { 3 } else { 2 };
            while i < c.len() && at(i) != '\'' {
                i += 1;
            }
            i += 1;
        } else if at(i).is_alphanumeric() || at(i) == '_' {
            let begin = i;
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            out.push(c[begin..i].iter().collect());
        } else if at(i) == ':' && at(i + 1) == ':' {
            out.push("::".into());
            i += 2;
        } else {
            if !at(i).is_whitespace() {
                out.push(at(i).to_string());
            }
            i += 1;
        }
    }
    out
}

/// The place behind a raw string that begins here.
fn raw_string(c: &[char], at: usize) -> Option<usize> {
    let begins_word = at == 0 || !(c[at - 1].is_alphanumeric() || c[at - 1] == '_');
    let r = if c[at] == 'b' { at + 1 } else { at };
    if !begins_word || c.get(r) != Some(&'r') {
        return None;
    }
    let hashes = c[r + 1..].iter().take_while(|x| **x == '#').count();
    let quote = r + 1 + hashes;
    if c.get(quote) != Some(&'"') {
        return None;
    }
    let closes = |i: &usize| {
        c[*i] == '"' && c[*i + 1..].iter().take(hashes).filter(|x| **x == '#').count() == hashes
    };
    (quote + 1..c.len()).find(closes).map(|end| end + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_taken_apart() {
        let source = read("pub(crate) use crate::a::{self, b::C, d as e};\nuse super::*;");
        let all: Vec<String> = source
            .uses
            .iter()
            .map(|u| format!("{} {} {}", u.path.join("::"), u.name, u.public))
            .collect();
        assert_eq!(
            all,
            ["crate::a a true", "crate::a::b::C C true", "crate::a::d e true", "super::* * false"]
        );
    }

    #[test]
    fn paths_are_found_and_tests_text_and_comments_are_not() {
        let source = read(
            "// crate::x::y\nfn f<'a>(c: char) { let q = '\"'; crate::a::b(); \"crate::c::d\"; r#\"crate::e\"\"#; }\n\
             #[cfg(test)]\nmod tests { use crate::t; fn g() { crate::h::i() } }\n\
             #[cfg(test)]\npub mod sample;\nfn j() { k::l() }",
        );
        assert_eq!(source.paths, [vec!["crate", "a", "b"], vec!["k", "l"]]);
        assert_eq!(source.uses, []);
        assert_eq!(source.tests, ["sample"]);
        assert!(source.words.contains("j") && !source.words.contains("g"));
    }
}
