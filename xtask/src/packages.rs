//! Checks for users of the crates: packages can be published, and have few dependencies.

use crate::command::{cargo, output};
use std::collections::BTreeSet;

/// A package, its features, and the most crates that compile for it, itself and build dependencies included, on this
/// system. To add a dependency, raise the bound here and give the reason.
const BOUNDS: [(&str, &str, usize); 6] = [
    // Pure state machines: no ciphers, no sockets, no C. One is the schedulers of several paths.
    ("narrows-sim", "", 11),
    ("narrows", "", 12),
    // Links and their text, libm: no simulator, no runtime, no reader of TOML.
    ("narrows-testnet", "", 5),
    // The reader of TOML: serde and toml with their dependencies.
    ("narrows-scenario", "", 26),
    // The command that simulates, which a new user builds first: clap, the page and figures.
    ("narrows-cli", "", 65),
    // One of them is the emulator itself, which has no further dependencies. Six are the kernel's controllers and the
    // loader of eBPF objects: aya-obj, object and their dependencies. One is the estimates of `narrows probe`. Three are the tunnel and its dependencies, eight the live page and
    // its HTTP server: hyper with its dependencies, and tokio's sockets. Two more are those of hyper's client half, by
    // which the HTTP proxy routes each request. Four are the ends of media and the erasure code of their repair
    // packets, with its dependencies. One is the packet sender and receiver, one the peers' keys and learned paths,
    // one the papers' protocols as printed.
    ("narrows-cli", "full", 172),
];

/// Holds the dependencies to their bounds.
pub fn check_counts() -> Result<(), String> {
    for (package, features, bound) in BOUNDS {
        let crates = crates_of(package, features)?;
        let with = if features.is_empty() { String::new() } else { format!(" with {features}") };
        eprintln!("{package}{with}: {} crates to compile, of {bound} at most", crates.len());
        if crates.len() > bound {
            let all = crates.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!("more crates than {bound} compile for {package}: {all}"));
        }
    }
    Ok(())
}

/// The crates that compile for a package with these features, itself included.
fn crates_of(package: &str, features: &str) -> Result<BTreeSet<String>, String> {
    let of = ["tree", "--locked", "--package", package, "--features", features];
    let what = ["--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let text = output(env!("CARGO"), &[of, what].concat())?;
    Ok(text.lines().map(package_of).filter(|p| !p.is_empty()).collect())
}

/// Name and version from a line of `cargo tree`.
fn package_of(line: &str) -> String {
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// Packs every published crate in one call. It fails for a path dependency without a version, and for a missing file.
/// Packages are not built and the registry is not used, since their dependencies were fetched for the build.
pub fn check_packaging() -> Result<(), String> {
    let mut args =
        vec!["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"];
    for developers in
        ["xtask", "narrows-fuzzed", "narrows-experiments", "narrows-python", "narrows-stacks"]
    {
        args.extend(["--exclude", developers]);
    }
    cargo(&args)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulations of links and scenarios need no ciphers, captures or pages. The test fails if a crate below them gets
    /// such a dependency.
    #[test]
    fn the_simulator_compiles_without_ciphers_sockets_pages_and_c() {
        for package in ["narrows-sim", "narrows-scenario"] {
            let crates = crates_of(package, "").unwrap();
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
