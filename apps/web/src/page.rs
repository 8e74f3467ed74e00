//! The page around the module: one HTML file that asks no server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use narrows_live::page::with_stream;
use narrows_report::html::assets;
use std::io::Write as _;
use std::path::Path;

const HTML: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/page.css");
/// In the order of their dependencies, after the report's.
const SCRIPTS: [&str; 8] = [
    include_str!("../page/question.js"),
    include_str!("../page/pool.js"),
    include_str!("../page/results.js"),
    include_str!("../page/controls.js"),
    include_str!("../page/lens.js"),
    include_str!("../page/editor.js"),
    include_str!("../page/lessons.js"),
    include_str!("../page/main.js"),
];
/// Scripts of a worker.
const WORKER: [&str; 3] = [
    include_str!("../page/engine.js"),
    include_str!("../page/own.js"),
    include_str!("../page/worker.js"),
];
const LENS_STREAM: &str = include_str!("../page/lens_stream.js");

/// Writes the page of a module.
///
/// # Errors
/// One line that names the file.
pub fn write(module: &Path, page: &Path) -> Result<(), String> {
    let at = |file: &Path, e: std::io::Error| format!("{}: {e}", file.display());
    let bytes = std::fs::read(module).map_err(|e| at(module, e))?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let packed = packed.map_err(|e| at(module, e))?;
    if let Some(folder) = page.parent() {
        std::fs::create_dir_all(folder).map_err(|e| at(folder, e))?;
    }
    std::fs::write(page, html(&STANDARD.encode(packed))).map_err(|e| at(page, e))
}

/// The page; `module` is gzip in base64.
fn html(module: &str) -> String {
    let report = assets();
    let style = format!("{}{STYLE}", report.style);
    let script = format!("{}{}", report.scripts, SCRIPTS.concat());
    let lens = with_stream("", LENS_STREAM);
    // A text in a script element ends at the first end tag.
    let lens = lens.replace("</script", "<\\/script");
    let mut page = HTML.to_string();
    for (place, text) in [
        ("{{STYLE}}", style.as_str()),
        ("{{SCRIPT}}", &script),
        ("{{WORKER}}", &WORKER.concat()),
        ("{{LENS}}", &lens),
        ("{{LIBRARY}}", &report.library),
        ("{{MODULE}}", module),
    ] {
        page = page.replacen(place, text, 1);
    }
    page
}
