//! `cargo xtask package`: what users install, in `target/package`, with a table of the files.

use crate::command::{cargo, run};
use crate::python::environment;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OUT: &str = "target/package";
/// The target without any shared library. It needs `rustup target add` and Debian's musl-tools.
const STATIC: &str = "x86_64-unknown-linux-musl";
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
    let out = std::path::absolute(OUT).map_err(|e| format!("{OUT}: {e}"))?;
    fs::create_dir_all(&out).map_err(failed(&out))?;
    for old in made(&out)? {
        fs::remove_file(&old).map_err(failed(&old))?;
    }
    let target = crate::command::target();
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
        println!("| {} | {size:.1} MB | {needs} |", name_of(file));
    }
    if has("--try") { try_all(&out, has("--debug")) } else { Ok(()) }
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
        root.join("usr/lib/sysusers.d"),
        root.join("usr/lib/systemd"),
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
        ("packaging/sysusers.conf", "usr/lib/sysusers.d/narrows.conf"),
    ];
    for (from, to) in copies {
        fs::copy(from, root.join(to)).map_err(failed(Path::new(from)))?;
    }
    let command = root.join("usr/bin/narrows");
    run(
        Command::new("strip").arg("-o").arg(&command).arg(binary),
        &format!("strip {}", binary.display()),
    )?;
    run(
        Command::new("cp")
            .args(["-r", "packaging/systemd"])
            .arg(root.join("usr/lib/systemd/system")),
        "cp packaging/systemd",
    )?;
    run(Command::new(&command).args(["man", "--all"]).arg(&man), "narrows man --all")?;
    let pages = format!("gzip -9n '{}'/*.1", man.display());
    run(Command::new("sh").args(["-c", &pages]), "gzip the pages")?;
    for (shell, file) in [
        ("bash", "bash-completion/completions/narrows"),
        ("zsh", "zsh/vendor-completions/_narrows"),
        ("fish", "fish/vendor_completions.d/narrows.fish"),
    ] {
        let text = Command::new(&command).args(["completions", shell]).output();
        let text = text.map_err(failed(&command))?;
        fs::write(share.join(file), text.stdout).map_err(failed(Path::new(file)))?;
    }
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root), "chmod the staged files")?;
    Ok(root)
}

/// The command with its pages and completions, for any distribution and for `cargo binstall`.
fn archive(out: &Path, staged: &Path, target: &str) -> Result<PathBuf, String> {
    let file = out.join(format!("narrows-{VERSION}-{target}.tar.gz"));
    let usr = staged.join("usr");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"]).arg(usr);
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
    let kilobytes = Command::new("du").arg("-sk").arg(staged).output().map_err(failed(staged))?;
    let kilobytes = String::from_utf8_lossy(&kilobytes.stdout);
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0");
    let depends = if needs_glibc { "Depends: libc6\n" } else { "" };
    let text = format!(
        "Package: narrows\nVersion: {VERSION}\nArchitecture: amd64\nSection: net\nPriority: optional\n\
         Maintainer: The Narrows maintainers <narrows@localhost>\nInstalled-Size: {kilobytes}\n{depends}\
         Description: compares transport protocols on any link, and transports over lossy ones\n \
         Narrows compares transport protocols on a simulated link, emulates links for any\n \
         program, and carries files, tunnels and media over lossy and slow links.\n"
    );
    fs::write(control.join("control"), text).map_err(failed(&control))?;
    let file = out.join(format!("narrows_{VERSION}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&folder).arg(&file).stdout(Stdio::null());
    run(&mut build, "dpkg-deb --build")?;
    Ok(file)
}

/// The package of Fedora and its relatives, if `rpmbuild` is installed.
fn rpm(out: &Path, staged: &Path) -> Result<Option<PathBuf>, String> {
    if Command::new("rpmbuild").arg("--version").output().is_err() {
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

/// A wheel for Python 3.10 and newer, and the sources. With `--debug` the wheel has the module of the tests: maturin would
/// compile it with fewer features, which takes as long as all crates of the command.
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
    if !is_debug {
        let how = ["--zig", "--compatibility", MANYLINUX, "--profile", "dist", "--locked"];
        maturin(&[&["build"][..], &how].concat())?;
    }
    maturin(&["sdist"])?;
    let sources = out.join(format!("narrows-{VERSION}.tar.gz"));
    if is_debug {
        crate::python::build()?;
        let mut make = Command::new("python3");
        make.arg("packaging/test_wheel.py").arg(&sources).arg(out);
        run(&mut make, "packaging/test_wheel.py")?;
    }
    let find = |end: &str| {
        let found = made(out)?.into_iter().find(|file| name_of(file).ends_with(end));
        let is_python = |file: &PathBuf| name_of(file).starts_with("narrows-");
        found.filter(is_python).ok_or_else(|| format!("maturin made no {end}"))
    };
    Ok([find(".whl")?, sources])
}

/// The checksums of everything.
fn sums(out: &Path) -> Result<(), String> {
    let files = made(out)?;
    let names = files.iter().map(|file| name_of(file));
    let sums = Command::new("sha256sum").args(names).current_dir(out).output();
    let sums = sums.map_err(|e| format!("sha256sum: {e}"))?;
    fs::write(out.join("SHA256SUMS"), sums.stdout).map_err(failed(out))
}

/// Installs, uses and removes the packages, the crates among them.
fn try_all(out: &Path, is_debug: bool) -> Result<(), String> {
    crate::packages::check_packaging()?;
    let work = Path::new(&crate::command::target()).join("try");
    let mut source = Command::new("bash");
    source.arg("packaging/try/source.sh").arg(out).arg(work);
    source.arg(if is_debug { "check" } else { "install" });
    // The packages need one core each.
    std::thread::scope(|scope| {
        let source = scope.spawn(move || run(&mut source, "narrows-cli from a directory source"));
        try_packages(out, is_debug)?;
        source.join().unwrap_or_else(|_| Err("narrows-cli from a directory source".into()))
    })
}

/// Installs, uses and removes what is compiled.
fn try_packages(out: &Path, is_debug: bool) -> Result<(), String> {
    let script = |name: &str, what: &str| {
        run(Command::new("bash").arg(format!("packaging/try/{name}")).arg(out), what)
    };
    script("wheel.sh", "the wheel and the sources without Rust")?;
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    if is_root && Command::new("systemd-nspawn").arg("--version").output().is_ok() {
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
    let mut files = Vec::new();
    for entry in fs::read_dir(out).map_err(failed(out))? {
        let path = entry.map_err(failed(out))?.path();
        if ends.iter().any(|end| name_of(&path).ends_with(end)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |e| format!("{path}: {e}")
}
