//! Writes the page around a module: `narrows-web MODULE.wasm PAGE.html`.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let done = match &files[..] {
        [module, page] => narrows_web::page::write(module.as_ref(), page.as_ref()),
        _ => Err("narrows-web MODULE.wasm PAGE.html".into()),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("narrows-web: {line}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_arch = "wasm32")]
fn main() {}
