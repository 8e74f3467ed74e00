//! The tests of the Python package: in a virtual environment of their own, below the target folder.

use crate::command::{built, run, succeeds};
use crate::files::{failed, read, write};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "python";
const ENVIRONMENT: &str = "target/python/environment";
/// The environment with the oldest supported readers of Parquet, and its packages.
const OLDEST_ENVIRONMENT: &str = "target/python/oldest";
const OLDEST: &str = "python/tests/oldest.txt";
/// Prints whether there are wheels of those for this Python.
const HAS_OLDEST: &str =
    "import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info < (3, 13))";
/// Path of the reference of all names, relative to the package's folder.
const REFERENCE: &str = "../target/python/reference";
/// Prints whether the interpreter is new enough, and can make virtual environments.
const IS_USABLE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
/// Packages of the test environment.
const TOOLS: &str = "python/tests/requirements.txt";

/// Builds the package and runs pytest, mypy and ruff.
pub fn test() -> Result<(), String> {
    let Some(python) = interpreter(IS_USABLE) else {
        eprintln!(
            "Python package: not tested, since there is no Python 3.10 or newer with venv and pip"
        );
        return Ok(());
    };
    let environment = environment(&python, ENVIRONMENT, TOOLS)?;
    let tool = |name: &str| Command::new(environment.join("bin").join(name));
    // The package is compared with it.
    let command = built("narrows")?;
    place("debug")?;
    let checks: [(&str, &[&str]); 5] = [
        ("ruff", &["check", "."]),
        ("ruff", &["format", "--check", "."]),
        ("mypy", &["python/narrows"]),
        ("pytest", &[]),
        ("pdoc", &["narrows", "--output-directory", REFERENCE]),
    ];
    for (name, args) in checks {
        let shown = format!("{name} {} (in {PACKAGE})", args.join(" "));
        let source = std::path::absolute(Path::new(PACKAGE).join("python"));
        let source = source.map_err(|e| format!("{PACKAGE}: {e}"))?;
        run(tool(name).args(args).current_dir(PACKAGE).env("PYTHONPATH", source), &shown)?;
    }
    read_parquet(&environment, &command)
}

/// The newest and the oldest supported readers of Parquet read a file that the command writes.
fn read_parquet(newest: &Path, command: &Path) -> Result<(), String> {
    let oldest = match interpreter(HAS_OLDEST) {
        Some(python) => Some(environment(&python, OLDEST_ENVIRONMENT, OLDEST)?),
        None => {
            eprintln!(
                "Parquet: not read by the oldest readers, since there is no Python 3.10 to 3.12"
            );
            None
        }
    };
    for environment in oldest.iter().map(PathBuf::as_path).chain([newest]) {
        let mut python = Command::new(environment.join("bin/python"));
        run(python.arg("python/tests/read_parquet.py").arg(command), "read_parquet.py")?;
    }
    Ok(())
}

/// Puts the compiled module beside the package's Python files.
pub fn place(profile: &str) -> Result<(), String> {
    let (from, to) = match std::env::consts::OS {
        "windows" => ("_narrows.dll", "_narrows.pyd"),
        "macos" => ("lib_narrows.dylib", "_narrows.abi3.so"),
        _ => ("lib_narrows.so", "_narrows.abi3.so"),
    };
    let target = crate::command::target();
    let from = Path::new(&target).join(profile).join(from);
    let to = Path::new(PACKAGE).join("python/narrows").join(to);
    // A program that has it loaded keeps the one that it has.
    let _ = std::fs::remove_file(&to);
    std::fs::copy(&from, &to).map_err(failed(&from))?;
    Ok(())
}

/// The first Python for which this script succeeds.
fn interpreter(script: &str) -> Option<String> {
    let own = std::env::var("PYTHON").ok();
    let known = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
    let is_usable = |name: &String| succeeds(name, &["-c", script]);
    own.into_iter().chain(known.map(String::from)).find(is_usable)
}

/// A virtual environment in this folder with the packages of the list; made again when the list has changed.
pub fn environment(python: &str, folder: &str, list: &str) -> Result<PathBuf, String> {
    let shown = folder;
    let folder = std::path::absolute(folder).map_err(failed(folder.as_ref()))?;
    let wanted = read(list)?;
    let mark = folder.join("installed.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    run(
        Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder),
        &format!("{python} -m venv {shown}"),
    )?;
    run(
        Command::new(folder.join("bin/pip")).args(["install", "--quiet", "--requirement", list]),
        &format!("pip install --requirement {list}"),
    )?;
    write(&mark, wanted)?;
    Ok(folder)
}
