//! `narrows kernel`, end to end: loading, selection, signals and cleanup. Most tests need root; each prints the reason
//! if it is skipped.

use narrows_emulator::Namespace;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Makes a connection within a command, and prints the congestion controls of both ends and the received data.
const CONNECTION: &str = "
import socket
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
name = lambda s: s.getsockopt(6, 13, 16).rstrip(b'\\0').decode()
accepted.sendall(b'data')
print(name(client), name(accepted), client.recv(4).decode())
";

fn kernel(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows")).arg("kernel").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exclusive use of the kernel's list for one test; `None`, with a message, if controllers cannot be loaded here.
fn possible() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = REFUSED.get_or_init(|| {
        let name = format!("try_{}", std::process::id());
        let tried = kernel(&["run", "reno", "--as", &name, "--", "true"]);
        (!tried.status.success()).then(|| text(&tried.stderr))
    });
    match refused {
        Some(why) => {
            eprintln!("skipped: {}", why.trim());
            None
        }
        None => Some(one),
    }
}

/// The congestion controls in the kernel's list.
fn known() -> Vec<String> {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.unwrap_or_default().split_whitespace().map(str::to_string).collect()
}

fn has(name: &str) -> bool {
    known().iter().any(|n| n == name)
}

/// The status of a congestion control; null if it is not loaded.
fn status(name: &str) -> serde_json::Value {
    let out = kernel(&["status", "--json"]);
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let is_it = |s: &&serde_json::Value| s["name"] == name;
    all.as_array().unwrap().iter().find(is_it).cloned().unwrap_or_default()
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

/// A refusal is one line and exit code 2, and leaves no controller behind.
fn refused(args: &[&str], hint: &str) {
    let before = known();
    let out = kernel(args);
    let line = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    assert!(line.contains(hint), "{args:?}: {line}");
    assert_eq!(before, known(), "{args:?}");
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn impossible_kernel_options_give_one_line_and_exit_2() {
    for (args, hint) in [
        (&["run", "tfwc", "--", "true"][..], "rrtp+tfwc over rrtp"),
        (&["run", "vegsa", "--", "true"], "'vegas'"),
        (&["run", "vegas(alpha=x)", "--", "true"], "alpha"),
        (&["run", "rrtp"], "<COMMAND>"),
        (&["run", "rrtp", "--as", "sixteen_letters_", "--", "true"], "1 to 15 letters"),
        (&["load", "rrtp", "stpd", "--as", "nw_x"], "--as is for one controller"),
        (&["unload", "nw_none"], "'nw_none' is not loaded"),
    ] {
        let out = kernel(args);
        let line = text(&out.stderr);
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{args:?}: {line}");
        assert!(line.contains(hint), "{args:?}: {line}");
    }
    if let Some(_alone) = possible() {
        refused(&["run", "rrtp", "--", "no-such-command"], "no-such-command: command not found");
        refused(&["run", "rrtp", "--as", "reno", "--", "true"], "'reno' exists already");
        refused(&["load", "vegas", "--as", "cubic"], "'cubic' exists already");
        refused(&["load", "westwood", "westwood"], "'nw_westwood' exists already");
    }
}

/// Missing features of the system are named, instead of the number of a failed system call.
#[test]
fn missing_kernel_feature_is_named() {
    let Some(_alone) = possible() else { return };
    let unprivileged = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        command.arg("kernel").args(args).uid(65534).gid(65534).output()
    };
    match unprivileged(&["run", "rrtp", "--", "true"]) {
        Ok(out) => {
            assert_eq!(out.status.code(), Some(2));
            assert!(text(&out.stderr).contains("CAP_BPF"), "{}", text(&out.stderr));
            let out = unprivileged(&["load", "rrtp", "--as", "nw_nobody"]).unwrap();
            assert_eq!(out.status.code(), Some(2));
            assert!(text(&out.stderr).contains("CAP_BPF"), "{}", text(&out.stderr));
        }
        Err(e) => eprintln!("skipped: user 65534 may not run the command here: {e}"),
    }
    let program = env!("CARGO_BIN_EXE_narrows");
    let script = format!(
        "mount -t tmpfs none /sys/kernel/btf 2>/dev/null || mount -t tmpfs none /sys || exit 99
        exec {program} kernel run rrtp -- true"
    );
    match Command::new("unshare").args(["-m", "sh", "-c", &script]).output() {
        Ok(out) if out.status.code() != Some(99) => {
            assert_eq!(out.status.code(), Some(2));
            assert!(text(&out.stderr).contains("BTF"), "{}", text(&out.stderr));
        }
        _ => eprintln!("skipped: /sys/kernel/btf cannot be hidden here"),
    }
}

#[test]
fn both_ends_use_the_controller_and_exit_code_is_kept() {
    let Some(_alone) = possible() else { return };
    let out = kernel(&["run", "vegas", "--as", "nw_ends", "--", "python3", "-c", CONNECTION]);
    assert_eq!(text(&out.stdout).trim(), "nw_ends nw_ends data", "{}", text(&out.stderr));
    let out = kernel(&["run", "vegas", "--as", "nw_ends", "--", "sh", "-c", "exit 7"]);
    assert_eq!(out.status.code(), Some(7));
    let out = kernel(&["run", "vegas", "--as", "nw_ends", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(out.status.code(), Some(137));
    assert!(!has("nw_ends"), "unloaded at the end");
    assert_eq!(status("nw_ends"), serde_json::Value::Null);
}

/// The page shows the kernel's connections as their acknowledgements arrive.
#[test]
fn the_kernels_connections_are_on_the_page() {
    let Some(_one) = possible() else { return };
    let script =
        format!("{CONNECTION}accepted.sendall(bytes(99999)); import sys; sys.stdin.read()");
    let mut child = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(["kernel", "run", "rrtp", "--live", "--", "python3", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("token=")).unwrap();
    let (_, url) = line.split_once("http://").unwrap();
    let (address, token) = url.trim().split_once("/?token=").unwrap();
    let mut page = TcpStream::connect(address).unwrap();
    page.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(page, "GET /events?token={token} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut output = String::new();
    let mut part = [0; 4096];
    let wanted = ["\"name\":\"connection.1\"", "acknowledgements come", "\"cwnd\""];
    while !wanted.iter().all(|part| output.contains(part)) {
        let n = match page.read(&mut part) {
            // Children of other tests end meanwhile, and their signal interrupts a read with a timeout.
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            n => n.unwrap(),
        };
        assert!(n > 0, "{output}");
        output += &String::from_utf8_lossy(&part[..n]);
    }
    // The command ends with its input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Also in another network namespace, and with one run within another: the inner choice applies.
#[test]
fn the_innermost_run_chooses() {
    let Some(_alone) = possible() else { return };
    let program = env!("CARGO_BIN_EXE_narrows");
    let words = ["kernel", "run", "reno", "--as", "nw_outer", "--", program];
    let inner = ["kernel", "run", "vegas", "--as", "nw_inner", "--", "python3", "-c", CONNECTION];
    let namespace = Namespace::create("test").unwrap();
    let run = || Command::new(program).args(words).args(inner).output().unwrap();
    let out = namespace.enter(run).unwrap();
    assert_eq!(text(&out.stdout).trim(), "nw_inner nw_inner data", "{}", text(&out.stderr));
}

#[test]
fn second_run_takes_another_name_beside_the_first() {
    let Some(_alone) = possible() else { return };
    // A name given by the user is not changed; a name derived from the controller's is.
    let program = env!("CARGO_BIN_EXE_narrows");
    let words = ["run", "illinois", "--", program, "kernel", "run", "illinois", "--"];
    let out = kernel(&[&words[..], &["python3", "-c", CONNECTION]].concat());
    let said = text(&out.stdout);
    let name = said.split(' ').next().unwrap();
    assert!(name.starts_with("nw_illi") && name != "nw_illinois", "{said}: {}", text(&out.stderr));
    let words = ["run", "reno", "--as", "nw_asked", "--", program, "kernel", "run", "reno"];
    let out = kernel(&[&words[..], &["--as", "nw_asked", "--", "true"]].concat());
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("'nw_asked' exists already"), "{}", text(&out.stderr));
}

/// A run of a script, which prints its shell's process id when it is ready, and the mark of its cgroup.
fn begun(name: &str, script: &str) -> (Child, String) {
    // A background job of a shell ignores SIGINT, and a shell below it cannot undo that.
    let mut run = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_narrows")])
        .args(["kernel", "run", "reno", "--as", name, "--", "sh", "-c"])
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", line.trim())).unwrap();
    let mark = format!("narrows-kernel-{}", run.id());
    assert!(cgroup.contains(&mark), "{cgroup}");
    (run, mark)
}

/// Number of living processes in a cgroup of that name.
fn members(cgroup: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_in = |path: std::path::PathBuf| {
        let read = |file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_default();
        // A dead process stays in the list until its parent reaps it.
        read("cgroup").contains(cgroup) && !read("status").contains("State:\tZ")
    };
    processes.filter(|p| is_in(p.path())).count()
}

/// Whether the cgroup of that name exists, if cgroups of version 2 are mounted.
fn exists(cgroup: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let mounted = mounts.lines().filter(|l| l.split(' ').nth(2) == Some("cgroup2"));
    mounted.filter_map(|l| l.split(' ').nth(1)).any(|root| {
        let found = Command::new("find").args([root, "-name", cgroup]).output().unwrap();
        !found.stdout.is_empty()
    })
}

#[test]
fn signal_ends_command_and_children_and_unloads_the_controller() {
    let Some(_alone) = possible() else { return };
    // A shell that ends by itself, one with a child that ignores signals, and one that ignores them itself.
    for (script, code) in [
        ("trap 'exit 5' TERM; echo $$; while :; do sleep 0.1; done", 5),
        ("sh -c 'trap : TERM; echo $PPID; while :; do sleep 0.1; done' & wait", 143),
        ("trap : TERM; echo $$; while :; do sleep 0.1; done", 137),
    ] {
        let (mut run, cgroup) = begun("nw_term", script);
        assert!(members(&cgroup) >= 1 && has("nw_term"));
        send("-TERM", run.id());
        assert_eq!(run.wait().unwrap().code(), Some(code), "{script}");
        assert_eq!(members(&cgroup), 0, "{script}");
        assert!(!exists(&cgroup), "{script}");
        assert!(!has("nw_term") && status("nw_term").is_null(), "{script}");
    }
    // SIGINT sent only to this process.
    let (mut run, cgroup) =
        begun("nw_int", "trap 'exit 6' INT; echo $$; while :; do sleep 0.1; done");
    send("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(6));
    assert!(!exists(&cgroup));
}

/// After a run is killed, its command continues. When it has ended, the next run removes the cgroup.
#[test]
fn a_killed_run_leaves_its_command_and_no_congestion_control() {
    let Some(_alone) = possible() else { return };
    let (mut run, cgroup) = begun("nw_run_killed", "echo $$; exec sleep 1000");
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(!has("nw_run_killed"), "it vanishes with its process");
    assert_eq!(members(&cgroup), 1, "the command goes on");
    assert!(kernel(&["unload", "nw_run_killed"]).status.success());
    for p in std::fs::read_dir("/proc").unwrap().flatten() {
        let of = std::fs::read_to_string(p.path().join("cgroup")).unwrap_or_default();
        if of.contains(&cgroup) {
            send("-KILL", p.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    assert!(wait_until(|| members(&cgroup) == 0));
    assert!(kernel(&["run", "reno", "--as", "nw_next", "--", "true"]).status.success());
    assert!(!exists(&cgroup));
}

#[test]
fn loaded_controller_stays_until_it_is_unloaded() {
    let Some(_alone) = possible() else { return };
    let out = kernel(&["load", "vegas(alpha=3)", "--as", "nw_loaded"]);
    assert_eq!(text(&out.stdout), "nw_loaded: vegas(alpha=3)\n", "{}", text(&out.stderr));
    assert!(has("nw_loaded"));
    let choose =
        format!("import socket; s = socket.socket(); s.setsockopt(6, 13, b'{}')", "nw_loaded");
    let chosen = Command::new("python3").args(["-c", &choose]).uid(65534).gid(65534).status();
    assert!(chosen.unwrap().success(), "programs without rights may choose it");
    let s = status("nw_loaded");
    assert_eq!(
        (s["controller"].as_str(), s["agent_lives"].as_bool()),
        (Some("vegas(alpha=3)"), Some(true))
    );
    refused(&["load", "reno", "--as", "nw_loaded"], "'nw_loaded' exists already");
    // If one of two names is taken, neither is loaded.
    assert!(kernel(&["load", "ledbat++", "--as", "nw_veno"]).status.success());
    refused(&["load", "copa", "veno"], "'nw_veno' exists already");
    assert!(kernel(&["unload", "nw_veno"]).status.success());
    // Also by the controller's name, and with a stopped agent.
    send("-STOP", s["pid"].as_u64().unwrap() as u32);
    assert!(kernel(&["unload", "vegas(alpha=3)"]).status.success());
    assert!(!has("nw_loaded") && status("nw_loaded").is_null());
}

/// `--system` is undone by `unload`, or by a guard if the agent was killed.
#[test]
fn the_systems_congestion_control_is_given_back() {
    let Some(_alone) = possible() else { return };
    // The setting belongs to a network namespace, so the machine's is not touched here.
    let namespace = Namespace::create("test").unwrap();
    let usual = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let within = || namespace.enter(usual).unwrap().trim().to_string();
    let before = within();
    let load = || {
        let out = namespace.enter(|| kernel(&["load", "reno", "--as", "nw_system", "--system"]));
        let out = out.unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert_eq!(within(), "nw_system");
    };
    load();
    assert!(kernel(&["unload", "nw_system"]).status.success());
    assert_eq!(within(), before);
    load();
    send("-KILL", status("nw_system")["pid"].as_u64().unwrap() as u32);
    assert!(wait_until(|| within() == before), "{}", within());
    assert!(wait_until(|| status("nw_system").is_null()));
}

/// ST-PD inside the kernel: it works without a process, and is removed when it is unloaded.
#[test]
fn native_controller_runs_without_a_process() {
    let Some(_alone) = possible() else { return };
    refused(&["load", "--native", "vegas", "--as", "nw_nat"], "--native has stpd only");
    let out = kernel(&["load", "--native", "stpd(reference=2)", "--as", "nw_nat"]);
    assert_eq!(text(&out.stdout), "nw_nat: stpd(reference=2)\n", "{}", text(&out.stderr));
    let s = status("nw_nat");
    assert_eq!((s["native"].as_bool(), s["agent_lives"].as_bool()), (Some(true), Some(false)));
    let agents = Command::new("pgrep").args(["-f", "kernel agent .* nw_nat"]).output();
    assert!(agents.is_ok_and(|a| a.stdout.is_empty()), "no process answers for it");
    let choose = format!("{CONNECTION}\nclient.setsockopt(6, 13, b'nw_nat'); print(name(client))");
    let chosen = Command::new("python3").args(["-c", &choose]).output().unwrap();
    assert!(text(&chosen.stdout).ends_with("nw_nat\n"), "{}", text(&chosen.stderr));
    refused(&["load", "reno", "--as", "nw_nat"], "'nw_nat' exists already");
    assert!(kernel(&["unload", "nw_nat"]).status.success());
    assert!(!has("nw_nat") && status("nw_nat").is_null());
    let out =
        kernel(&["run", "--native", "stpd", "--as", "nw_nat", "--", "python3", "-c", CONNECTION]);
    assert_eq!(text(&out.stdout).trim(), "nw_nat nw_nat data", "{}", text(&out.stderr));
    assert!(!has("nw_nat"));
}

/// One table with the simulated protocol, the same controller in the kernel, and Linux's own. Protocols that the kernel
/// cannot run are only simulated, and named.
#[test]
fn a_comparison_has_the_kernels_tcp_beside_the_simulated() {
    let Some(_alone) = possible() else { return };
    let folder = tempfile::tempdir().unwrap();
    let compare = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        command.current_dir(folder.path()).args(["compare", "--real", "--json"]).args(args);
        command.output().unwrap()
    };
    let link = ["--link", "10Mbit/s,10ms,queue=50p", "--duration", "4s", "--seeds", "1"];
    let out = compare(&[&link[..], &["--protocols", "cubic,stpd,tfrc"]].concat());
    let said = text(&out.stderr);
    if said.contains("TUN") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert!(out.status.success(), "{said}");
    let outcome: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = outcome["results"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|r| r["protocol"].as_str().unwrap()).collect();
    let expected =
        ["cubic, simulated", "cubic, in the kernel", "Linux's own cubic", "stpd, simulated"];
    assert_eq!(names[..4], expected, "{names:?}");
    assert_eq!(names[4..], ["stpd, in the kernel", "tfrc, simulated"], "{names:?}");
    for row in rows {
        let goodput = row["goodput_bps"]["mean"].as_f64().unwrap();
        assert!((1e6..10e6).contains(&goodput), "{}: {goodput}", row["protocol"]);
    }
    let notes = outcome["notes"].to_string();
    assert!(notes.contains("tfrc is simulated only"), "{notes}");
    assert!(folder.path().join("narrows-out/report.html").exists());
    for (args, hint) in [
        (&["--packet", "1000B"][..], "--packet: with --real it is 1500B"),
        (
            &["--source", "transfer(size=1MB)", "--seeds", "1", "--duration", "1s"],
            "--real: only bulk",
        ),
    ] {
        let out = compare(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(hint), "{args:?}: {}", text(&out.stderr));
    }
}
