//! `narrows get --path --path`, end to end: a server behind two links. Needs user namespaces and TUN devices; prints the
//! reason if it is skipped.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn narrows(args: &[&str], home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).env("HOME", home).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn impossible_paths_give_one_line_and_exit_2() {
    let home = tempfile::tempdir().unwrap();
    let url = "rrtp://127.0.0.1:9/f";
    for (args, hint) in [
        (&["get", "--path", "no such", url][..], "unknown interface 'no such'"),
        (&["get", "--path", "l0", url], "did you mean 'lo'"),
        (&["get", "--path", "0.0.0.0", url], "no address of one interface"),
        (&["get", "--path", "lo", "--path", "lo", url], "--path lo: given twice"),
        (&["get", "--path", "all", "--path", "lo", url], "no other --path is needed"),
        (&["get", "--path", "lo", "tcp://127.0.0.1:9/f"], "--path is for rrtp"),
        (&["put", "--path", "192.0.2", "/etc/hosts", url], "unknown interface '192.0.2'"),
        (&["tunnel", "connect", "--path", "l0", "--socks", "0", "rrtp://127.0.0.1:9"], "'lo'"),
        (&["media", "send", "--path", "l0", "rrtp://127.0.0.1:9"], "'lo'"),
        (&["media", "receive", "--path", "lo"], "give the peer's URL"),
        (&["media", "send", "--path", "lo", "--listen", "127.0.0.1:0"], "give the peer's URL"),
        (&["media", "receive", "--path", "l0", "rrtp://127.0.0.1:9"], "'lo'"),
    ] {
        let out = narrows(args, home.path());
        let line = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        assert!(line.contains(hint), "{args:?}: {line}");
    }
}

#[test]
fn unbindable_path_is_left_out_with_a_line() {
    let home = tempfile::tempdir().unwrap();
    let out = narrows(&["get", "--path", "192.0.2.77", "rrtp://127.0.0.1:9/f"], home.path());
    let line = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{line}");
    assert!(line.contains("no --path leads to 127.0.0.1:9; 192.0.2.77 is left out:"), "{line}");
    assert!(!line.contains("begins"), "{line}");
    // The other path is tried.
    let args = ["get", "--path", "192.0.2.77", "--path", "lo", "rrtp://127.0.0.1:9/f"];
    let line = text(&narrows(&args, home.path()).stderr);
    assert!(line.contains("127.0.0.1:9") && !line.contains("no --path"), "{line}");
}

/// The file's bytes cross both links, in either direction.
#[test]
fn get_and_put_use_both_links_of_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let link = |name: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"home\"\nto = \"server\"\nrate = \"20Mbit/s\"\ndelay = \"10ms\"\n"
        )
    };
    let flows = "[[flows]]\nprotocol = \"rrtp\"\nfrom = \"home\"\nto = \"server\"\n\
                 paths = [[\"one\"], [\"two\"]]\n";
    std::fs::write(at("two.toml"), format!("{}{}{flows}", link("one"), link("two"))).unwrap();
    std::fs::create_dir(at("www")).unwrap();
    let bytes: Vec<u8> = (0..6_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    std::fs::write(at("www/f.bin"), &bytes).unwrap();
    let program = env!("CARGO_BIN_EXE_narrows");
    let serve = format!(
        "server=HOME={} exec {program} serve {} --allow-put --listen 0.0.0.0:47470",
        at("s"),
        at("www")
    );
    let script = format!(
        "home=export HOME={home}; cd {home}; \
         for n in $(seq 100); do \
           {program} ls rrtp://server/ >ls.txt 2>&1 && break; sleep .1; done; \
         {program} get --json --path all rrtp://server/f.bin && \
         {program} put --json --path all f.bin rrtp://server/g.bin",
        home = at("h"),
    );
    for name in ["s", "h"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let args = ["link", "--scenario", &at("two.toml"), "--quiet", "--at", &serve, "--at", &script];
    let out = narrows(&args, folder.path());
    let said = text(&out.stderr);
    if said.contains("user namespaces") || said.contains("TUN") || said.contains("not found") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert!(out.status.success(), "{said}");
    assert!(std::fs::read(at("h/f.bin")).unwrap() == bytes, "other bytes");
    assert!(std::fs::read(at("www/g.bin")).unwrap() == bytes, "other bytes");
    // The server's lines begin with its name.
    let printed = text(&out.stdout);
    let lines: Vec<Value> =
        printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 2, "{said}");
    for line in lines {
        let paths = line["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 2, "{line}");
        for path in paths {
            // Which share each gets depends on the time. A path that carries no data has far less.
            assert!(path["bytes"].as_u64().unwrap() > 300_000, "{line}");
        }
    }
}
