//! What users of the crates get: packages that can be published, and few dependencies.

use crate::command::cargo;
use std::collections::BTreeSet;
use std::process::Command;

/// Crates that compile for a package at most, itself and build dependencies included, on this system. Whoever
/// needs one more raises the bound here and says why.
const BOUNDS: [(&str, usize); 4] = [
    // Pure state machines: no ciphers, no sockets, no C.
    ("narrows-sim", 10),
    ("narrows", 11),
    // And what reads TOML: serde and toml with what they need.
    ("narrows-scenario", 25),
    // One of them is the emulator itself, which has no dependency that the others had not. Six are the kernel's
    // controllers and what reads eBPF objects and fits them to the running kernel: aya-obj, object and what these need.
    // One is its own options, which the Python package has, too, one the estimates of `narrows probe`; three are the
    // tunnel and what it needs, eight the live page and its HTTP server: hyper with what that needs, and tokio's sockets.
    // Two more are those of hyper's client half, by which the HTTP proxy routes each request.
    // Four are the ends of media and the erasure code of their packets of repair, with what that needs.
    ("narrows-cli", 171),
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
    let output = command.output().map_err(|e| format!("'cargo tree' could not be started: {e}"))?;
    if !output.status.success() {
        return Err(format!("'cargo tree' failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
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
    for developers in ["xtask", "narrows-fuzzed", "narrows-papers", "narrows-python"] {
        args.extend(["--exclude", developers]);
    }
    cargo(&args)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulations of links and scenarios need no ciphers, no captures and no pages: whoever gives a crate
    /// below them such a dependency sees it here.
    #[test]
    fn the_simulator_compiles_without_ciphers_sockets_pages_and_c() {
        for package in ["narrows-sim", "narrows-scenario"] {
            let crates = crates_of(package).unwrap();
            assert!(crates.len() > 4, "{crates:?}");
            for name in [
                "narrows-wire",
                "narrows-net",
                "ring",
                "snow",
                "cc",
                "tokio",
                "quinn-udp",
                "plotters",
                "parquet",
                "serde_json",
            ] {
                let name = format!("{name} ");
                assert!(!crates.iter().any(|c| c.starts_with(&name)), "{name}in {crates:?}");
            }
        }
    }

    #[test]
    fn crates_stay_below_their_bounds() {
        check_counts().unwrap();
    }
}
