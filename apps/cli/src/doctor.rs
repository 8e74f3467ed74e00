//! `narrows doctor`: what this machine permits, with the command that mends what is missing.

use crate::failure::Failure;
use crate::terminal::{print, print_json};
use clap::Args;
use narrows_net::LocalPath;
use narrows_net::socket::Socket;
use serde::Serialize;
use std::fs::read_to_string;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

pub const HELP: &str = "\
Each line is one thing that the commands use: ok, limited (it works, but less
well or not for this user) or missing. Below it is the command that mends it.
Emulation in simulation and by `narrows relay` needs no rights and no kernel
module such as sch_netem. Checks run an empty link and an empty controller in
processes of their own, which takes a second.

Examples:
  narrows doctor
  narrows doctor --json                      for scripts and bug reports";

#[derive(Args)]
pub struct DoctorArgs {
    /// Print one JSON object per check, in a list
    #[arg(long)]
    pub json: bool,
}

/// Whether a part of the machine works, works in part, or is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckResult {
    Ok,
    Limited,
    Missing,
}

/// A check, its result, and the command that mends it.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    state: CheckResult,
    finding: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Check {
    fn new(check: &'static str, state: CheckResult, finding: impl Into<String>) -> Check {
        Check { check, state, finding: finding.into(), mend: None }
    }

    fn mended_by(self, mend: impl Into<String>) -> Check {
        Check { mend: Some(mend.into()), ..self }
    }
}

/// `narrows doctor`.
///
/// # Errors
/// The standard output cannot be written.
pub fn doctor(a: &DoctorArgs) -> Result<(), Failure> {
    let mut checks = vec![link(), tun(), kernel(), algorithms()];
    checks.extend(sockets());
    checks.extend([lines(&LocalPath::all(), &LocalPath::unrouted(), is_strict)]);
    checks.extend([clock(), timers(), files()]);
    if a.json {
        return print_json(&serde_json::to_value(&checks).unwrap_or_default());
    }
    let mut text = String::new();
    for Check { check, state, finding, mend } in &checks {
        let word = match state {
            CheckResult::Ok => "ok",
            CheckResult::Limited => "limited",
            CheckResult::Missing => "missing",
        };
        text += &format!("{word:<8} {check:<16} {finding}\n");
        text += &mend.as_ref().map_or(String::new(), |mend| format!("{:26}mend: {mend}\n", ""));
    }
    print(&text)
}

/// Runs this program with these arguments: the last line of its error stream if it fails.
fn run(args: &[&str]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let done = Command::new(own).args(args).output().map_err(|e| e.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    let last = errors.lines().last().unwrap_or("it ended without a line");
    Err(last.trim_start_matches("narrows: ").into())
}

/// The text of a file of the kernel.
fn kernel_file(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_string())
}

fn number(path: &str) -> Option<u64> {
    kernel_file(path)?.parse().ok()
}

/// Namespaces and TUN, by an empty link.
fn link() -> Check {
    const NAME: &str = "link";
    if !cfg!(target_os = "linux") {
        let line = "`narrows link` runs on Linux; `narrows relay` runs here";
        return Check::new(NAME, CheckResult::Missing, line);
    }
    match run(&["link", "1Gbit/s,1ms", "--quiet", "--far", "true", "--", "true"]) {
        Ok(()) => Check::new(
            NAME,
            CheckResult::Ok,
            "namespaces and TUN: `link --far` works for this user",
        ),
        Err(why) => {
            let check =
                Check::new(NAME, CheckResult::Missing, format!("`link` does not work: {why}"));
            if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
                check.mended_by("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
            } else if number("/proc/sys/user/max_user_namespaces") == Some(0) {
                check.mended_by("sudo sysctl -w user.max_user_namespaces=10000")
            } else if std::fs::metadata("/dev/net/tun").is_err() {
                check.mended_by("sudo modprobe tun (in a container: --device /dev/net/tun)")
            } else {
                check.mended_by("run it as root (in a container: --cap-add NET_ADMIN,SYS_ADMIN)")
            }
        }
    }
}

/// Whether the process has this capability; `None` if the system does not say.
fn has_capability(bit: u32) -> Option<bool> {
    let status = read_to_string("/proc/self/status").ok()?;
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(held.trim(), 16).ok()?;
    Some(held & (1 << bit) != 0)
}

/// An interface for `tunnel --tun`.
fn tun() -> Check {
    const NAME: &str = "tunnel --tun";
    const NET_ADMIN: u32 = 12;
    if std::fs::metadata("/dev/net/tun").is_err() {
        let check = Check::new(NAME, CheckResult::Missing, "/dev/net/tun is absent");
        return check.mended_by("sudo modprobe tun (in a container: --device /dev/net/tun)");
    }
    match has_capability(NET_ADMIN) {
        Some(true) => Check::new(NAME, CheckResult::Ok, "TUN, and the right to make interfaces"),
        _ => {
            Check::new(NAME, CheckResult::Limited, "this user may not make interfaces; ports work")
                .mended_by("run it as root, or as a service with AmbientCapabilities=CAP_NET_ADMIN")
        }
    }
}

/// eBPF, by an empty command with a controller in the kernel's TCP.
fn kernel() -> Check {
    const NAME: &str = "kernel run";
    if !cfg!(target_os = "linux") {
        return Check::new(NAME, CheckResult::Missing, "controllers in the kernel need Linux");
    }
    match run(&["kernel", "run", "reno", "--", "true"]) {
        Ok(()) => Check::new(NAME, CheckResult::Ok, "eBPF: controllers run in the kernel's TCP"),
        Err(why) => {
            let check = Check::new(NAME, CheckResult::Missing, why);
            match has_capability(0) {
                Some(true) => check,
                _ => check.mended_by("sudo narrows kernel run NAME -- COMMAND"),
            }
        }
    }
}

/// Congestion controls of the kernel that `compare` recommends.
fn algorithms() -> Check {
    const NAME: &str = "kernel's TCP";
    let Some(known) = kernel_file("/proc/sys/net/ipv4/tcp_available_congestion_control") else {
        return Check::new(
            NAME,
            CheckResult::Limited,
            "the system does not say which controls it has",
        );
    };
    let finding = format!("congestion controls: {known}");
    if known.split(' ').any(|name| name == "bbr") {
        Check::new(NAME, CheckResult::Ok, finding)
    } else {
        Check::new(NAME, CheckResult::Limited, finding).mended_by("sudo modprobe tcp_bbr")
    }
}

/// Round trip for which the buffers are judged, in seconds.
const RTT_S: f64 = 0.1;

/// Buffers and offloads of a UDP socket.
fn sockets() -> Vec<Check> {
    let socket = match Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))) {
        Ok(socket) => socket,
        Err(e) => return vec![Check::new("UDP", CheckResult::Missing, format!("no socket: {e}"))],
    };
    let bytes = socket.receive_buffer().unwrap_or(0);
    // The buffer holds packets that arrive while the process does not run.
    let rate = bytes as f64 * 8.0 / RTT_S * 1e-6;
    let finding = format!(
        "receive buffer {:.1} MB: bursts of {rate:.0} Mbit/s for {:.0} ms",
        bytes as f64 * 1e-6,
        RTT_S * 1e3
    );
    let buffers = if bytes >= 8 << 20 {
        Check::new("socket buffers", CheckResult::Ok, finding)
    } else {
        Check::new("socket buffers", CheckResult::Limited, finding)
            .mended_by("sudo sysctl -w net.core.rmem_max=12582912 net.core.wmem_max=12582912")
    };
    let sent = socket.segments();
    let received = socket.coalesced();
    let finding = format!("{sent} datagrams per send (GSO), {received} per receive (GRO)");
    let state = if sent > 1 && received > 1 { CheckResult::Ok } else { CheckResult::Limited };
    vec![buffers, Check::new("GSO and GRO", state, finding)]
}

/// Whether the kernel drops packets that arrive at this interface if its route to their source leaves by another one
/// (RFC 3704, strict reverse path forwarding; the larger value of both files holds).
fn is_strict(interface: &str) -> bool {
    let of = |name: &str| number(&format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
    of("all").max(of(interface)) == Some(1)
}

/// Lines of this machine for `--path`: `routed` by metric, the first of which carries all else.
fn lines(routed: &[LocalPath], unrouted: &[LocalPath], is_strict: fn(&str) -> bool) -> Check {
    const NAME: &str = "--path";
    if let Some(path) = unrouted.first() {
        let finding = format!("{path} has an address, but no default route");
        return Check::new(NAME, CheckResult::Limited, finding).mended_by(format!(
            "sudo ip route add default via ROUTER dev {path} metric 2000 (ROUTER: that line's)"
        ));
    }
    let mut further = routed.iter().skip(1).map(ToString::to_string);
    if let Some(path) = further.find(|name| is_strict(name)) {
        let finding = format!("answers to {path} are dropped: strict reverse path filter");
        return Check::new(NAME, CheckResult::Limited, finding)
            .mended_by(format!("sudo sysctl -w net.ipv4.conf.{path}.rp_filter=2"));
    }
    let names: Vec<String> = routed.iter().map(ToString::to_string).collect();
    let finding = match names.len() {
        0 => "no interface is up with an address".into(),
        1 => format!("one line: {}", names.join(", ")),
        _ => format!("several lines: {}", names.join(", ")),
    };
    Check::new(NAME, CheckResult::Ok, finding)
}

fn clock() -> Check {
    const NAME: &str = "clock";
    let path = "/sys/devices/system/clocksource/clocksource0/";
    let begun = Instant::now();
    let reads = 10_000;
    let last = (0..reads).fold(begun, |_, _| Instant::now());
    let cost = last.duration_since(begun).as_nanos() / reads;
    let source = kernel_file(&format!("{path}current_clocksource"));
    let finding = format!("{cost} ns to read, source {}", source.as_deref().unwrap_or("unknown"));
    if cost < 500 {
        return Check::new(NAME, CheckResult::Ok, finding);
    }
    let check = Check::new(NAME, CheckResult::Limited, finding);
    let available = kernel_file(&format!("{path}available_clocksource")).unwrap_or_default();
    match available
        .split(' ')
        .find(|name| matches!(*name, "tsc" | "kvm-clock" | "arch_sys_counter"))
    {
        Some(better) if source.as_deref() != Some(better) => {
            check.mended_by(format!("echo {better} | sudo tee {path}current_clocksource"))
        }
        _ => check,
    }
}

/// Lateness of short sleeps: emulated links and pacing need them.
fn timers() -> Check {
    const NAME: &str = "timers";
    const SLEEP: Duration = Duration::from_millis(1);
    let mut late: Vec<Duration> = (0..50)
        .map(|_| {
            let begun = Instant::now();
            std::thread::sleep(SLEEP);
            begun.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort_unstable();
    let at =
        |share: usize| late.get(late.len() * share / 100).map_or(0.0, Duration::as_secs_f64) * 1e3;
    let finding = format!(
        "sleeps of 1 ms are late by {:.2} ms (median), {:.2} ms (one in ten)",
        at(50),
        at(90)
    );
    if at(90) < 1.0 {
        Check::new(NAME, CheckResult::Ok, finding)
    } else {
        Check::new(NAME, CheckResult::Limited, finding)
            .mended_by("use a machine with idle processors, or nice -n -10, for links in real time")
    }
}

/// Open files: each connection of a server or tunnel needs one.
fn files() -> Check {
    const NAME: &str = "open files";
    let limits = read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let mut numbers = line.unwrap_or_default().split_whitespace();
    let (Some(soft), Some(hard)) = (numbers.next(), numbers.next()) else {
        return Check::new(NAME, CheckResult::Limited, "the system does not say its limit");
    };
    let finding = format!("limit {soft}, raised to {hard} by servers and tunnels");
    if hard == "unlimited" || hard.parse().is_ok_and(|n: u64| n >= 4096) {
        Check::new(NAME, CheckResult::Ok, finding)
    } else {
        Check::new(NAME, CheckResult::Limited, finding)
            .mended_by("LimitNOFILE=65536 in the service, or ulimit -Hn as root")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_cannot_carry_a_path_gets_a_command() {
        let path = |name: &str| LocalPath::Interface(name.into());
        let both = [path("eth0"), path("wwan0")];
        let none = |_: &str| false;
        let check = lines(&both, &[], none);
        assert_eq!((check.state, check.mend), (CheckResult::Ok, None));
        let check = lines(&both[..1], &both[1..], none);
        let mend =
            "sudo ip route add default via ROUTER dev wwan0 metric 2000 (ROUTER: that line's)";
        assert_eq!(check.mend.as_deref(), Some(mend));
        // The filter drops no answer to the interface of the best route.
        assert_eq!(lines(&both, &[], |name| name == "eth0").state, CheckResult::Ok);
        let check = lines(&both, &[], |_| true);
        assert_eq!(check.mend.as_deref(), Some("sudo sysctl -w net.ipv4.conf.wwan0.rp_filter=2"));
    }
}
