//! The file commands over loopback, as in the documentation: a server in one process, clients in others.

use crate::process::{Process, narrows, run};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Server {
    _child: Process,
    /// `host:port`; below, the server's key.
    pub(crate) at: String,
    key: String,
}

/// The same controller over both transports.
pub(crate) fn with(scheme: &str) -> String {
    format!("--protocol={scheme}+cubic")
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |m| m.len())
}

/// The partial file of `name` in a folder, if there is one.
fn partial(dir: &Path, name: &str) -> Option<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path());
    let is_part = |p: &PathBuf| {
        let file = p.file_name().unwrap().to_str().unwrap();
        file.starts_with(&format!(".{name}.")) && file.ends_with(".narrows-part")
    };
    all.into_iter().find(is_part)
}

/// Runs the command until half a megabyte of `name` is held in `dir`, and kills it there.
fn kill_half_way(home: &Path, args: &[&str], dir: &Path, name: &str) {
    let mut child =
        narrows(home).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while partial(dir, name).map_or(0, |part| size(&part)) < 500_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

pub(crate) fn serve(home: &Path, dir: &Path, flags: &[&str]) -> Server {
    serve_with("rrtp+cubic", home, dir, flags)
}

/// With `rrtp`, it sends with the clients' choice of controller.
fn serve_with(protocol: &str, home: &Path, dir: &Path, flags: &[&str]) -> Server {
    let mut child = narrows(home)
        .args(["serve", "--listen", "127.0.0.1:0", "--protocol", protocol])
        .args(flags)
        .arg(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|l| l.contains("tcp://")).expect("no address");
    let (key, at) = line.trim().trim_start_matches("tcp://").split_once('@').unwrap();
    let key = key.to_string();
    let at = at.trim_end_matches('/').to_string();
    Server { _child: Process(child), at, key }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
pub(crate) fn succeeds(home: &Path, args: &[&str]) -> String {
    let out = run(home, args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}
/// The command fails with this exit code, and one line that contains the hint.
pub(crate) fn fails(home: &Path, args: &[&str], code: i32, hint: &str) {
    let out = run(home, args);
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(err.contains(hint), "{args:?}: {err}");
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub(crate) struct Homes {
    all: tempfile::TempDir,
}

impl Homes {
    pub(crate) fn new() -> Homes {
        let all = tempfile::tempdir().unwrap();
        for d in ["server", "client", "root"] {
            std::fs::create_dir(all.path().join(d)).unwrap();
        }
        Homes { all }
    }
    pub(crate) fn get(&self, name: &str) -> PathBuf {
        self.all.path().join(name)
    }
}

#[test]
fn file_and_folder_pass_both_ways_over_both_transports() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    let content = bytes(3_000_000);
    std::fs::write(root.join("f"), &content).unwrap();
    std::fs::write(root.join("d/e/g"), b"deep").unwrap();
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    for scheme in ["tcp", "rrtp"] {
        let url = |path: &str| format!("{scheme}://{}/{path}", server.at);
        let with = &with(scheme);
        let listed = succeeds(&client, &["ls", &url(""), with]);
        assert!(listed.contains("d/") && listed.contains("3.0 MB"), "{listed}");
        let json = succeeds(&client, &["get", &url("f"), "--json", with]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["bytes"], 3_000_000);
        assert_eq!(std::fs::read(client.join("f")).unwrap(), content);
        assert!(succeeds(&client, &["get", &url("f"), with]).contains("already"));
        succeeds(&client, &["get", &url("d/"), "-o", "copy", with]);
        assert_eq!(std::fs::read(client.join("copy/e/g")).unwrap(), b"deep");
        succeeds(&client, &["put", "f", &url("put"), with]);
        assert_eq!(std::fs::read(root.join("put")).unwrap(), content);
        succeeds(&client, &["put", "copy", &url("back"), with]);
        assert_eq!(std::fs::read(root.join("back/e/g")).unwrap(), b"deep");
        fails(&client, &["get", &url("none"), with], 1, "no such file");
        fails(&client, &["get", &url("d"), with], 1, "/d/");
        for gone in ["put", "back/e/g"] {
            std::fs::remove_file(root.join(gone)).unwrap();
        }
        for gone in ["f", "copy/e/g"] {
            std::fs::remove_file(client.join(gone)).unwrap();
        }
    }
}

#[test]
fn keys_are_stored_compared_forgotten_and_client_lists_enforced() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::write(root.join("f"), b"f").unwrap();
    let own_key = succeeds(&client, &["key"]).trim().to_string();
    std::fs::write(homes.get("list"), format!("{own_key} # the client\n")).unwrap();
    let list = homes.get("list");
    let server = serve(&homes.get("server"), &root, &["--clients", list.to_str().unwrap()]);
    let stranger = homes.get("root");
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}/f", server.at);
        let with = &with(scheme);
        let first = run(&client, &["ls", &url, with]);
        assert!(first.status.success(), "{}", text(&first.stderr));
        let met = text(&first.stderr);
        assert_eq!(met.contains("first meeting") && met.contains(&server.key), scheme == "tcp");
        let right = format!("{scheme}://{}@{}/f", server.key, server.at);
        assert!(succeeds(&client, &["ls", &right, with]).contains('f'));
        let wrong = format!("{scheme}://{own_key}@{}/f", server.at);
        fails(&client, &["ls", &wrong, with], 1, "another");
        // The error for a client that is not listed contains the client's key, for the list.
        fails(&stranger, &["ls", &right, with], 1, succeeds(&stranger, &["key"]).trim());
        fails(&client, &["put", "config/narrows/known_servers", &url, with], 1, "--allow-put");
    }
    // Another server at the same address.
    let known = client.join("config/narrows/known_servers");
    std::fs::write(&known, format!("{} {own_key}\n", server.at)).unwrap();
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}/f", server.at);
        let with = &with(scheme);
        fails(&client, &["ls", &url, with], 1, &format!("narrows key --forget {}", server.at));
    }
    assert!(succeeds(&client, &["key", "--forget", &server.at]).contains("forgotten"));
    fails(&client, &["key", "--forget", &server.at], 2, "not known");
    let again = run(&client, &["ls", &format!("rrtp://{}/f", server.at), &with("rrtp")]);
    assert!(again.status.success() && text(&again.stderr).contains(&server.key));
}

/// Hints during a transfer reach the sending end, be it the server or the client. At the rate of the first hint the
/// file would take 240 s.
#[test]
fn sender_reports_the_path_during_the_transfer() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    let content = bytes(3_000_000);
    std::fs::write(root.join("f"), &content).unwrap();
    let flags = ["--allow-put", "--permit-rate-driven", "100Mbit/s"];
    let server = serve_with("rrtp", &homes.get("server"), &root, &flags);
    let url = |path: &str| format!("rrtp://{}/{path}", server.at);
    let options = ["--protocol", "rrtp+brutal", "--rate", "100kbit/s", "--json", "--reconfigure"];
    for args in [["get", &url("f"), "-o", "g"], ["put", "g", &url("h"), "--learn"]] {
        let args = [&args[..], &options, &["300ms:rate=50Mbit/s"]].concat();
        let json: serde_json::Value = serde_json::from_str(&succeeds(&client, &args)).unwrap();
        let seconds = json["seconds"].as_f64().unwrap();
        assert!(json["protocol"] == "rrtp+brutal" && (0.3..120.0).contains(&seconds), "{json}");
    }
    assert_eq!(std::fs::read(root.join("h")).unwrap(), content);
}

/// Such a protocol needs the server's permission, of which the error names the option.
#[test]
fn get_with_unpermitted_protocol_fails_and_writes_no_file() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::write(root.join("f"), bytes(1000)).unwrap();
    let server = serve_with("rrtp", &homes.get("server"), &root, &[]);
    let url = format!("rrtp://{}/f", server.at);
    let args = ["get", &url, "-o", "g", "--protocol", "rrtp-lasthop-paper", "--rate", "1Mbit/s"];
    succeeds(&client, &["ls", &url]); // the server's key is known from here on
    fails(&client, &args, 1, "--permit-rate-driven");
    assert!(!client.join("g").exists());
    succeeds(&client, &["get", &url, "-o", "g", "--protocol", "rrtp+stpd-paper"]);
}

#[test]
fn bad_input_gives_one_line_and_leaves_no_file() {
    let homes = Homes::new();
    let client = homes.get("client");
    succeeds(&client, &["key"]);
    let before = std::fs::read_dir(&client).unwrap().count();
    for (args, hint) in [
        (&["get", "host/f"][..], "rrtp://HOST:PORT/PATH"),
        (&["get", "rttp://h/f"], "'rrtp'"),
        (&["get", "rrtp://h/../f"], "'..'"),
        (&["get", "tcp://h:0/f"], "port is 0"),
        (&["get", "tcp://h/f", "--protocol", "rrtp"], "rrtp://"),
        (&["get", "rrtp://h/f", "--protocol", "tcp+bbr"], "tcp:// URL"),
        (&["get", "rrtp://h/f", "--protocol", "rrtp+bbrr"], "'rrtp+bbr'"),
        (&["get", "tcp://h/f", "--rate", "1Mbit/s"], "rrtp://"),
        (&["get", "rrtp://h/f", "--rate", "1"], "no unit"),
        (&["get", "rrtp://h/f", "--loss", "2"], "between 0 and 1"),
        (&["get", "tcp://h/f", "--reconfigure", "1s:rate=1Mbit/s"], "--reconfigure is for rrtp"),
        (&["get", "rrtp://h/f", "--reconfigure", "1s:rat=1Mbit/s"], "did you mean 'rate'?"),
        (&["speed", "--serve", "--down"], "cannot be used with"),
        (&["get", "tcp://h/d/", "-o", "-"], "name a file"),
        (&["get", "tcp://h/f", "-o", "no/such/"], "no such folder"),
        (&["get", "tcp://h/"], "-o DIR"),
        (&["get", "tcp://127.0.0.1:1/f", "--protocol", "tcp+a b"], "tcp+a b"),
        (&["serve", ".", "--listen", "1.2.3.4:x", "--protocol", "rrtp+cubic"], "no port"),
        (&["key", "--forget", "[::1"], "']'"),
    ] {
        fails(&client, args, 2, hint);
        assert_eq!(std::fs::read_dir(&client).unwrap().count(), before, "{args:?}");
    }
    for (args, hint) in [
        (&["get", "tcp://127.0.0.1:1/f"][..], "no server listens"),
        (&["get", "tcp://127.0.0.1:1/f", "-o", "no/f"], "no such"),
        (&["put", "gone", "tcp://127.0.0.1:1/f"], "gone: no such"),
        (&["serve", "gone", "--protocol", "rrtp+cubic"], "gone: no such"),
        (&["serve", ".", "--clients", "gone", "--protocol", "rrtp+cubic"], "--clients"),
    ] {
        fails(&client, args, 1, hint);
    }
}

/// An ICMP report ends the attempt before the retry deadline.
#[test]
#[cfg(target_os = "linux")]
fn a_port_where_no_server_listens_is_said() {
    let home = tempfile::tempdir().unwrap();
    // Systems give this port to no socket that asks for any.
    let at = "127.0.0.1:9";
    let file = home.path().join("file");
    let url = format!("rrtp://{at}/file");
    std::fs::write(&file, "x").unwrap();
    let hint = format!("connection refused: no server listens at {at}");
    for args in [&["get", &url][..], &["put", "file", &url], &["ls", &url]] {
        fails(home.path(), args, 1, &hint);
    }
}

#[test]
#[cfg(unix)]
fn killed_transfer_resumes_with_the_same_command() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    // At the limit below they take 40 s: long enough that a busy machine sees them halfway.
    let content = bytes(40_000_000);
    std::fs::write(root.join("f"), &content).unwrap();
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}/f", server.at);
        let with = &with(scheme);
        kill_half_way(&client, &["get", &url, "--limit", "8Mbit/s", with], &client, "f");
        assert!(!client.join("f").exists());
        let kept = size(&partial(&client, "f").unwrap());
        let json: serde_json::Value =
            serde_json::from_str(&succeeds(&client, &["get", &url, "--json", with])).unwrap();
        assert_eq!(json["resumed_from"], kept);
        assert!(std::fs::read(client.join("f")).unwrap() == content, "other bytes came");
        assert!(partial(&client, "f").is_none());

        // The other direction; the server keeps partial files, too.
        let put = format!("{scheme}://{}/p", server.at);
        kill_half_way(&client, &["put", "f", &put, "--limit", "8Mbit/s", with], &root, "p");
        let json: serde_json::Value =
            serde_json::from_str(&succeeds(&client, &["put", "f", &put, "--json", with])).unwrap();
        assert!(json["resumed_from"].as_u64().unwrap() >= 500_000, "{json}");
        assert!(std::fs::read(root.join("p")).unwrap() == content, "other bytes came");
        std::fs::remove_file(client.join("f")).unwrap();
        std::fs::remove_file(root.join("p")).unwrap();
    }
}

#[test]
fn a_transfer_can_be_recorded() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::fs::create_dir(home.join("there")).unwrap();
    std::fs::write(home.join("there/film"), vec![7; 300_000]).unwrap();
    let server = serve(home, &home.join("there"), &[]);
    let url = format!("rrtp://{}@{}/film", server.key, server.at);
    let out = run(home, &["get", &url, "--record", "rec", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("recorded "), "{}", text(&out.stderr));
    assert!(text(&out.stdout).starts_with('{'), "the standard output is for the result");
    for file in ["packets.pcapng", "connection-1.sqlog", "series.parquet", "report.html"] {
        assert!(home.join("rec").join(file).is_file(), "{file}");
    }
    // A recording that is impossible is reported before the transfer begins.
    let tcp = format!("tcp://{}@{}/film", server.key, server.at);
    for (url, folder, hint) in
        [(&tcp, "rec", "rrtp://"), (&url, "there/film/x", "is a file, not a folder")]
    {
        let out = run(home, &["get", url, "-o", "other", "--record", folder]);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(hint), "{}", text(&out.stderr));
        assert!(!home.join("other").exists());
    }
}

#[test]
fn learning_server_stores_the_path_at_a_clients_end() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::write(root.join("f"), bytes(3_000_000)).unwrap();
    let server = serve(&homes.get("server"), &root, &["--learn"]);
    succeeds(&client, &["get", &format!("rrtp://{}/f", server.at)]);
    // The server would wait a minute for a client that ended without closing its connection.
    let kept = homes.get("server").join("config/narrows/clients.toml");
    let begun = std::time::Instant::now();
    while !kept.exists() {
        assert!(begun.elapsed().as_secs() < 30, "the server does not know that its client is gone");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The entry is for this client only, not for others at its address.
    let key = succeeds(&client, &["key"]);
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(kept.contains(&format!("{} 127.0.0.1", key.trim())), "{kept}");
    let both = ["serve", ".", "--learn", "--rate", "1Mbit/s"];
    fails(&client, &both, 2, "--learn");
    std::fs::write(client.join("config/narrows/clients.toml"), "x").unwrap();
    fails(&client, &["serve", ".", "--learn"], 2, "clients.toml");
}

/// Names with control characters are unchanged in `--json`, and escaped in text.
#[test]
#[cfg(unix)]
fn a_listing_in_json_is_json_whatever_files_are_called() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    let name = "a\u{200d}b\u{9b}2J\u{202e}\u{e0041}";
    std::fs::write(root.join(name), b"a").unwrap();
    let server = serve(&homes.get("server"), &root, &[]);
    let text = succeeds(&client, &["ls", &format!("rrtp://{}/", server.at), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["entries"][0]["name"], name);
    assert!(text.is_ascii(), "{text:?}");
}

#[test]
fn folders_keep_their_names_both_ways() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::create_dir_all(client.join("photos/2024")).unwrap();
    std::fs::write(client.join("photos/2024/a"), b"a").unwrap();
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    let url = |path: &str| format!("rrtp://{}/{path}", server.at);
    let there = |path: &str| std::fs::read(root.join(path)).unwrap() == b"a";
    let here = |path: &str| std::fs::read(client.join(path)).unwrap() == b"a";
    succeeds(&client, &["put", "photos", &url("")]);
    assert!(there("photos/2024/a") && std::fs::read_dir(&root).unwrap().count() == 1);
    succeeds(&client, &["put", "photos/", &url("more/")]);
    assert!(there("more/photos/2024/a"));
    succeeds(&client, &["put", "photos", &url("old")]);
    assert!(there("old/2024/a"));
    succeeds(&client, &["put", "photos/.", &url("")]);
    assert!(there("2024/a"));
    std::fs::rename(client.join("photos"), client.join("mine")).unwrap();
    succeeds(&client, &["get", &url("photos/")]);
    assert!(here("photos/2024/a"));
    std::fs::create_dir(client.join("in")).unwrap();
    succeeds(&client, &["get", &url("photos/"), "-o", "in/"]);
    assert!(here("in/photos/2024/a"));
    succeeds(&client, &["get", &url("photos/"), "-o", "in/old"]);
    assert!(here("in/old/2024/a"));
    std::fs::remove_dir_all(client.join("photos")).unwrap();
    succeeds(&client, &["get", &url("photos/"), "-o", "."]);
    assert!(here("photos/2024/a"));
}

/// Local files, among them those that configure a shell, are not replaced or planted without the user's request.
#[test]
fn local_files_are_replaced_only_when_that_is_said() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    for name in [".ssh/authorized_keys", ".bashrc", "f", "same"] {
        let path = root.join("home").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"theirs").unwrap();
    }
    let server = serve(&homes.get("server"), &root, &[]);
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}@{}/home", server.key, server.at);
        let with = &with(scheme);
        std::fs::write(client.join(".bashrc"), b"mine").unwrap();
        std::fs::write(client.join("f"), b"mine").unwrap();
        std::fs::write(client.join("same"), b"theirs").unwrap();
        let file = format!("{url}/.bashrc");
        fails(&client, &["get", &file, "-o", ".", with], 1, "--overwrite");
        succeeds(&client, &["get", &format!("{url}/same"), with]);
        // The folder's content, into an existing folder with other entries.
        let all = format!("{url}/");
        let home = client.to_str().unwrap();
        let out = run(&client, &["get", &all, "-o", home, with]);
        assert_eq!(out.status.code(), Some(1));
        let err = text(&out.stderr);
        assert!(err.contains("1 more; 1 of 3 files are whole"), "{err}");
        assert!(err.contains("left out: .ssh: hidden; --hidden takes it along"), "{err}");
        assert_eq!(std::fs::read(client.join(".bashrc")).unwrap(), b"mine");
        assert_eq!(std::fs::read(client.join("f")).unwrap(), b"mine");
        assert!(!client.join(".ssh").exists());
        let output = succeeds(&client, &["get", &all, "-o", home, "--overwrite", with]);
        assert!(output.contains("hidden"), "{output}");
        assert_eq!(std::fs::read(client.join("f")).unwrap(), b"theirs");
        assert!(!client.join(".ssh").exists());
        // Into a new folder, all entries are copied.
        succeeds(&client, &["get", &all, "-o", "new", with]);
        assert!(client.join("new/.ssh/authorized_keys").exists());
        std::fs::remove_dir_all(client.join("new")).unwrap();
    }
}

#[test]
fn put_obeys_the_limits_of_the_server() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::write(client.join("small"), bytes(1000)).unwrap();
    std::fs::write(client.join("other"), bytes(1001)).unwrap();
    std::fs::write(client.join("large"), bytes(500_000)).unwrap();
    let server = serve(&homes.get("server"), &root, &["--allow-put", "--max-size", "400kB"]);
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}@{}/{scheme}", server.key, server.at);
        let with = &with(scheme);
        succeeds(&client, &["put", "small", &url, with]);
        assert!(succeeds(&client, &["put", "small", &url, with]).contains("already"));
        fails(&client, &["put", "other", &url, with], 1, "new names only");
        fails(&client, &["put", "large", &format!("{url}2"), with], 1, "at most 400000 bytes");
        assert_eq!(std::fs::read(root.join(scheme)).unwrap(), bytes(1000));
    }
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2, "nothing is left of what was refused");
    drop(server);
    let server =
        serve(&homes.get("server"), &root, &["--allow-put", "--overwrite", "--quota", "300kB"]);
    let url = format!("rrtp://{}/rrtp", server.at);
    succeeds(&client, &["put", "other", &url]);
    assert_eq!(std::fs::read(root.join("rrtp")).unwrap(), bytes(1001));
    fails(&client, &["put", "large", &url], 1, "quota");
}

/// Entries that are left out are named, and the exit code shows that the folder is incomplete.
#[test]
#[cfg(unix)]
fn omitted_entries_are_named_and_exit_code_is_nonzero() {
    use std::os::unix::ffi::OsStrExt as _;
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::create_dir(client.join("from")).unwrap();
    for name in [&b"a"[..], b"b.narrows-part", b"\xff.txt"] {
        std::fs::write(client.join("from").join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
        std::fs::write(root.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    for scheme in ["tcp", "rrtp"] {
        let url = format!("{scheme}://{}@{}/", server.key, server.at);
        let to = format!("{url}{scheme}");
        for args in [["put", "from", &to], ["get", &url, "-o"]] {
            let mut args = args.to_vec();
            if args[0] == "get" {
                args.push(scheme);
            }
            let with = with(scheme);
            args.push(&with);
            let out = run(&client, &args);
            let err = text(&out.stderr);
            assert_eq!(out.status.code(), Some(1), "{args:?}: {err}");
            assert!(err.contains(r"\xff.txt: its name is not UTF-8"), "{args:?}: {err}");
            assert!(err.contains("b.narrows-part: the name of a partial"), "{args:?}: {err}");
            assert!(err.contains("2 entries were left out"), "{args:?}: {err}");
        }
        assert_eq!(std::fs::read(root.join(scheme).join("a")).unwrap(), b"x");
        assert_eq!(std::fs::read(client.join(scheme).join("a")).unwrap(), b"x");
    }
}

/// If the measured path cannot be stored, the file is still transferred.
#[test]
#[cfg(unix)]
fn get_works_where_no_path_can_be_stored() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::write(root.join("f"), bytes(3_000_000)).unwrap();
    let server = serve(&homes.get("server"), &root, &[]);
    let url = format!("rrtp://{}@{}/f", server.key, server.at);
    // A folder has the name under which the new file is first written, so nothing can be stored, as on a full disk.
    let blocked = "mkdir -p config/narrows/paths.toml.$$.new && exec \"$0\" get \"$1\" --learn";
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let out = Command::new("sh")
        .args(["-c", blocked, narrows, &url])
        .env("HOME", &client)
        .env("XDG_CONFIG_HOME", client.join("config"))
        .current_dir(&client)
        .output()
        .unwrap();
    let err = text(&out.stderr);
    assert!(out.status.success() && err.contains("this path is not stored"), "{err}");
    assert_eq!(std::fs::read(client.join("f")).unwrap(), bytes(3_000_000));
}

/// The standard streams carry a file's bytes alone; the result is on the error stream, and no copy stays behind.
#[test]
fn the_standard_streams_are_put_and_got() {
    let home = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    let server = serve(home.path(), root.path(), &["--allow-put"]);
    let own = home.path().join("tmp");
    std::fs::create_dir(&own).unwrap();
    let content: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(n) % 251) as u8).collect();
    let url = format!("tcp://{}@{}/f", server.key, server.at);
    let mut put = narrows(home.path())
        .args(["put", "-", &url])
        .env("TMPDIR", &own)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut put.stdin.take().unwrap(), &content).unwrap();
    assert!(put.wait().unwrap().success());
    assert!(std::fs::read(root.path().join("f")).unwrap() == content);
    let got =
        narrows(home.path()).args(["get", "-o", "-", &url]).env("TMPDIR", &own).output().unwrap();
    assert!(got.status.success() && got.stdout == content, "{}", text(&got.stderr));
    assert!(text(&got.stderr).contains("got -: 300.0 kB"), "{}", text(&got.stderr));
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
    let folder = format!("tcp://{}@{}/", server.key, server.at);
    fails(home.path(), &["put", "-", &folder], 2, "name the file at the server");
    fails(home.path(), &["get", "-o", "-", &folder], 2, "name a file");
}
