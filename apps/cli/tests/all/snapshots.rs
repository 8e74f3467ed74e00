//! What the command prints, as text in `tests/snapshots`: after `$` a command, then its output and error stream, then
//! after `?` its exit code unless it is 0. The tests run the commands of a file again and compare the whole of it.
//! `NARROWS_SNAPSHOTS=write cargo test -p narrows-cli --test all snapshots` writes what is printed now, for git to show.

use crate::process::run;
use std::fmt::Write as _;
use std::path::Path;

/// The file, and what its commands print now in this home.
fn again(name: &str, home: &Path) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.txt"));
    let kept = std::fs::read_to_string(&path).unwrap();
    let mut now = String::new();
    for words in kept.lines().filter_map(|line| line.strip_prefix("$ narrows ")) {
        let done = run(home, &words.split(' ').collect::<Vec<_>>());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let _ = write!(now, "$ narrows {words}\n{}{}", text(&done.stdout), text(&done.stderr));
        match done.status.code() {
            Some(0) => now.push('\n'),
            code => {
                let _ = write!(now, "? {}\n\n", code.unwrap_or(-1));
            }
        }
    }
    if std::env::var_os("NARROWS_SNAPSHOTS").is_some() {
        std::fs::write(&path, &now).unwrap();
        return (now.clone(), now);
    }
    (kept, now)
}

/// Fails at the first line that differs. Returns the text.
fn compare(name: &str, home: &Path) -> String {
    let (kept, now) = again(name, home);
    let mut lines = kept.lines().zip(now.lines()).enumerate();
    if let Some((at, (kept, now))) = lines.find(|(_, (kept, now))| kept != now) {
        panic!("tests/snapshots/{name}.txt, line {}\nkept: {kept}\nnow:  {now}", at + 1);
    }
    assert_eq!(kept.len(), now.len(), "{name}: one has further lines");
    now
}

#[test]
fn every_command_explains_its_options() {
    compare("help", tempfile::tempdir().unwrap().path());
}

#[test]
fn lists_name_everything() {
    compare("list", tempfile::tempdir().unwrap().path());
}

/// Summary, table, recommendation, notes and files of a comparison; equal seeds give equal figures.
#[test]
fn a_comparison_prints_its_table() {
    compare("compare", tempfile::tempdir().unwrap().path());
}

/// Bad input gives one line, exit code 2, no output and no files except a key.
#[test]
fn bad_input_gives_one_line_and_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::fs::write(home.join("bad.toml"), "seed = 1\n[[flws]]\n").unwrap();
    std::fs::write(home.join("trace"), "1\nx\n").unwrap();
    std::fs::write(home.join("clock"), "1448000000000\n1448000000012\n").unwrap();
    std::fs::write(home.join("config.toml"), "dir = '.'\nclients = 'all'\nlisten = 'nonsense'\n")
        .unwrap();
    std::fs::write(home.join("rates.toml"), "allow = '*:443'\nrate = 'fast'\n").unwrap();
    // `serve` makes its key before it reads its address.
    std::fs::create_dir(home.join("config")).unwrap();
    let before = std::fs::read_dir(home).unwrap().count();
    let printed = compare("errors", home);
    assert_eq!(std::fs::read_dir(home).unwrap().count(), before);
    for case in printed.trim_end().split("\n\n") {
        let lines: Vec<&str> = case.lines().collect();
        let [_, error, "? 2"] = lines[..] else { panic!("{case}") };
        assert!(error.starts_with("narrows: "), "{case}");
    }
    // Arguments with spaces and with control characters, which the file does not have.
    let hidden = "1Mbit/s,1ms,loss=\u{1b}[2J\u{200b}";
    for (args, hint) in [
        (["compare", "--protocols", "reno cubic"], "separated by commas"),
        (["compare", "--link", hidden], r"\u{1b}[2J\u{200b}"),
    ] {
        let out = run(home, &args);
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), error.lines().count()), (Some(2), 1), "{args:?}: {error}");
        assert!(error.contains(hint) && out.stdout.is_empty(), "{args:?}: {error}");
        assert!(!error.trim_end().contains(narrows_base::text::is_hidden), "{args:?}: {error}");
    }
}
