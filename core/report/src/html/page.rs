//! The frame of every page, around its content. A page is one file that needs no network: style,
//! data, plotly.js and scripts are embedded, and a content security policy forbids it to load
//! anything.

use crate::VERSION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

/// plotly.js, gzipped: the page unpacks it (`base.js`), which makes a report of 2 MB out of
/// one of 5 MB.
const LIBRARY: &[u8] = include_bytes!("../../vendor/plotly.js/plotly.min.js.gz");
pub(super) const STYLE: &str = include_str!("page.css");
pub(super) const BASE: &str = include_str!("base.js");

/// plotly.js as gzip in base64.
pub(super) fn library() -> String {
    STANDARD.encode(LIBRARY)
}

/// A page's beginning, to the start of its `main`; `title` and `style` are trusted text.
pub fn begin(title: &str, style: &str) -> String {
    let mut page = String::with_capacity(LIBRARY.len() / 3 * 4 + (1 << 20));
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"narrows {VERSION}\">\n\
         <title>{title}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
    );
    page
}

/// A page's end: the charts' data, as JSON that is safe in a script, and the script that draws them.
pub fn end(page: &mut String, data: &str, script: &str) {
    page.push_str("</main>\n<script type=\"application/json\" id=\"data\">");
    page.push_str(data);
    page.push_str("</script>\n<script type=\"text/plain\" id=\"library\">");
    page.push_str(&library());
    for part in ["</script>\n<script>", BASE, script, "</script>\n</body>\n</html>\n"] {
        page.push_str(part);
    }
}

/// The end of a page without charts.
pub fn end_plain(page: &mut String) {
    page.push_str("</main>\n</body>\n</html>\n");
}

#[cfg(test)]
mod tests {
    /// A packed script cannot be reviewed, so its checksum is compared with that in the note beside it.
    #[test]
    fn charts_script_has_the_noted_origin() {
        let sum = ring::digest::digest(&ring::digest::SHA256, super::LIBRARY);
        let sum: String = sum.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        let note = include_str!("../../vendor/plotly.js/README.md");
        assert!(note.contains(&format!("the file here | `{sum}`")), "{sum}");
    }
}
