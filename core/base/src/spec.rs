//! `name(key=value,…)`: the syntax of a part with its parameters.

use std::fmt;

/// A part as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The part's name.
    pub name: String,
    /// Arguments in order; those without a name have `None`.
    pub args: Vec<(Option<String>, String)>,
}

/// An error in an input, in one line: the fault, its place, and the expected input. Hidden characters in quoted input
/// are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl SpecError {
    /// An error with this text.
    pub fn new(line: impl Into<String>) -> SpecError {
        SpecError(line.into())
    }
    /// An unknown name; suggests a similar name if there is one, otherwise lists all.
    pub fn unknown(what: &str, name: &str, known: &[&str]) -> SpecError {
        match nearest(name, known) {
            Some(near) => SpecError(format!("unknown {what} '{name}'; did you mean '{near}'?")),
            None if known.is_empty() => {
                SpecError(format!("unknown {what} '{name}'; there is none"))
            }
            None => {
                SpecError(format!("unknown {what} '{name}'; expected one of: {}", known.join(", ")))
            }
        }
    }
    /// The same error, prefixed with its place: `place: …`.
    #[must_use]
    pub fn at(self, place: &str) -> SpecError {
        SpecError(format!("{place}: {}", self.0))
    }
}
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::shown(&self.0))
    }
}
impl std::error::Error for SpecError {}

impl Spec {
    /// A name without arguments.
    pub fn named(name: &str) -> Spec {
        Spec { name: name.to_string(), args: Vec::new() }
    }

    /// Reads `name` or `name(a,b=c)`.
    ///
    /// ```
    /// use narrows_base::Spec;
    /// let s = Spec::parse("vegas(alpha=1,beta=3)").unwrap();
    /// assert_eq!((s.name.as_str(), s.args.len()), ("vegas", 2));
    /// assert_eq!(s.to_string(), "vegas(alpha=1,beta=3)");
    /// ```
    ///
    /// # Errors
    /// An empty name or unbalanced parentheses.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let text = text.trim();
        let Some(open) = text.find('(') else {
            if text.contains(')') {
                return Err(SpecError(format!("'{text}': ')' without '('")));
            }
            if text.is_empty() {
                return Err(SpecError("a name is missing".into()));
            }
            return Ok(Spec::named(text));
        };
        let name = text[..open].trim();
        if name.is_empty() {
            return Err(SpecError(format!("'{text}': a name is missing before '('")));
        }
        let Some(inner) = text[open + 1..].strip_suffix(')') else {
            return Err(SpecError(format!("'{text}': ')' is missing at the end")));
        };
        let mut args = Vec::new();
        for piece in split(inner)? {
            let piece = piece.trim();
            if piece.is_empty() {
                if inner.trim().is_empty() {
                    break;
                }
                return Err(SpecError(format!("'{text}': an argument is empty")));
            }
            // '=' inside nested parentheses belongs to the nested part.
            let eq = piece.find('=').filter(|e| piece.find('(').is_none_or(|p| *e < p));
            args.push(match eq {
                Some(e) => (Some(piece[..e].trim().to_string()), piece[e + 1..].trim().to_string()),
                None => (None, piece.to_string()),
            });
        }
        Ok(Spec { name: name.to_string(), args })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.args.is_empty() {
            return Ok(());
        }
        let args: Vec<String> = self
            .args
            .iter()
            .map(|(k, v)| k.as_ref().map_or_else(|| v.clone(), |k| format!("{k}={v}")))
            .collect();
        write!(f, "({})", args.join(","))
    }
}

/// Splits at commas that are not inside parentheses.
///
/// # Errors
/// Unbalanced parentheses.
pub fn split(text: &str) -> Result<Vec<&str>, SpecError> {
    let mut depth = 0usize;
    let mut from = 0;
    let mut out = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| SpecError(format!("'{text}': ')' without '('")))?;
            }
            ',' if depth == 0 => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(SpecError(format!("'{text}': ')' is missing")));
    }
    out.push(&text[from..]);
    Ok(out)
}

/// The closest of the valid names to a mistyped one, if it is close enough to suggest.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = if name.chars().count() <= 4 { 1 } else { 2 };
    known
        .iter()
        .map(|k| (k.to_lowercase(), *k))
        .map(|(lower, k)| (distance(&name, &lower), lower, k))
        .filter(|(d, k, _)| *d <= limit || (name.len() >= 3 && k.starts_with(name.as_str())))
        .min_by_key(|(d, ..)| *d)
        .map(|(.., k)| k)
}

/// Edit distance that counts the transposition of neighbours as one edit (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let swap = usize::from(a[i - 1] != b[j - 1]);
            let mut d = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + swap);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = d;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_parentheses_do_not_split() {
        assert_eq!(split("vegas(alpha=1,beta=3),stpd").unwrap(), ["vegas(alpha=1,beta=3)", "stpd"]);
        assert!(split("a(b").is_err());
        assert!(split("a)b").is_err());
    }

    #[test]
    fn mistyped_names_get_a_suggestion() {
        let known = ["reno", "newreno", "vegas", "westwood"];
        assert_eq!(nearest("vegsa", &known), Some("vegas"));
        assert_eq!(nearest("renoo", &known), Some("reno"));
        assert_eq!(nearest("west", &known), Some("westwood"));
        assert_eq!(nearest("quic", &known), None);
    }

    #[test]
    fn malformed_spec_names_the_fault() {
        for (bad, hint) in [
            ("", "missing"),
            ("(a)", "before '('"),
            ("x(a", "')' is missing"),
            ("x(a,,b)", "empty"),
        ] {
            let e = Spec::parse(bad).unwrap_err().to_string();
            assert!(e.contains(hint), "{bad:?}: {e}");
        }
    }
}
