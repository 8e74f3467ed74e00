//! The frame of every page: what stands before and after what it says. One file that needs no
//! network: style, data, plotly.js and scripts travel in it, and a content security policy forbids
//! it to load anything.

use std::fmt::Write as _;

/// plotly.js, gzipped, in base64.
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.gz.base64"));
const STYLE: &str = include_str!("page.css");
const BASE: &str = include_str!("base.js");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A page's beginning, to the start of its `main`; `title` and `style` are trusted text.
pub fn begin(title: &str, style: &str) -> String {
    let mut page = String::with_capacity(LIBRARY.len() + (1 << 20));
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

/// A page's end: what its charts show, as JSON that is safe in a script, and what draws them.
pub fn end(page: &mut String, data: &str, script: &str) {
    for part in [
        "</main>\n<script type=\"application/json\" id=\"data\">",
        data,
        "</script>\n<script type=\"text/plain\" id=\"library\">",
        LIBRARY,
        "</script>\n<script>",
        BASE,
        script,
        "</script>\n</body>\n</html>\n",
    ] {
        page.push_str(part);
    }
}
