//! Escapes text for its context: HTML, or JSON inside a script element.

use narrows_base::text::escaped_lines;
use std::fmt::Write;

/// Text for HTML, in an element or in a quoted attribute; everything hidden is written out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escaped_lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A JSON string that a page shows: everything hidden is written out. `<`, `>` and `&` are written as `\u….`, so that no text can end the script
/// element or open a comment in it.
pub(crate) fn string(out: &mut String, text: impl AsRef<str>) {
    out.push('"');
    for c in escaped_lines(text.as_ref()).chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' | '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A JSON number with `digits` significant digits; `null` if it is not finite.
pub(crate) fn number(out: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    let rounded = format!("{value:.*e}", digits.saturating_sub(1)).parse().ok();
    // The largest numbers round to infinity.
    let rounded = rounded.filter(|r: &f64| r.is_finite()).unwrap_or(value);
    let start = out.len();
    let _ = write!(out, "{rounded:?}");
    if out[start..].ends_with(".0") {
        out.truncate(out.len() - 2);
    }
}

/// A JSON array of numbers.
pub(crate) fn numbers(out: &mut String, values: impl IntoIterator<Item = f64>, digits: usize) {
    list(out, values, |out, value| number(out, value, digits));
}

/// A JSON array.
pub(crate) fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        let mut out = String::new();
        number(&mut out, value, 5);
        out
    }

    #[test]
    fn numbers_are_short_json() {
        assert_eq!(shown(12.0), "12");
        assert_eq!(shown(-0.123456), "-0.12346");
        assert_eq!(shown(1e300), "1e300");
        assert_eq!(shown(1e-9), "1e-9");
        assert_eq!(shown(f64::MAX), "1.7976931348623157e308");
        assert_eq!(shown(f64::NAN), "null");
        assert_eq!(shown(f64::INFINITY), "null");
    }

    #[test]
    fn strings_cannot_leave_their_script() {
        let mut out = String::new();
        string(&mut out, "a\"\\</script><!--\n\u{2028}é");
        assert_eq!(out, r#""a\"\\\u003c/script\u003e\u003c!--\u000a\\u{2028}é""#);
    }
}
