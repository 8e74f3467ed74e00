//! What users of the crates get: packages that can be published, and few dependencies.

use crate::cargo;
use std::collections::BTreeSet;
use std::process::Command;

/// Crates that compile for a package at most, itself and build dependencies included, on this system. Whoever
/// needs one more raises the bound here and says why.
const BOUNDS: [(&str, usize); 3] = [
    // Pure state machines: no ciphers, no sockets, no C.
    ("narrows-sim", 10),
    ("narrows", 11),
    ("narrows-cli", 141),
];

/// Holds the dependencies to their bounds.
pub fn check_counts() -> Result<(), String> {
    for (package, bound) in BOUNDS {
        let crates = crates_of(package)?;
        eprintln!("{package}: {} crates to compile, of {bound} at most", crates.len());
        if crates.len() > bound {
            let all = crates.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!("more crates than {bound} compile for {package}: {all}"));
        }
    }
    Ok(())
}

/// The crates that compile for a package, itself included.
fn crates_of(package: &str) -> Result<BTreeSet<String>, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--package", package]);
    command.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let told = command.output().map_err(|e| format!("'cargo tree' could not be started: {e}"))?;
    if !told.status.success() {
        return Err(format!("'cargo tree' failed: {}", String::from_utf8_lossy(&told.stderr)));
    }
    let text = String::from_utf8_lossy(&told.stdout);
    Ok(text.lines().map(package_of).filter(|p| !p.is_empty()).collect())
}

/// Name and version from a line of `cargo tree`.
fn package_of(line: &str) -> String {
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Packs every crate that is published, in one call: a path dependency without a version, or a file that is
/// not there, fails. Packages are not built, and nothing is asked of the registry: what they depend on was
/// fetched for the build.
pub fn check_packaging() -> Result<(), String> {
    let mut args =
        vec!["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"];
    for developers in ["xtask", "narrows-fuzzed"] {
        args.extend(["--exclude", developers]);
    }
    cargo(&args)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulations need no ciphers: whoever gives a crate below the simulator such a dependency sees it here.
    #[test]
    fn the_simulator_compiles_without_ciphers_sockets_and_c() {
        let crates = crates_of("narrows-sim").unwrap();
        assert!(crates.len() > 4, "{crates:?}");
        for name in ["narrows-wire ", "ring ", "snow ", "cc ", "tokio ", "quinn-udp "] {
            assert!(!crates.iter().any(|c| c.starts_with(name)), "{name}in {crates:?}");
        }
    }

    #[test]
    fn crates_stay_below_their_bounds() {
        check_counts().unwrap();
    }
}
