//! `cargo xtask web`: the page with the simulator in it, and its tests.

use crate::command::{cargo_command, run, target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TRIPLE: &str = "wasm32-unknown-unknown";
/// Browsers that the tests can drive.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Most bytes of the module, compressed as web servers do (brotli).
const MAX_MODULE: usize = 450_000;

/// Writes the page; with `--check`, tests it.
pub fn page(args: &[String]) -> Result<(), String> {
    match args {
        [] => {
            let page = written()?;
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

/// Builds the module and writes the page around it.
fn written() -> Result<PathBuf, String> {
    let module = module()?;
    let page = Path::new(&target()).join("web/index.html");
    let args = ["run", "--quiet", "--locked", "--package", "narrows-web", "--"];
    run(
        cargo_command(&args).arg(&module).arg(&page),
        &format!("narrows-web {} {}", module.display(), page.display()),
    )?;
    Ok(page)
}

/// Builds the module.
fn module() -> Result<PathBuf, String> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map_err(|e| format!("rustc could not be started: {e}"))?.stdout;
    let sysroot = String::from_utf8_lossy(&sysroot);
    if !Path::new(sysroot.trim()).join("lib/rustlib").join(TRIPLE).is_dir() {
        return Err(format!("the target is missing: rustup target add {TRIPLE}"));
    }
    let mut args = vec!["rustc", "--locked", "--package", "narrows-web", "--lib"];
    args.extend(["--profile", "web", "--target", TRIPLE, "--"]);
    // Without it, each call takes five bytes in place of two or three.
    args.extend(["-C", "link-arg=--compress-relocations"]);
    run(&mut cargo_command(&args), &format!("cargo {}", args.join(" ")))?;
    let built = Path::new(&target()).join(TRIPLE).join("web/narrows_web.wasm");
    let kept = Path::new(&target()).join("web/page.wasm");
    let copied = kept.parent().map_or(Ok(()), std::fs::create_dir_all);
    copied
        .and_then(|()| std::fs::copy(&built, &kept))
        .map_err(|e| format!("{}: {e}", kept.display()))?;
    Ok(kept)
}

/// Compares the module with the command, and clicks through the page in a browser. Skipped without the programs.
pub fn tests() -> Result<(), String> {
    if !is_installed("node") {
        eprintln!("web: skipped, node is not installed");
        return Ok(());
    }
    let page = match written() {
        Err(why) if why.contains("rustup") && std::env::var_os("CI").is_none() => {
            eprintln!("web: skipped, {why}");
            return Ok(());
        }
        page => page?,
    };
    let cases = page.with_file_name("digests.json");
    let args = ["run", "--quiet", "--locked", "--package", "xtask", "--", "web", "--cases"];
    run(cargo_command(&args).arg(&cases), "xtask web --cases")?;
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

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
