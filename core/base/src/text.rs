//! Escapes untrusted text (from files or peers) before it is shown in a terminal, a log or a page.
//!
//! A terminal obeys control characters, and characters without width or with a change of reading direction can make one
//! name look like another. All of them are written as `\u{…}`. Text is escaped only where it is shown: names stay
//! unchanged in files and for random draws.

use std::borrow::Cow;

/// Characters that are invisible or change how neighbouring ones are displayed: controls, line and paragraph
/// separators, directional formatting, and Unicode's Default_Ignorable_Code_Point, except the
/// presentation selectors of emoji (U+FE0E, U+FE0F).
const HIDDEN: &[(char, char)] = &[
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0d}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character is escaped where text is shown.
pub fn is_hidden(c: char) -> bool {
    if (' '..='~').contains(&c) {
        return false;
    }
    let after = HIDDEN.partition_point(|(_, last)| *last < c);
    HIDDEN.get(after).is_some_and(|(first, _)| *first <= c)
}

/// The text in one line, with hidden characters escaped.
///
/// ```
/// use narrows_base::text::shown;
/// assert_eq!(shown("a name, ein Größenmaß, 名前"), "a name, ein Größenmaß, 名前");
/// assert_eq!(shown("a\n\u{1b}[2Jb\u{200b}\u{e0041}"), r"a\n\u{1b}[2Jb\u{200b}\u{e0041}");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    written_out(text, is_hidden)
}

/// The text with its line breaks; all other hidden characters are escaped.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    written_out(text, |c| c != '\n' && is_hidden(c))
}

fn written_out(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !hidden(c) => out.push(c),
            '\t' | '\n' | '\r' => out.extend(c.escape_default()),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// JSON text for a terminal: the same values, with hidden characters in its strings written as
/// `\uXXXX`.
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let hidden = |c| c != '\n' && is_hidden(c);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_shows_every_character() {
        for c in [
            '\u{0}',
            '\u{7}',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2028}',
            '\u{2066}',
            '\u{2060}',
            '\u{feff}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            assert!(is_hidden(c), "{c:?}");
            assert!(!shown(&format!("a{c}b")).contains(c));
        }
        for c in ['a', '~', 'é', 'ß', 'Ω', '中', '±', '…', '❤', '\u{fe0f}', '\u{10ffff}'] {
            assert!(!is_hidden(c), "{c:?}");
        }
        assert!(HIDDEN.windows(2).all(|w| w[0].1 < w[1].0), "looked up by halves");
    }

    #[test]
    fn lines_stay_where_they_are_wanted() {
        assert_eq!(escaped_lines("a\nb\r"), "a\nb\\r");
        assert_eq!(shown("a\nb"), "a\\nb");
    }

    #[test]
    fn json_keeps_its_values() {
        assert_eq!(
            escaped_json("{\n\"a\": \"\u{200b}\u{e0041}\"}"),
            "{\n\"a\": \"\\u200b\\udb40\\udc41\"}"
        );
    }
}
