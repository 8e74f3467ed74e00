//! The tests of the Python package: in a virtual environment of their own, below the target folder.

use crate::command::run;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKAGE: &str = "python";
const ENVIRONMENT: &str = "target/python";
/// Prints whether the interpreter is new enough, and can make virtual environments.
const IS_USABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
/// What the tests are run with.
const TOOLS: &str = "python/tests/requirements.txt";

/// Builds the package and runs pytest, mypy and ruff.
pub fn test() -> Result<(), String> {
    let Some(python) = interpreter() else {
        eprintln!(
            "Python package: not tested, since there is no Python 3.10 or newer with venv and pip"
        );
        return Ok(());
    };
    let environment = environment(&python)?;
    let tool = |name: &str| Command::new(environment.join("bin").join(name));
    // As the crates' tests are built: without optimisation across crates, which takes minutes.
    run(
        tool("maturin")
            .args(["develop", "--quiet", "--skip-install", "--locked", "--manifest-path"])
            .arg(format!("{PACKAGE}/Cargo.toml"))
            .env("VIRTUAL_ENV", &environment),
        "maturin develop",
    )?;
    let checks: [(&str, &[&str]); 4] = [
        ("ruff", &["check", "."]),
        ("ruff", &["format", "--check", "."]),
        ("mypy", &["python/narrows"]),
        ("pytest", &[]),
    ];
    for (name, args) in checks {
        let shown = format!("{name} {} (in {PACKAGE})", args.join(" "));
        let source = std::path::absolute(Path::new(PACKAGE).join("python"));
        let source = source.map_err(|e| format!("{PACKAGE}: {e}"))?;
        run(tool(name).args(args).current_dir(PACKAGE).env("PYTHONPATH", source), &shown)?;
    }
    Ok(())
}

/// The first Python that will do.
fn interpreter() -> Option<String> {
    let own = std::env::var("PYTHON").ok();
    let known = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
    let is_usable = |name: &String| {
        let mut command = Command::new(name);
        command.args(["-c", IS_USABLE]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    own.into_iter().chain(known.map(String::from)).find(is_usable)
}

/// A virtual environment with the tools; made again when their list has changed.
fn environment(python: &str) -> Result<PathBuf, String> {
    let folder = std::path::absolute(ENVIRONMENT).map_err(|e| format!("{ENVIRONMENT}: {e}"))?;
    let wanted = std::fs::read_to_string(TOOLS).map_err(|e| format!("{TOOLS}: {e}"))?;
    let mark = folder.join("installed.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    run(
        Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder),
        &format!("{python} -m venv {ENVIRONMENT}"),
    )?;
    run(
        Command::new(folder.join("bin/pip")).args(["install", "--quiet", "--requirement", TOOLS]),
        &format!("pip install --requirement {TOOLS}"),
    )?;
    std::fs::write(&mark, wanted).map_err(|e| format!("{}: {e}", mark.display()))?;
    Ok(folder)
}
