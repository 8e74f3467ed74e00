//! The section of `docs/kernel.md`.

const PAGE: &str = "docs/kernel.md";
const BEGIN: &str = "<!-- begin measured -->\n";
const END: &str = "<!-- end measured -->\n";

/// Puts the sections between the marks; the rest of the page stays.
pub fn write(sections: &[String]) -> Result<(), String> {
    let page = std::fs::read_to_string(PAGE).map_err(|e| format!("{PAGE}: {e}"))?;
    let (Some((before, _)), Some((_, after))) = (page.split_once(BEGIN), page.split_once(END))
    else {
        return Err(format!("{PAGE} has no line {}", BEGIN.trim()));
    };
    let page = format!("{before}{BEGIN}{}{END}{after}", sections.join("\n"));
    std::fs::write(PAGE, page).map_err(|e| format!("{PAGE}: {e}"))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}
