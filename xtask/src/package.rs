//! `cargo xtask package`: the packages for users, in `target/package`, with a table of the files.

use crate::command::{cargo, has_target, is_installed, output, run};
use crate::files::{entries, failed, name, write};
use crate::python::environment;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OUT: &str = "target/package";
/// The target without any shared library.
const STATIC: &str = "x86_64-unknown-linux-musl";
/// C compilers for it, as the crate `cc` looks for them.
const STATIC_COMPILERS: [&str; 2] = ["x86_64-linux-musl-gcc", "musl-gcc"];
/// The Python module of the development build.
const MODULE: &str = "lib_narrows.so";
/// Environment with maturin and zig, for wheels.
const WHEEL_TOOLS: &str = "packaging/wheel-tools.txt";
/// Oldest glibc of the wheel.
const MANYLINUX: &str = "manylinux_2_28";

/// Builds the packages, and with `--try` installs each of them in a scratch system.
pub fn package(rest: &[String]) -> Result<(), String> {
    let has = |flag: &str| rest.iter().any(|word| word == flag);
    if let Some(word) = rest.iter().find(|w| !["--debug", "--try"].contains(&w.as_str())) {
        return Err(format!("package takes --debug and --try, and not '{word}'"));
    }
    let target = crate::command::target();
    if has("--debug") {
        check_built(&Path::new(&target).join("debug"))?;
    } else {
        let is_named = std::env::var_os("CC_x86_64_unknown_linux_musl").is_some();
        let has_compiler = is_named || STATIC_COMPILERS.into_iter().any(is_installed);
        check_installed(has_target(STATIC), has_compiler)?;
    }
    let out = std::path::absolute(OUT).map_err(failed(OUT.as_ref()))?;
    fs::create_dir_all(&out).map_err(failed(&out))?;
    for old in made(&out)? {
        fs::remove_file(&old).map_err(failed(&old))?;
    }
    let binary = if has("--debug") {
        Path::new(&target).join("debug/narrows")
    } else {
        cargo(&[&COMMAND[..], &["--profile", "dist", "--target", STATIC]].concat())?;
        Path::new(&target).join(STATIC).join("dist/narrows")
    };
    let staged = stage(&binary, &out)?;
    let needs = if has("--debug") { "this system's glibc" } else { "nothing" };
    let mut table = Vec::new();
    let built_for = if has("--debug") { "x86_64-unknown-linux-gnu" } else { STATIC };
    table.push((archive(&out, &staged, built_for)?, needs));
    table.push((deb(&out, &staged, has("--debug"))?, needs));
    table.extend(rpm(&out, &staged)?.map(|file| (file, needs)));
    let [wheel, sdist] = wheels(&out, has("--debug"))?;
    table.push((wheel, if has("--debug") { needs } else { "Python 3.10, glibc 2.28" }));
    table.push((sdist, "Python 3.10, Rust 1.88"));
    sums(&out)?;
    println!("| file | size | needs |\n|---|---|---|");
    for (file, needs) in &table {
        let size = fs::metadata(file).map_err(failed(file))?.len() as f64 / 1e6;
        println!("| {} | {size:.1} MB | {needs} |", name(file));
    }
    if has("--try") { try_all(&out, has("--debug")) } else { Ok(()) }
}

/// Fails before minutes of compiling if the static command cannot be built.
fn check_installed(has_target: bool, has_compiler: bool) -> Result<(), String> {
    if has_target && has_compiler {
        return Ok(());
    }
    Err(format!(
        "package needs Rust's target {STATIC} and a C compiler for it (musl-gcc). On Debian or Ubuntu:\n  \
         rustup target add {STATIC}\n  sudo apt-get install musl-tools"
    ))
}

/// Fails if the development build lacks a file that `--debug` packs.
fn check_built(folder: &Path) -> Result<(), String> {
    let mut needed = ["narrows", MODULE].iter().map(|name| folder.join(name));
    needed.find(|file| !file.is_file()).map_or(Ok(()), |file| {
        Err(format!(
            "package --debug packs the development build, and {} is missing: first run cargo xtask test",
            file.display()
        ))
    })
}

const COMMAND: [&str; 6] = ["build", "--locked", "--package", "narrows-cli", "--features", "full"];

/// The files of the packages below a folder: the command, pages, completions, units.
fn stage(binary: &Path, out: &Path) -> Result<PathBuf, String> {
    let root = out.join("staged");
    let _ = fs::remove_dir_all(&root);
    let share = root.join("usr/share");
    let man = share.join("man/man1");
    let folders = [
        man.clone(),
        share.join("bash-completion/completions"),
        share.join("zsh/vendor-completions"),
        share.join("fish/vendor_completions.d"),
        share.join("doc/narrows"),
        root.join("usr/bin"),
        root.join("usr/lib/systemd"),
        root.join("etc"),
    ];
    for folder in folders {
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
    }
    let copies = [
        ("README.md", "usr/share/doc/narrows/README.md"),
        ("CHANGELOG.md", "usr/share/doc/narrows/CHANGELOG.md"),
        ("LICENSE-MIT", "usr/share/doc/narrows/LICENSE-MIT"),
        ("LICENSE-APACHE", "usr/share/doc/narrows/LICENSE-APACHE"),
        ("packaging/copyright", "usr/share/doc/narrows/copyright"),
    ];
    for (from, to) in copies {
        fs::copy(from, root.join(to)).map_err(failed(Path::new(from)))?;
    }
    let command = root.join("usr/bin/narrows");
    run(
        Command::new("strip").arg("-o").arg(&command).arg(binary),
        &format!("strip {}", binary.display()),
    )?;
    let folders =
        [("packaging/systemd", "usr/lib/systemd/system"), ("packaging/etc", "etc/narrows")];
    for (from, to) in folders {
        run(Command::new("cp").args(["-r", from]).arg(root.join(to)), &format!("cp {from}"))?;
    }
    run(Command::new(&command).args(["man", "--all"]).arg(&man), "narrows man --all")?;
    let pages = format!("gzip -9n '{}'/*.1", man.display());
    run(Command::new("sh").args(["-c", &pages]), "gzip the pages")?;
    for (shell, file) in [
        ("bash", "bash-completion/completions/narrows"),
        ("zsh", "zsh/vendor-completions/_narrows"),
        ("fish", "fish/vendor_completions.d/narrows.fish"),
    ] {
        write(share.join(file), output(&command.to_string_lossy(), &["completions", shell])?)?;
    }
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root), "chmod the staged files")?;
    Ok(root)
}

/// The command with its pages and completions, for any distribution and for `cargo binstall`.
fn archive(out: &Path, staged: &Path, target: &str) -> Result<PathBuf, String> {
    let folder = format!("narrows-{VERSION}-{target}");
    let file = out.join(format!("{folder}.tar.gz"));
    let usr = staged.join("usr");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"]).arg(usr);
    tar.arg(format!("--transform=s,^,{folder}/,"));
    tar.arg("-czf").arg(&file).args(["bin", "share"]);
    run(&mut tar, "tar bin share")?;
    Ok(file)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The package of Debian and its relatives.
fn deb(out: &Path, staged: &Path, needs_glibc: bool) -> Result<PathBuf, String> {
    let folder = out.join("deb");
    let _ = fs::remove_dir_all(&folder);
    run(Command::new("cp").arg("-r").arg(staged).arg(&folder), "copy the staged files")?;
    let control = folder.join("DEBIAN");
    run(Command::new("cp").args(["-r", "packaging/deb"]).arg(&control), "cp packaging/deb")?;
    let kilobytes = output("du", &["-sk", &staged.to_string_lossy()])?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0");
    let depends = if needs_glibc { "Depends: libc6\n" } else { "" };
    let text = format!(
        "Package: narrows\nVersion: {VERSION}\nArchitecture: amd64\nSection: net\nPriority: optional\n\
         Maintainer: The Narrows maintainers <narrows@localhost>\nInstalled-Size: {kilobytes}\n{depends}\
         Description: compares transport protocols on any link, and transports over lossy ones\n \
         Narrows compares transport protocols on a simulated link, emulates links for any\n \
         program, and carries files, tunnels and media over lossy and slow links.\n"
    );
    write(control.join("control"), text)?;
    let list = "find etc -type f | sort | sed 's,^,/,' >DEBIAN/conffiles";
    run(Command::new("sh").args(["-c", list]).current_dir(&folder), list)?;
    let file = out.join(format!("narrows_{VERSION}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    if needs_glibc {
        // Only to be tried: xz takes several times the processor time.
        build.arg("-Zgzip");
    }
    build.args(["--root-owner-group", "--build"]).arg(&folder).arg(&file).stdout(Stdio::null());
    run(&mut build, "dpkg-deb --build")?;
    Ok(file)
}

/// The package of Fedora and its relatives, if `rpmbuild` is installed.
fn rpm(out: &Path, staged: &Path) -> Result<Option<PathBuf>, String> {
    if !is_installed("rpmbuild") {
        eprintln!("no rpm: rpmbuild is not installed");
        return Ok(None);
    }
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", "x86_64", "packaging/narrows.spec"]);
    for (name, value) in [
        ("version", VERSION.into()),
        ("staged", staged.display().to_string()),
        ("_topdir", out.join("rpm").display().to_string()),
        ("_rpmdir", out.display().to_string()),
        ("_rpmfilename", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm".into()),
    ] {
        build.arg("--define").arg(format!("{name} {value}"));
    }
    run(&mut build, "rpmbuild packaging/narrows.spec")?;
    Ok(Some(out.join(format!("narrows-{VERSION}-1.x86_64.rpm"))))
}

/// A wheel for Python 3.10 and newer, and the sources.
fn wheels(out: &Path, is_debug: bool) -> Result<[PathBuf; 2], String> {
    let tools = environment("python3", "target/python/wheel-tools", WHEEL_TOOLS)?.join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let maturin = |args: &[&str]| {
        let mut command = Command::new(tools.join("maturin"));
        command.args(args).arg("--manifest-path").arg("python/Cargo.toml").arg("--out").arg(out);
        // maturin finds zig there.
        run(
            command.env("PATH", format!("{}:{path}", tools.display())),
            &format!("maturin {}", args.join(" ")),
        )
    };
    maturin(&["sdist"])?;
    let sdist = out.join(format!("narrows-{VERSION}.tar.gz"));
    if is_debug {
        let module = Path::new(&crate::command::target()).join("debug").join(MODULE);
        let mut pack = Command::new("python3");
        pack.arg("tools/package/debug_wheel.py").args([&sdist, &module, &out.to_path_buf()]);
        run(&mut pack, "debug_wheel.py")?;
    } else {
        let args =
            ["build", "--zig", "--compatibility", MANYLINUX, "--profile", "dist", "--locked"];
        maturin(&args)?;
    }
    let find = |end: &str| {
        let found = made(out)?.into_iter().find(|file| name(file).ends_with(end));
        let is_python = |file: &PathBuf| name(file).starts_with("narrows-");
        found.filter(is_python).ok_or_else(|| format!("maturin made no {end}"))
    };
    Ok([find(".whl")?, sdist])
}

/// The checksums of everything.
fn sums(out: &Path) -> Result<(), String> {
    let files = made(out)?;
    let names = files.iter().map(|file| name(file));
    let sums = Command::new("sha256sum").args(names).current_dir(out).output();
    let sums = sums.map_err(|e| format!("sha256sum: {e}"))?;
    write(out.join("SHA256SUMS"), sums.stdout)
}

/// Installs, uses and removes the packages, the crates among them.
fn try_all(out: &Path, is_debug: bool) -> Result<(), String> {
    crate::packages::check_packaging()?;
    let work = Path::new(&crate::command::target()).join("try");
    let mut source = Command::new("bash");
    source.arg("packaging/try/source.sh").arg(out).arg(work);
    source.arg(if is_debug { "check" } else { "install" }).arg(crate::command::target());
    // The packages need one core each.
    std::thread::scope(|scope| {
        let source = scope.spawn(move || run(&mut source, "narrows-cli from a directory source"));
        try_packages(out, is_debug)?;
        source.join().unwrap_or_else(|_| Err("narrows-cli from a directory source".into()))
    })
}

/// Installs, uses and removes the compiled packages.
fn try_packages(out: &Path, is_debug: bool) -> Result<(), String> {
    let script = |name: &str, what: &str| {
        run(Command::new("bash").arg(format!("packaging/try/{name}")).arg(out), what)
    };
    script("wheel.sh", "the wheel and the sources without Rust")?;
    let is_root = output("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    if is_root && is_installed("systemd-nspawn") {
        script("boot.sh", "the packages in a booted scratch system")?;
    } else {
        eprintln!("deb and rpm: not tried, since that needs root and systemd-nspawn");
    }
    if is_debug {
        return Ok(());
    }
    script("alone.sh", "the command in an empty root")?;
    script("pages.sh", "the task pages with a package")
}

/// The files that users get.
fn made(out: &Path) -> Result<Vec<PathBuf>, String> {
    let ends = [".tar.gz", ".deb", ".rpm", ".whl"];
    let mut files = entries(out)?;
    files.retain(|path| ends.iter().any(|end| name(path).ends_with(end)));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_without_musl_names_both_commands() {
        for (has_target, has_compiler) in [(false, true), (true, false), (false, false)] {
            let line = check_installed(has_target, has_compiler).unwrap_err();
            assert!(line.contains("rustup target add x86_64-unknown-linux-musl\n"), "{line}");
            assert!(line.contains("apt-get install musl-tools"), "{line}");
        }
        check_installed(true, true).unwrap();
        assert!(is_installed("cargo") && !is_installed("no-such-compiler"));
    }

    #[test]
    fn package_without_development_build_names_the_missing_file() {
        let line = check_built(Path::new("no-such-folder")).unwrap_err();
        assert!(line.contains("no-such-folder/narrows is missing"), "{line}");
    }
}
