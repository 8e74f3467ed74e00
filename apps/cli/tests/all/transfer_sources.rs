//! Sources and permissions of transferred files: pipes, several operands, private files and scripts.

use crate::process::narrows;
use crate::transfer::{Homes, fails, serve, succeeds, with};
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn pipe(at: &Path) {
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

#[test]
fn pipes_are_put_and_got_as_standard_streams_are() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    let url = |path: &str| format!("rrtp://{}/{path}", server.at);
    pipe(&client.join("pipe"));
    fails(&client, &["put", "pipe", &url("")], 2, "put pipe: name the file at the server");
    fails(&client, &["get", &url("d/"), "-o", "pipe"], 2, "a folder is no stream");
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::write(client.join("pipe"), "through a pipe").unwrap());
        succeeds(&client, &["put", "pipe", &url("a")]);
    });
    assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "through a pipe");
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| std::fs::read_to_string(client.join("pipe")).unwrap());
        succeeds(&client, &["get", &url("a"), "-o", "pipe"]);
        assert_eq!(reading.join().unwrap(), "through a pipe");
    });
    succeeds(&client, &["get", &url("a"), "-o", "/dev/null"]);
    // The form of a shell's <(command).
    let mut child = narrows(&client);
    child.args(["put", "/dev/fd/0", &url("b")]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"by a number").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(root.join("b")).unwrap(), "by a number");
}

#[test]
fn several_operands_are_one_transfer_into_a_folder() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::create_dir_all(client.join("d/e")).unwrap();
    for name in ["a", "b", "d/e/c"] {
        std::fs::write(client.join(name), name).unwrap();
    }
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    let url = |path: &str| format!("rrtp://{}/{path}", server.at);
    let said = succeeds(&client, &["put", "a", "b", "d", &url("in/"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["files"], &json["what"]), (&3.into(), &"a and 2 more".into()));
    for name in ["a", "b", "d/e/c"] {
        assert_eq!(std::fs::read_to_string(root.join("in").join(name)).unwrap(), name);
    }
    for (args, hint) in [
        (["put", "a", "b", &url("in")], "end the URL with /"),
        (["put", "a", "./a", &url("")], "two files or folders of this name"),
        (["put", "a", "-", &url("")], "a stream is put alone"),
        (["put", "a", "d/.", &url("")], "the content of a folder is put alone"),
        (["put", "/dev/null", "a", &url("")], "/dev/null: is neither a file"),
    ] {
        fails(&client, &args, 2, hint);
    }
}

#[test]
fn permissions_are_kept_over_both_transports() {
    let homes = Homes::new();
    let root = homes.get("root");
    let client = homes.get("client");
    std::fs::create_dir(client.join("d")).unwrap();
    let set = |name: &str, mode| {
        std::fs::set_permissions(client.join(name), Permissions::from_mode(mode)).unwrap();
    };
    let mode = |at: &Path| std::fs::metadata(at).unwrap().permissions().mode() & 0o7777;
    for (name, mode) in [("d/secret", 0o600), ("d/script", 0o4711)] {
        std::fs::write(client.join(name), name).unwrap();
        set(name, mode);
    }
    set("d", 0o700);
    let server = serve(&homes.get("server"), &root, &["--allow-put"]);
    for scheme in ["tcp", "rrtp"] {
        let url = |path: &str| format!("{scheme}://{}/{path}", server.at);
        succeeds(&client, &["put", "d", &url(scheme), &with(scheme)]);
        succeeds(&client, &["put", "d/secret", &url(&format!("{scheme}-one")), &with(scheme)]);
        succeeds(&client, &["get", &url(&format!("{scheme}/")), &with(scheme)]);
        for folder in [root.join(scheme), client.join(scheme)] {
            assert_eq!(mode(&folder), 0o700);
            assert_eq!(mode(&folder.join("secret")), 0o600);
            assert_eq!(mode(&folder.join("script")) & 0o7700, 0o700);
        }
        assert_eq!(mode(&root.join(format!("{scheme}-one"))), 0o600);
    }
}
