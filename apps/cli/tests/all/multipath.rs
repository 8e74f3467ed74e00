//! `--path` of `get`, `put` and `speed`, end to end: a server behind two links. Needs user namespaces and TUN devices; prints the
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
        (&["get", "--path", "lo=x", url], "'x' is unknown here: =standby, a weight"),
        (&["get", "--path", "lo=standby", url], "one of the paths must not be on standby"),
        (&["get", "--path", "lo:quota=0B", url], "at least 1B is needed"),
        (&["get", "--path", "lo:quota=2", url], "2"),
        (&["get", "--path", "lo", "--path", "lo=standby", url], "--path lo: given twice"),
        (&["get", "--path", "all=standby", url], "all takes no options"),
        (&["put", "--path", "192.0.2", "/etc/hosts", url], "unknown interface '192.0.2'"),
        (&["tunnel", "connect", "--path", "l0", "--socks", "0", "rrtp://127.0.0.1:9"], "'lo'"),
        (&["media", "send", "--path", "l0", "rrtp://127.0.0.1:9"], "'lo'"),
        (&["media", "receive", "--path", "lo"], "give the peer's URL"),
        (&["media", "send", "--path", "lo", "--listen", "127.0.0.1:0"], "give the peer's URL"),
        (&["media", "receive", "--path", "l0", "rrtp://127.0.0.1:9"], "'lo'"),
        (&["speed", "--path", "l0", "127.0.0.1:9"], "'lo'"),
        (&["speed", "--path", "lo", "--path", "lo", "127.0.0.1:9"], "--path lo: given twice"),
        (&["probe", "--path", "l0", "127.0.0.1:9"], "'lo'"),
        (&["probe", "--path", "lo", "--path", "lo", "127.0.0.1:9"], "--path lo: given twice"),
        (
            &["probe", "--path", "lo:quota=1MB", "127.0.0.1:9"],
            "without =WEIGHT, =standby and :quota",
        ),
        (&["probe", "--path", "lo", "--tcp", "127.0.0.1:9"], "--tcp"),
        (&["probe", "--path", "lo", "--save", "x", "127.0.0.1:9"], "--save"),
        (&["speed", "--path", "lo"], "give its HOST:PORT"),
        (&["speed", "--path", "lo", "--serve"], "give its HOST:PORT"),
        (&["speed", "--path", "lo", "--connections", "2", "127.0.0.1:9"], "one connection"),
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

/// A server and a home behind two links of 20 Mbit/s, with a file of 6 MB at the server.
struct TwoLinks {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl TwoLinks {
    fn new() -> TwoLinks {
        TwoLinks::first_loses("0%")
    }
    /// The first link loses this share of its packets.
    fn first_loses(loss: &str) -> TwoLinks {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, loss: &str| {
            format!(
                "[[link]]\nname = \"{name}\"\nfrom = \"home\"\nto = \"server\"\nrate = \"20Mbit/s\"\ndelay = \"10ms\"\n\
                 loss = \"{loss}\"\n"
            )
        };
        let flows = "[[flows]]\nprotocol = \"rrtp\"\nfrom = \"home\"\nto = \"server\"\n\
                     paths = [[\"one\"], [\"two\"]]\n";
        let bytes: Vec<u8> = (0..6_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let links = TwoLinks { folder, bytes };
        let topology = format!("{}{}{flows}", link("one", loss), link("two", "0%"));
        std::fs::write(links.at("two.toml"), topology).unwrap();
        for name in ["www", "s", "h"] {
            std::fs::create_dir(links.at(name)).unwrap();
        }
        std::fs::write(links.at("www/f.bin"), &links.bytes).unwrap();
        links
    }
    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
    /// Runs commands at home, in which `$narrows` is the program and `$1` and `$2` are the interfaces. `None` if this
    /// machine cannot.
    fn run(&self, commands: &str) -> Option<Output> {
        let program = env!("CARGO_BIN_EXE_narrows");
        let serve = format!(
            "server=export HOME={}; {program} speed --serve --listen 0.0.0.0:47472 & \
             exec {program} serve {} --allow-put --listen 0.0.0.0:47470",
            self.at("s"),
            self.at("www")
        );
        let script = format!(
            "home=export HOME={home}; cd {home}; narrows={program}; \
             set -- $(grep -o 'narrows[0-9]*[ab]' /proc/net/dev | sort); \
             for n in $(seq 100); do \
               $narrows ls --path $2 rrtp://server/ >ls.txt 2>&1 && break; sleep .1; done; \
             {commands}",
            home = self.at("h"),
        );
        let topology = self.at("two.toml");
        let args = ["link", "--scenario", &topology, "--quiet", "--at", &serve, "--at", &script];
        let out = narrows(&args, self.folder.path());
        let said = text(&out.stderr);
        if said.contains("user namespaces") || said.contains("TUN") || said.contains("not found") {
            eprintln!("skipped: {}", said.trim());
            return None;
        }
        assert!(out.status.success(), "{said}");
        Some(out)
    }
}

/// The bytes of each path in each line of JSON. The server's lines begin with its name.
fn path_bytes(out: &Output) -> Vec<Vec<u64>> {
    let printed = text(&out.stdout);
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_line = |line: Value| {
        let paths = line["paths"].as_array().unwrap().clone();
        paths.iter().map(|path| path["bytes"].as_u64().unwrap()).collect()
    };
    lines.map(of_line).collect()
}

/// The file's bytes cross both links, in either direction.
#[test]
fn get_and_put_use_both_links_of_a_scenario() {
    let links = TwoLinks::new();
    let commands = "$narrows get --json --path all rrtp://server/f.bin && \
                    $narrows put --json --path all f.bin rrtp://server/g.bin";
    let Some(out) = links.run(commands) else { return };
    assert!(std::fs::read(links.at("h/f.bin")).unwrap() == links.bytes, "other bytes");
    assert!(std::fs::read(links.at("www/g.bin")).unwrap() == links.bytes, "other bytes");
    let transfers = path_bytes(&out);
    assert_eq!(transfers.len(), 2, "{}", text(&out.stderr));
    for paths in transfers {
        assert_eq!(paths.len(), 2);
        // Which share each gets depends on the time. A path that carries no data has far less.
        assert!(paths.iter().all(|bytes| *bytes > 300_000), "{paths:?}");
    }
}

/// The handshake does not wait for a line that is up and delivers nothing.
#[test]
fn silent_first_link_leaves_the_handshake_to_the_second() {
    let links = TwoLinks::first_loses("100%");
    let commands = "$narrows get --json --path $1 --path $2 rrtp://server/f.bin";
    let Some(out) = links.run(commands) else { return };
    assert!(std::fs::read(links.at("h/f.bin")).unwrap() == links.bytes, "other bytes");
    let said = text(&out.stderr);
    assert!(said.contains("so far: ") && said.contains(" begins"), "{said}");
}

#[test]
fn speed_uses_both_links_in_either_direction() {
    let links = TwoLinks::new();
    let commands = "$narrows speed --json --path all --duration 6MB server:47472 && \
                    $narrows speed --json --path all --duration 6MB --down server:47472";
    let Some(out) = links.run(commands) else { return };
    let measured = path_bytes(&out);
    assert_eq!(measured.len(), 2, "{}", text(&out.stderr));
    for paths in measured {
        assert_eq!(paths.len(), 2);
        assert!(paths.iter().all(|bytes| *bytes > 300_000), "{paths:?}");
    }
}

#[test]
fn standby_link_carries_no_file_and_quota_ends_a_link() {
    let links = TwoLinks::new();
    let commands = "$narrows get --json --path $2=standby --path $1 rrtp://server/f.bin && rm f.bin && \
                    $narrows get --json --path $1 --path $2:quota=500kB rrtp://server/f.bin";
    let Some(out) = links.run(commands) else { return };
    assert!(std::fs::read(links.at("h/f.bin")).unwrap() == links.bytes, "other bytes");
    let said = text(&out.stderr);
    let transfers = path_bytes(&out);
    assert_eq!(transfers.len(), 2, "{said}");
    assert!(transfers[0][0] > 5_900_000 && transfers[0][1] < 100_000, "{transfers:?}");
    assert!(said.contains("has used its quota: it carries no more"), "{said}");
    assert!(transfers[1][0] > transfers[1][1], "{transfers:?}");
}

/// The bound holds also where no other path can take over.
#[test]
fn quota_of_the_only_link_ends_the_transfer() {
    let links = TwoLinks::new();
    let commands = "$narrows get --path $1:quota=500kB rrtp://server/f.bin || echo ended";
    let Some(out) = links.run(commands) else { return };
    let said = text(&out.stderr);
    assert!(said.contains("has used its quota: it carries no more"), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(text(&out.stdout).contains("ended"), "{said}");
    let most = std::fs::read_dir(links.at("h")).unwrap().flatten();
    let most = most.filter_map(|file| file.metadata().ok()).map(|file| file.len()).max();
    assert!(most < Some(5_000_000), "{most:?} bytes arrived");
}
