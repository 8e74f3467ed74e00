//! `cargo xtask web`: the page with the simulator in it, and its tests.

use crate::command::{built, cargo_command, has_target, is_installed, run, target};
use crate::files::failed;
use std::path::{Path, PathBuf};
use std::process::Command;

const TRIPLE: &str = "wasm32-unknown-unknown";
/// Browsers that the tests can drive.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Most bytes of the module, compressed as web servers do (brotli).
const MAX_MODULE: usize = 450_000;

/// Writes the page; with `--check`, tests it.
pub fn page(args: &[String]) -> Result<(), String> {
    match args {
        [] => {
            let args = ["run", "--quiet", "--locked", "--package", "narrows-web", "--"];
            let page = written(cargo_command(&args))?;
            println!("{}", page.display());
            Ok(())
        }
        [check] if check == "--check" => tests(),
        // Called by `tests`, as this program with its default features.
        #[cfg(feature = "measure")]
        [flag, file] if flag == "--cases" => crate::web_cases::write(file.as_ref()),
        _ => Err("web takes --check or no argument".into()),
    }
}

/// Builds the module and writes the page around it by this program.
fn written(mut program: Command) -> Result<PathBuf, String> {
    if !has_target(TRIPLE) {
        return Err(format!("the target is missing: rustup target add {TRIPLE}"));
    }
    run(&mut module(), "the page's module")?;
    let module = kept()?;
    let page = Path::new(&target()).join("web/index.html");
    run(
        program.arg(&module).arg(&page),
        &format!("narrows-web {} {}", module.display(), page.display()),
    )?;
    Ok(page)
}

/// Compiles the module.
pub fn module() -> Command {
    let mut args = vec!["rustc", "--locked", "--package", "narrows-web", "--lib"];
    args.extend(["--profile", "web", "--target", TRIPLE, "--"]);
    // Without it, each call takes five bytes in place of two or three.
    args.extend(["-C", "link-arg=--compress-relocations"]);
    cargo_command(&args)
}

/// Copies the module to its place beside the page.
fn kept() -> Result<PathBuf, String> {
    let built = Path::new(&target()).join(TRIPLE).join("web/narrows_web.wasm");
    let kept = Path::new(&target()).join("web/page.wasm");
    let copied = kept.parent().map_or(Ok(()), std::fs::create_dir_all);
    copied.and_then(|()| std::fs::copy(&built, &kept)).map_err(failed(&kept))?;
    Ok(kept)
}

/// Compares the module with the command, and clicks through the page in a browser. Skipped without the programs.
pub fn tests() -> Result<(), String> {
    if !is_testable() && (!is_installed("node") || std::env::var_os("CI").is_none()) {
        eprintln!("web: skipped, that needs node and rustup target add {TRIPLE}");
        return Ok(());
    }
    let xtask = built("xtask")?;
    let page = written(Command::new(xtask.with_file_name("narrows-web")))?;
    let cases = page.with_file_name("digests.json");
    run(Command::new(&xtask).args(["web", "--cases"]).arg(&cases), "xtask web --cases")?;
    let node = |script: &str, files: &[&Path]| {
        let script = format!("apps/web/tests/{script}");
        run(Command::new("node").arg(&script).args(files), &format!("node {script}"))
    };
    let module = page.with_file_name("page.wasm");
    node("digests.mjs", &[&module, &cases])?;
    node("size.mjs", &[&module, Path::new(&MAX_MODULE.to_string())])?;
    let Some(browser) = BROWSERS.into_iter().find(|name| is_installed(name)) else {
        eprintln!("web: the page is not opened, none of {} is installed", BROWSERS.join(", "));
        return Ok(());
    };
    node("click.mjs", &[&page, Path::new(browser)])
}

/// Whether the module can be compiled and run.
pub fn is_testable() -> bool {
    is_installed("node") && has_target(TRIPLE)
}
