//! The page: one response that includes style and scripts, so that the browser loads no other file.

use narrows_report::palette::{DARK, LIGHT};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// In the order of their dependencies.
const SCRIPTS: [&str; 6] = [
    include_str!("page/store.js"),
    include_str!("page/chart.js"),
    include_str!("page/controls.js"),
    include_str!("page/specs.js"),
    include_str!("page/board.js"),
    include_str!("page/page.js"),
];
/// Frames from the page's server.
#[cfg(feature = "connections")]
const STREAM: &str = include_str!("page/stream.js");

/// The page; its scripts and style carry this nonce.
#[cfg(feature = "connections")]
pub fn html(nonce: &str) -> String {
    with_stream(nonce, STREAM)
}

/// The page with another source of frames: a script that defines `token`, `post`, `connect` and `looked`, as
/// `page/stream.js` does.
pub fn with_stream(nonce: &str, stream: &str) -> String {
    let list = |colours: &[&str]| format!("[\"{}\"]", colours.join("\",\""));
    let palette = format!("const LIGHT={},DARK={};\n", list(&LIGHT), list(&DARK));
    let script = format!("\"use strict\";\n{palette}{stream}{}", SCRIPTS.concat());
    let mut page = HTML.to_string();
    for (place, text) in [("{{STYLE}}", STYLE), ("{{SCRIPT}}", &script), ("{{NONCE}}", nonce)] {
        page = page.replace(place, text);
    }
    page
}
