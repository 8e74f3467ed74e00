//! Lists of clients, and settings of a server, that are changed while it runs; keys and files that are refused.

use crate::process::run;
use crate::service::{echo, echoes, homes, key, reload, start, terminate};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Base32 of 32 bytes of zero: a point of low order.
const ZERO: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn write(home: &Path, name: &str, text: &str) {
    std::fs::write(home.join(name), text).unwrap();
}

#[test]
fn settings_cut_off_a_file_stay_in_force() {
    let [far, near, friend] = homes();
    let write = |name: &str, text: &str| write(far.path(), name, text);
    write("clients", &key(near.path()));
    std::fs::create_dir(far.path().join("dir")).unwrap();
    let whole = "dir = 'dir'\nallow-put = true\nclients = 'clients'\nmax-size = '10B'\n\
                 quota = '1MB'\nclient-limit = '100Mbit/s'\n";
    write("serve.toml", whole);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config", "serve.toml"];
    let (server, url) = start(far.path(), &serve, "tcp://");
    let urls = [url.clone(), url.replace("tcp://", "rrtp://")];
    let is_admitted =
        |home: &Path| urls.clone().map(|url| run(home, &["ls", &url]).status.success());
    assert_eq!((is_admitted(near.path()), is_admitted(friend.path())), ([true; 2], [false; 2]));
    let cut = "dir = 'dir'\nallow-put = true\n# clients = 'clients'\n";
    for text in [cut, cut] {
        write("serve.toml", text);
        let line = "reloaded: 1 clients; only a restart removes clients, max-size, quota, \
                    client-limit, which stay in force";
        reload(&server, far.path(), line);
        assert_eq!((is_admitted(near.path()), is_admitted(friend.path())), ([true; 2], [false; 2]));
        std::fs::write(near.path().join("large"), "eleven byte").unwrap();
        let put = run(near.path(), &["put", "large", &url]);
        assert!(!put.status.success(), "max-size is gone");
    }
    for empty in ["", "# clients = 'clients'\n"] {
        write("serve.toml", empty);
        reload(&server, far.path(), "not reloaded, all stays as it is: --config: serve.toml: ");
        assert_eq!(is_admitted(friend.path()), [false; 2]);
    }
    write("serve.toml", &format!("{cut}clients = 'all'\n"));
    reload(&server, far.path(), "reloaded: all clients;");
    assert_eq!(is_admitted(friend.path()), [true; 2]);
    assert_eq!(terminate(server), Some(0));
}

#[test]
fn tunnel_limits_cut_off_a_file_stay_in_force() {
    let [far, near, _] = homes();
    let target = format!("127.0.0.1:{}", echo());
    write(far.path(), "clients", &key(near.path()));
    let cut = format!("clients = 'clients'\nallow = ['{target}']\n");
    write(far.path(), "far.toml", &format!("{cut}max-streams = 1\nmax-openings = 50\n"));
    let serve = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--config", "far.toml"];
    let (server, url) = start(far.path(), &serve, "rrtp://");
    let forward = format!("0:{target}");
    let connect = ["tunnel", "connect", &url, "--tcp", &forward];
    let (_near, line) = start(near.path(), &connect, "leads to");
    let tcp = || {
        let tcp = TcpStream::connect(line.split(' ').next().unwrap()).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        tcp
    };
    let mut first = tcp();
    echoes(&mut first).unwrap();
    write(far.path(), "far.toml", &cut);
    let line = "reloaded: 1 clients, 1 targets; only a restart removes max-streams, max-openings";
    reload(&server, far.path(), line);
    assert!(echoes(&mut tcp()).is_err(), "max-streams is gone");
    echoes(&mut first).unwrap();
    for faulty in [format!("allow = ['{target}']\n"), "clients = 'clients'\n".into(), String::new()]
    {
        write(far.path(), "far.toml", &faulty);
        reload(&server, far.path(), "not reloaded, all stays as it is: ");
        echoes(&mut first).unwrap();
    }
    assert_eq!(terminate(server), Some(0));
}

#[test]
fn list_under_writing_cuts_no_client() {
    let [far, near, _] = homes();
    let write = |text: &str| write(far.path(), "clients", text);
    let whole = key(near.path());
    write(&whole);
    let serve = ["serve", ".", "--listen", "127.0.0.1:0", "--clients", "clients"];
    let (server, url) = start(far.path(), &serve, "tcp://");
    let is_admitted = || run(near.path(), &["ls", &url]).status.success();
    write("# no client\n");
    reload(&server, far.path(), "not reloaded, all stays as it is: --clients: clients: the list");
    assert!(is_admitted());
    // On a busy machine the writer may be later than the server waits for it: then the former list stays.
    let is_read_whole = || {
        write("");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(150));
                write(&whole);
            });
            reload(&server, far.path(), "reloaded");
        });
        assert!(is_admitted());
        let log = std::fs::read_to_string(far.path().join("log")).unwrap();
        let last = log.lines().rfind(|line| line.contains("reloaded"));
        last.is_some_and(|line| line.contains("reloaded: 1 clients"))
    };
    assert!((0..20).any(|_| is_read_whole()), "each time it was read before it was written");
    assert_eq!(terminate(server), Some(0));
}

/// Exit code and the line of errors of a command that ends.
fn refused(home: &Path, args: &[&str]) -> (Option<i32>, String) {
    let done = run(home, args);
    let error = String::from_utf8(done.stderr).unwrap();
    assert!(error.lines().count() == 1 && done.stdout.is_empty(), "{args:?}: {error}");
    (done.status.code(), error)
}

#[test]
fn key_of_low_order_is_refused_by_each_command() {
    let [home, ..] = homes();
    write(home.path(), "zero", &format!("{ZERO} friend\n"));
    write(home.path(), "file", "text");
    let url = format!("rrtp://{ZERO}@127.0.0.1:9");
    let tcp = format!("tcp://{ZERO}@127.0.0.1:9/file");
    for args in [
        &["serve", ".", "--clients", "zero"][..],
        &["tunnel", "serve", "--clients", "zero", "--allow", "*:443"],
        &["media", "receive", "--clients", "zero"],
        &["media", "send", "--listen", "127.0.0.1:0", "--clients", "zero"],
        &["get", &tcp],
        &["get", &url],
        &["ls", &url],
        &["put", "file", &tcp],
        &["tunnel", "connect", &url, "--socks", "0"],
        &["media", "send", &url],
        &["media", "receive", &url],
        &["probe", &url],
    ] {
        let (code, line) = refused(home.path(), args);
        assert!(code == Some(2) && line.contains("low order"), "{args:?}: {code:?} {line}");
    }
    std::fs::create_dir_all(home.path().join("config/narrows")).unwrap();
    write(home.path(), "config/narrows/known_servers", &format!("127.0.0.1:9 {ZERO}\n"));
    let connect = ["tunnel", "connect", "rrtp://127.0.0.1:9", "--socks", "0"];
    let (_, line) = refused(home.path(), &connect);
    assert!(line.contains("known_servers: line 1") && line.contains("low order"), "{line}");
}

#[test]
fn list_that_others_can_change_is_refused_by_each_command() {
    let [home, ..] = homes();
    let path = |name: &str| home.path().join(name);
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let list = key(home.path());
    std::fs::create_dir(path("open")).unwrap();
    for name in ["writable", "open/list", "set.toml"] {
        write(home.path(), name, &list);
    }
    mode("writable", 0o666);
    mode("open", 0o777);
    symlink("open/list", path("link")).unwrap();
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    for (name, mends) in [
        ("writable", "chmod go-w"),
        ("open/list", "chmod go-w"),
        ("link", "chmod go-w"),
        ("pipe", "regular file"),
    ] {
        for args in [
            &["serve", ".", "--clients", name][..],
            &["tunnel", "serve", "--allow", "*:443", "--clients", name],
            &["media", "receive", "--clients", name],
            &["tunnel", "serve", "--config", name],
        ] {
            let (code, line) = refused(home.path(), args);
            assert!(code.is_some_and(|code| code > 0) && line.contains(mends), "{args:?}: {line}");
        }
    }
    mode("open", 0o1777);
    let serve = ["serve", ".", "--listen", "127.0.0.1:0", "--clients", "link"];
    let (server, _) = start(home.path(), &serve, "tcp://");
    assert_eq!(terminate(server), Some(0));
}
