//! Takes plotly.js out of the `plotly` crate and packs it for the report page.
//!
//! Only the library's JavaScript is wanted, so the crate is a build dependency: it is compiled
//! once without optimisation, and neither its Rust code nor MathJax ends up in the command. The
//! text is gzipped and put in base64 here; the page unpacks it with `DecompressionStream`, which
//! makes a report of 2 MB out of one of 5 MB.

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use std::{env, error::Error, fs, io::Write, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let tags = plotly::Plot::offline_js_sources();
    // The first script element is plotly.js; the second is MathJax, which we do not need.
    let library = tags
        .split_once('>')
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .map(|(library, _)| library)
        .filter(|library| library.trim_start().starts_with("/**\n* plotly.js"))
        .ok_or("the plotly crate no longer begins with a script element holding plotly.js")?;

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(library.as_bytes())?;
    let packed = STANDARD.encode(encoder.finish()?);
    let directory = env::var("OUT_DIR")?;
    fs::write(Path::new(&directory).join("plotly.js.gz.base64"), packed)?;
    Ok(())
}
