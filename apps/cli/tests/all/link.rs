//! `narrows link`, end to end: commands behind links, exit codes, cleanup. Most tests need root; each prints the reason
//! if it is skipped.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LINK: &str = "100Mbit/s,2ms";

fn narrows(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exclusive use of the machine's settings for one test; `None`, with a message, without root or TUN devices.
fn way_out() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tried = narrows(&["link", LINK, "--quiet", "--", "true"]);
    if !tried.status.success() {
        eprintln!("skipped: {}", text(&tried.stderr).trim());
    }
    tried.status.success().then_some(one)
}

fn setting(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The forwarding settings of all interfaces that do not belong to a link.
fn forwarding() -> Vec<(String, String)> {
    let folder = std::fs::read_dir("/proc/sys/net/ipv4/conf").unwrap().flatten();
    let names = folder.map(|e| e.file_name().into_string().unwrap());
    let mut all: Vec<_> = (names.filter(|n| !n.starts_with("narrows")))
        .map(|n| (n.clone(), setting(&format!("/proc/sys/net/ipv4/conf/{n}/forwarding"))))
        .collect();
    all.sort();
    all
}

#[test]
fn impossible_link_options_give_one_line_and_exit_2() {
    for (args, hint) in [
        (&["link"][..], "<SPEC|NAME>"),
        (&["link", "geo"], "no command: give one behind `--`"),
        (&["link", "gao", "--", "true"], "'geo'"),
        (&["link", "geo", "--back", "1Mbit", "--", "true"], "--back"),
        (&["link", "geo", "--between", "a"], "A:B"),
        (&["link", "geo", "--between", "a:a"], "A:B"),
        (&["link", "--scenario", "none.toml"], "no such file"),
        (&["link", "geo", "--clean"], "--clean"),
    ] {
        let out = narrows(args);
        let line = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
        assert!(line.contains(hint), "{args:?}: {line}");
    }
    if let Some(_alone) = way_out() {
        for (args, hint) in [
            (&["link", LINK, "--", "no-such-command"][..], "no-such-command: command not found"),
            (
                &["link", LINK, "--far", "true", "--", "/etc/passwd"],
                "cannot start /etc/passwd: permission denied",
            ),
            (&["link", LINK, "--between", "nw-none:nw-none2"], "no network namespace \"nw-none\""),
        ] {
            let out = narrows(args);
            let line = text(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{args:?}: {line}");
            assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
            assert!(line.contains(hint), "{args:?}: {line}");
        }
    }
}

#[test]
fn command_behind_link_reaches_loopback_and_keeps_exit_code() {
    let Some(_alone) = way_out() else { return };
    let before = forwarding();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.write_all(b"hello\n").unwrap();
        (peer, forwarding())
    });
    let script = format!("exec 3<>/dev/tcp/$NARROWS_HOST/{port}; cat <&3; exit 7");
    let out = narrows(&["link", LINK, "--quiet", "--", "bash", "-c", &script]);
    assert_eq!(
        (text(&out.stdout).as_str(), out.status.code()),
        ("hello\n", Some(7)),
        "{}",
        text(&out.stderr)
    );
    let (peer, meanwhile) = server.join().unwrap();
    assert!(peer.ip().to_string().starts_with("198.18."), "came over the link: {peer}");
    assert!(
        meanwhile
            .iter()
            .all(|(name, v)| v.trim() == "1" || name == "lo" || name == "default" || name == "all")
    );
    assert_eq!(forwarding(), before);
}

#[test]
fn commands_at_both_ends_counts_as_json_and_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let server = "exec python3 -c \"import socket; s=socket.create_server(('', 9000)); c,_=s.accept(); \
                  n=sum(iter(lambda: len(c.recv(65536)), 0)); c.send(str(n).encode())\"";
    let client = "import socket,os,time
for _ in range(1200):
    try:
        s=socket.create_connection((os.environ['NARROWS_FAR'], 9000)); break
    except OSError: time.sleep(.05)
s.sendall(bytes(1500000)); s.shutdown(1); print(s.recv(100).decode())";
    let out = narrows(&[
        "link",
        "50Mbit/s,5ms,loss=1%",
        "--json",
        "--quiet",
        "--record",
        record.to_str().unwrap(),
        "--far",
        server,
        "--",
        "python3",
        "-c",
        client,
    ]);
    let said = text(&out.stderr);
    if said.contains("user namespaces") || said.contains("TUN") || said.contains("not found") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert!(out.status.success(), "{said}");
    let all = text(&out.stdout);
    let mut lines = all.lines();
    assert_eq!(lines.next(), Some("1500000"), "{said}");
    let counts: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let there = &counts["link"]["there"];
    let offered = there["offered_packets"].as_u64().unwrap();
    // 1,448 bytes a packet, and retransmissions.
    assert!((1036..2000).contains(&offered), "{there}");
    assert!(
        there["lost"].as_u64().unwrap() > 0 && there["lateness"]["p99_s"].as_f64().unwrap() > 0.0,
        "{there}"
    );
    assert_eq!(counts["link"]["back"]["lost"], 0, "the way back loses nothing unless told");
    for end in ["packets.pcapng", "packets-b.pcapng"] {
        let size = std::fs::metadata(record.join(end)).unwrap().len();
        assert!(size > 1_500_000, "each packet where it enters and where it leaves: {end}, {size}");
    }
    for file in ["report.html", "summary.json", "series.parquet"] {
        assert!(record.join(file).exists(), "{file}");
    }
    let report = std::fs::read_to_string(record.join("report.html")).unwrap();
    assert!(report.contains("IP packets, headers included"));
}

/// On both streams, lines of the far command have its label and lines of the last command have none. An incomplete last
/// line is printed too.
#[test]
fn lines_of_the_far_command_have_its_label() {
    let far = "echo one; printf 'two\\nthree'; echo four >&2; touch $MARK; exec sleep 100";
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let near = "while [ ! -e $MARK ]; do sleep 0.02; done; echo five";
    let out = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .env("MARK", &mark)
        .args(["link", LINK, "--quiet", "--far", far, "--", "sh", "-c", near])
        .output()
        .unwrap();
    let said = text(&out.stderr);
    if said.contains("user namespaces") || said.contains("TUN") || said.contains("not found") {
        return eprintln!("skipped: {}", said.trim());
    }
    let all = text(&out.stdout);
    let mut lines: Vec<_> = all.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["far: one", "far: three", "far: two", "five"], "{said}");
    // On a busy machine the command warns that the link was late.
    let said: Vec<_> = said.lines().filter(|line| !line.starts_with("narrows: ")).collect();
    assert_eq!(said, ["far: four"]);
}

#[test]
fn scenario_file_topology_gets_its_nodes_and_routes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"100Mbit/s\"\ndelay = \"3ms\"\n"
        )
    };
    let flows = "[[flows]]\nprotocol = \"reno\"\nfrom = \"client\"\nto = \"server\"\n";
    let toml =
        format!("{}{}{flows}", link("one", "client", "router"), link("two", "router", "server"));
    std::fs::write(&file, toml).unwrap();
    let server = "exec python3 -c \"import socket; s=socket.create_server(('::', 9000), family=socket.AF_INET6, \
                  dualstack_ipv6=True); c,_=s.accept(); c.send(b'far')\"";
    let client = "exec python3 -c \"import socket,time
for _ in range(1200):
    try:
        t=time.time(); s=socket.create_connection(('server', 9000)); t=time.time()-t; break
    except OSError: time.sleep(.05)
print(s.recv(100).decode(), t >= .012)\"";
    let at = [format!("server={server}"), format!("client={client}")];
    let args =
        ["link", "--scenario", file.to_str().unwrap(), "--quiet", "--at", &at[0], "--at", &at[1]];
    let out = narrows(&args);
    let said = text(&out.stderr);
    if said.contains("user namespaces") || said.contains("TUN") || said.contains("not found") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert!(out.status.success(), "{said}");
    assert_eq!(text(&out.stdout), "far True\n", "over both links, four times 3 ms: {said}");
    let out = narrows(&["link", "--scenario", file.to_str().unwrap(), "--at", "sever=true"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("did you mean 'server'"), "{}", text(&out.stderr));
}

/// A link around a shell with a child of its own (`sleep MARK`), which is running already.
fn with_a_sleeper(mark: &str) -> Child {
    let script = format!("sleep {mark} & echo ready; wait");
    let mut run = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["link", LINK, "--quiet", "--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    assert!(wait_until(|| sleeper(mark)));
    run
}

#[test]
fn killed_run_ends_its_commands_and_removes_its_settings() {
    let Some(_alone) = way_out() else { return };
    let before = forwarding();
    let mark = format!("7{:06}", std::process::id());
    let mut run = with_a_sleeper(&mark);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(wait_until(|| !sleeper(&mark)), "the command's child ends, too");
    assert!(wait_until(|| forwarding() == before));
}

#[test]
fn leftovers_of_a_killed_guard_are_cleaned() {
    let Some(_alone) = way_out() else { return };
    let before = forwarding();
    let mark = format!("8{:06}", std::process::id());
    let mut run = with_a_sleeper(&mark);
    let guard = format!("nw-link-guard {}", run.id());
    let guard = processes().into_iter().find(|(_, p)| *p == guard).unwrap().0;
    for id in [guard, run.id().to_string()] {
        assert!(Command::new("kill").args(["-9", &id]).status().unwrap().success());
    }
    run.wait().unwrap();
    // If the host forwarded everywhere before, there is no setting to restore.
    if before
        .iter()
        .any(|(name, v)| v.trim() == "0" && !["all", "default", "lo"].contains(&name.as_str()))
    {
        assert_ne!(forwarding(), before, "on while it ran, and left on");
    }
    assert!(sleeper(&mark), "no guard was left to end it");
    let out = narrows(&["link", "--clean"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(wait_until(|| !sleeper(&mark)), "--clean ends it");
    assert_eq!(forwarding(), before);
}

#[test]
fn a_link_behind_a_link_ends_with_it() {
    let Some(_alone) = way_out() else { return };
    let mark = format!("9{:06}", std::process::id());
    let script = format!("sleep {mark} & echo ready; wait");
    let own = env!("CARGO_BIN_EXE_narrows");
    let mut run = Command::new(own)
        .args([
            "link", LINK, "--quiet", "--", own, "link", LINK, "--quiet", "--", "sh", "-c", &script,
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(wait_until(|| !sleeper(&mark)), "the inner link's command");
}

/// A background program at each end, whose parent shell has ended; one of them ignores SIGTERM. Only these programs end
/// with the link, however it ends.
#[test]
fn only_processes_of_the_link_end_with_it() {
    let Some(_alone) = way_out() else { return };
    let id = std::process::id();
    let [far, near, own, visitor, neighbour] = [1, 2, 3, 4, 5].map(|n| format!("{n}4{id:06}"));
    let mut others = vec![Command::new("sleep").arg(&own).spawn().unwrap()];
    let mut other_link = with_a_sleeper(&neighbour);
    for (way, deaf) in [("", "trap '' TERM; "), ("-TERM", ""), ("-INT", ""), ("-KILL", "")] {
        let left = |mark: &str, before: &str| {
            // The subshell ends at once, so its child has no parent among the commands.
            format!("{before}(setsid sleep {mark} </dev/null >/dev/null 2>&1 &)")
        };
        let there = format!("{}; sleep 1000{id:06}", left(&far, deaf));
        // Its standard input is the test's, so it ends when the test closes it.
        let here = format!("{}; echo $$; read end", left(&near, ""));
        let mut run = Command::new(env!("CARGO_BIN_EXE_narrows"))
            .args(["link", LINK, "--quiet", "--far", &there, "--", "sh", "-c", &here])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shell = String::new();
        std::io::BufReader::new(run.stdout.as_mut().unwrap()).read_line(&mut shell).unwrap();
        assert!(wait_until(|| sleeper(&far) && sleeper(&near)), "{way}");
        if way.is_empty() {
            // A process that entered the link's namespace from outside.
            let enter = ["--net", "--target", shell.trim(), "sleep", &visitor];
            others.push(Command::new("nsenter").args(enter).spawn().unwrap());
            assert!(wait_until(|| sleeper(&visitor)));
            drop(run.stdin.take());
        } else {
            let status = Command::new("kill").args([way, &run.id().to_string()]).status().unwrap();
            assert!(status.success());
        }
        run.wait().unwrap();
        let gone = || ![&far, &near, &format!("1000{id:06}")].into_iter().any(|m| sleeper(m));
        // After a SIGKILL the guard ends them; otherwise they ended before the link did.
        assert!(if way == "-KILL" { wait_until(gone) } else { gone() }, "left after {way:?}");
        assert!(
            sleeper(&own) && sleeper(&visitor) && sleeper(&neighbour),
            "{way}: another's ended"
        );
    }
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    assert!(Command::new("kill").arg(other_link.id().to_string()).status().unwrap().success());
    other_link.wait().unwrap();
    assert!(!sleeper(&neighbour));
}

#[test]
fn names_ipv4_and_ipv6_work_on_a_host_without_forwarding() {
    let Some(_alone) = way_out() else { return };
    let has_six = std::path::Path::new("/proc/sys/net/ipv6/conf/default/force_forwarding").exists();
    if Command::new("ip").arg("-V").output().is_err() || !has_six {
        eprintln!("skipped: needs iproute2, and Linux 6.17 for IPv6");
        return;
    }
    let out = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", include_str!("link_way_out.sh")])
        .env("NARROWS", env!("CARGO_BIN_EXE_narrows"))
        .output()
        .unwrap();
    let wanted = "server.test ::ffff:10.99.0.1 True\n10.99.0.2 ::ffff:10.99.0.1 True\nfd99::2 fd99::1 True\n\
                  settings as before\n";
    assert_eq!(text(&out.stdout), wanted, "{}", text(&out.stderr));
}

#[test]
fn missing_system_feature_gives_one_line() {
    let Some(_alone) = way_out() else { return };
    let run = |before: &str| {
        let script = format!("{before}; exec \"$@\" \"$NARROWS\" link {LINK} -- true");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "sh", "-c", &script]);
        command.env("NARROWS", env!("CARGO_BIN_EXE_narrows")).output().unwrap()
    };
    let taken = "for n in $(seq 0 99); do ip tuntap add dev narrows${n}b mode tun; done";
    for (before, hint) in [
        ("mount -t tmpfs none /dev/net", "/dev/net/tun is missing"),
        ("mount --bind /dev/null /dev/net/tun", "/dev/net/tun is no TUN device"),
        (taken, "already, which no running `narrows link` made"),
        // As root in a container.
        ("set -- setpriv --bounding-set -net_admin", "docker run --cap-add NET_ADMIN"),
        ("set -- setpriv --bounding-set -sys_admin", "docker run --cap-add SYS_ADMIN"),
    ] {
        let out = run(before);
        let line = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{before}: {line}");
        assert_eq!(line.lines().count(), 1, "{before}: {line}");
        assert!(line.contains(hint), "{before}: {line}");
    }
}

#[test]
fn a_command_has_no_signals_blocked() {
    let Some(_alone) = way_out() else { return };
    let out = narrows(&["link", LINK, "--quiet", "--", "grep", "SigBlk", "/proc/self/status"]);
    assert_eq!(text(&out.stdout), "SigBlk:\t0000000000000000\n", "{}", text(&out.stderr));
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    let Some(_alone) = way_out() else { return };
    let mut run: Child = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args([
            "link",
            LINK,
            "--quiet",
            "--",
            "sh",
            "-c",
            "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.1; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = run.stdout.take().unwrap();
    out.read_exact(&mut [0; 6]).unwrap();
    let killed = Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), run.wait().unwrap().code()), ("told\n", Some(5)));
}

/// All processes: id, and name and parent.
fn processes() -> Vec<(String, String)> {
    let of = |entry: std::fs::DirEntry| -> Option<(String, String)> {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = stat.split_once('(')?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let parent = rest.split_whitespace().nth(1)?;
        Some((entry.file_name().into_string().ok()?, format!("{name} {parent}")))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

fn sleeper(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|p| {
        std::fs::read(p.path().join("cmdline"))
            .is_ok_and(|c| text(&c) == format!("sleep\0{mark}\0"))
    })
}

fn wait_until(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
