//! The outputs of measurements: a section of a page, without a change to its rest, and files of figures.

use serde::{Serialize, de::DeserializeOwned};

/// Writes figures to a file as JSON.
pub fn keep(file: &str, figures: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(figures).map_err(|e| e.to_string())?;
    std::fs::write(file, text + "\n").map_err(|e| format!("{file}: {e}"))
}

/// Reads a file that [`keep`] wrote.
pub fn read<T: DeserializeOwned>(file: &str) -> Result<T, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{file}: {e}"))
}

/// Puts `section` between the marks `<!-- begin NAME -->` and `<!-- end NAME -->`, or at the page's end.
pub fn write(page: &str, name: &str, section: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(page).map_err(|e| format!("{page}: {e}"))?;
    std::fs::write(page, with(&text, name, section)).map_err(|e| format!("{page}: {e}"))?;
    eprintln!("wrote {page}");
    Ok(())
}

fn with(page: &str, name: &str, section: &str) -> String {
    let begin = format!("<!-- begin {name} -->\n");
    let end = format!("<!-- end {name} -->\n");
    let section = format!("{begin}{section}{end}");
    match (page.split_once(&begin), page.split_once(&end)) {
        (Some((before, _)), Some((_, after))) => format!("{before}{section}{after}"),
        _ => format!("{}\n\n{section}", page.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::with;

    #[test]
    fn section_is_replaced_and_surrounding_text_stays() {
        let first = with("# Page\n\nText.\n", "figures", "one\n");
        assert_eq!(first, "# Page\n\nText.\n\n<!-- begin figures -->\none\n<!-- end figures -->\n");
        let page = format!("{first}\nMore.\n");
        assert_eq!(with(&page, "figures", "two\n"), page.replace("one", "two"));
    }
}
