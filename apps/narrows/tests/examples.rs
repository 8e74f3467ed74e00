//! Checks the examples against the README and `docs/adding-a-controller.md`.

use std::path::Path;
use std::process::{Command, Output};

/// Runs an example. Cargo builds the examples with the tests of this package. A separate build would compile all crates
/// again with the features that only the examples need.
fn example(name: &str, folder: &Path, args: &[&str]) -> Output {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let built = built.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(built.exists(), "no {}: run `cargo test -p narrows` whole", built.display());
    Command::new(built).current_dir(folder).args(args).output().unwrap()
}

fn text(out: &[u8]) -> String {
    String::from_utf8_lossy(out).into_owned()
}

fn success(name: &str, folder: &Path, args: &[&str]) -> String {
    let out = example(name, folder, args);
    assert!(out.status.success(), "{name} {args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Every command accepts a registered controller by its name, like the built-in ones.
#[test]
fn a_registered_controller_is_known_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| success("my_controller", folder.path(), args);
    assert!(run(&["list", "controllers"]).contains("gentle"));
    let shown = run(&["list", "gentle"]);
    for part in ["family", "tcp", "limit", "over its minimum", "chosen for this example"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let brief = ["--duration", "5s", "--warmup", "1s", "--seeds", "2"];
    let link = ["--link", "2Mbit/s,30ms,queue=60p"];
    let protocols = ["--protocols", "gentle,gentle(limit=1.5),rrtp+gentle,reno"];
    let table =
        run(&[&["compare"][..], &link, &protocols, &brief, &["--save", "saved.toml"]].concat());
    for name in ["gentle", "gentle(limit=1.5)", "rrtp+gentle", "reno"] {
        assert!(table.contains(name), "{name}: {table}");
    }
    run(&["run", "saved.toml", "--seeds", "1", "--out", "out"]);
    let columns = std::fs::read_to_string(folder.path().join("out/summary.json")).unwrap();
    assert!(columns.contains("gentle(limit=1.5)"), "{columns}");
    let swept = run(&[
        &["sweep"][..],
        &link,
        &["--protocols", "gentle", "--vary", "protocol.limit=1.2,2", "--seeds", "1"],
        &["--duration", "3s", "--warmup", "1s", "--out", "swept"],
    ]
    .concat());
    assert!(swept.contains("limit"), "{swept}");
    // A mistyped name is suggested, and built-in names keep their meaning.
    let refused = example("my_controller", folder.path(), &["compare", "--protocols", "gentel"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("did you mean 'gentle'?"), "{}", text(&refused.stderr));
    // Over real sockets as well.
    let speed = run(&["speed", "--protocol", "rrtp+gentle", "--duration", "1MB", "--json"]);
    assert!(speed.contains("\"protocol\":\"rrtp+gentle\",\"bytes\":1000000"), "{speed}");
}

#[test]
fn a_topology_is_built_run_and_read_in_rust() {
    let out = success("topology", Path::new("."), &[]);
    for part in ["cubic: ", "vegas: ", "% used", "packets wait", "largest cwnd"] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn endpoints_carry_streams_and_messages_under_any_controller() {
    for name in ["rrtp", "rrtp+bbr", "tear-reliable"] {
        let out = success("stream", Path::new("."), &[name]);
        assert_eq!(out, format!("{name}: 1000000 bytes came\n"));
    }
    for name in ["tfrc", "rrtp+cubic"] {
        let out = success("messages", Path::new("."), &[name]);
        assert_eq!(out, format!("{name}: frame 1\n{name}: frame 2\n{name}: frame 3\n"));
    }
}

/// The page quotes the example's files, so that its code compiles and runs.
#[test]
fn the_page_on_adding_a_controller_quotes_its_example() {
    let page = include_str!("../../../docs/adding-a-controller.md");
    for (name, file) in [
        ("gentle.rs", include_str!("../examples/my_controller/gentle.rs")),
        ("main.rs", include_str!("../examples/my_controller/main.rs")),
    ] {
        assert!(page.contains(&format!("```rust\n{file}```")), "quote {name} again");
    }
    let readme = include_str!("../../../README.md");
    let main = include_str!("../examples/my_controller/main.rs");
    let (_, main) = main.split_once("fn main()").unwrap();
    assert!(readme.contains(main), "the README shows the same main");
}
