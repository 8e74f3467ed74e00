//! `cargo xtask bench`: delivered packets per CPU second on four dumbbells, beside ns-2.
//!
//! Each figure is of a whole process: CPU time as the system accounts it, set-up included. The machine may be shared,
//! so runs alternate, medians are reported, and the ratio is of medians of the same run.

use crate::command::cargo;
use crate::real::{alternate, spread};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const RUNS: usize = 5;

/// A dumbbell: name, flows, Mbit/s, seconds for ns-2, seconds for Narrows (longer, well above the clock's resolution),
/// and published results of other simulators.
const CASES: [(&str, u32, u32, u32, u32, &str); 4] = [
    ("a", 1, 10, 60, 1200, "0.83 / 0.032 / 1.86"),
    ("b", 10, 100, 60, 120, "0.72 / 0.027 / 1.59"),
    ("c", 100, 1000, 20, 20, "0.33 / 0.014 / 1.06"),
    ("d", 1000, 1000, 20, 20, "0.22 / 0.002 / 0.55"),
];

struct BenchSample {
    delivered: f64,
    cpu_s: f64,
    setup_s: f64,
    peak_mib: f64,
}

impl BenchSample {
    fn rate(&self) -> f64 {
        self.delivered / (self.cpu_s - self.setup_s).max(1e-3)
    }
}

pub fn run() -> Result<(), String> {
    cargo(&["build", "--release", "-p", "narrows-sim", "--example", "dumbbell"])?;
    let target = crate::command::target();
    let ours = format!("{target}/release/examples/dumbbell");
    let ns = Command::new("ns").arg("/dev/null").stdout(Stdio::null()).status().is_ok();
    let script = std::path::Path::new(&target).join("narrows-dumbbell.tcl");
    std::fs::write(&script, TCL).map_err(|e| format!("{}: {e}", script.display()))?;
    let mut rows = String::new();
    for (name, flows, mbps, ns_seconds, seconds, known) in CASES {
        let senders = if ns { &[false, true][..] } else { &[false] };
        let runs = alternate(RUNS, senders, |ns| match ns {
            false => speak(&ours, &[flows, mbps, seconds], "reno", ""),
            true => ns2(&script, flows, mbps, ns_seconds),
        })?;
        let mine = &runs[0];
        let (me, least, most) = spread(mine.iter().map(BenchSample::rate));
        let peak = spread(mine.iter().map(|s| s.peak_mib)).0;
        let (their_rate, their_peak, ratio) = if let Some(theirs) = runs.get(1) {
            let r = spread(theirs.iter().map(BenchSample::rate)).0;
            let p = spread(theirs.iter().map(|s| s.peak_mib)).0;
            (format!("{:.2}", r / 1e6), format!("{p:.0}"), format!("{:.1}", me / r))
        } else {
            ("-".into(), "-".into(), "-".into())
        };
        let _ = writeln!(
            rows,
            "| {name}: {flows} flows, {mbps} Mbit/s | **{:.2}** ({:.2} to {:.2}) | {peak:.1} | {their_rate} | {their_peak} | {ratio} | {known} |",
            me / 1e6,
            least / 1e6,
            most / 1e6,
        );
        eprintln!("{name}: {:.2} million packets per CPU second", me / 1e6);
    }
    let idle = speak(&ours, &[10_000, 1000, 1], "reno", "idle")?;
    let base = speak(&ours, &[1, 1000, 1], "reno", "idle")?;
    let per_flow = (idle.peak_mib - base.peak_mib) * 1024.0 * 1024.0 / 10_000.0;
    let media = crate::bench_media::section(RUNS, |protocol| {
        let s = speak(&ours, &[10, 100, 60], protocol, "")?;
        Ok(s.cpu_s * 1e9 / s.delivered.max(1.0))
    })?;
    let text = text(&rows, ns, idle.cpu_s, per_flow, &media);
    crate::section::write("docs/benchmarks.md", "engine", &text)
}

fn text(rows: &str, ns: bool, setup: f64, per_flow: f64, media: &str) -> String {
    let with = if ns {
        "beside ns-2.35 in the same run"
    } else {
        "without ns-2, which is not installed here"
    };
    format!(
        "\
Delivered data packets per CPU second, in millions, {with}: `cargo xtask bench`. One case:\n\
`cargo run --release -p narrows-sim --example dumbbell -- 1000 1000 20` (flows, Mbit/s, seconds).\n\
\n\
- N SACK flows share a bottleneck of the given rate and 10 ms. Each sender and receiver has a link of 1 Gbit/s and\n\
\x20 1 ms.\n\
- The queue holds one BDP (base RTT 24 ms). Packets have 1000 bytes and an ACK each. The initial window is 2.\n\
- CPU is the user and system time of a process. ns-2's set-up is subtracted, that of Narrows is not.\n\
- Figures are medians of {RUNS} runs (smallest to largest), alternating with ns-2.\n\
\n\
| dumbbell | Narrows | peak MiB | ns-2.35 | peak MiB | ratio | measured elsewhere: ns-2 / ns-3 / htsim |\n\
|---|---|---|---|---|---|---|\n{rows}\n\
The last column was measured once on another machine of two shared cores; compare only its ratios to ns-2.\n\
\n\
Setting up 10,000 flows takes {setup:.3} CPU s. An idle flow costs {per_flow:.0} bytes, with its four access links and its\n\
specification.\n\
\n\
{media}"
    )
}

fn speak(
    program: &str,
    numbers: &[u32],
    protocol: &str,
    flag: &str,
) -> Result<BenchSample, String> {
    let mut command = Command::new(program);
    command.args(numbers.iter().map(u32::to_string)).arg(protocol).arg(flag);
    let out = command.output().map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let get = |key: &str| value(&text, key).ok_or_else(|| format!("{program} said: {text}"));
    Ok(BenchSample {
        delivered: get("delivered")?,
        cpu_s: get("cpu_s")?,
        setup_s: 0.0,
        peak_mib: get("peak_kib")? / 1024.0,
    })
}

/// Runs ns-2. Its script prints its own CPU time; its peak memory is read while it runs.
fn ns2(script: &Path, flows: u32, mbps: u32, seconds: u32) -> Result<BenchSample, String> {
    let mut child = Command::new("ns")
        .arg(script)
        .args([flows, mbps, seconds].map(|n| n.to_string()))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("ns: {e}"))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib: f64 = 0.0;
    while matches!(child.try_wait(), Ok(None)) {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let out = child.wait_with_output().map_err(|e| format!("ns: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let get = |key: &str| value(&text, key).ok_or_else(|| format!("ns said: {text}"));
    Ok(BenchSample {
        delivered: get("delivered")?,
        cpu_s: get("cpu_s")?,
        setup_s: get("setup_s")?,
        peak_mib: peak_kib / 1024.0,
    })
}

fn value(text: &str, key: &str) -> Option<f64> {
    let word = text.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
    word?.parse().ok()
}

/// The same dumbbell for ns-2, optimised by its manual: few headers, manual routes.
const TCL: &str = r#"
foreach {n mbps seconds} $argv break
proc cpu {} {
    set f [open /proc/self/stat]; set fields [split [read $f]]; close $f
    return [expr ([lindex $fields 13] + [lindex $fields 14]) / 100.0]
}
set sim [new Simulator]
remove-all-packet-headers
add-packet-header Common Flags IP TCP
$sim rtproto Manual
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set overhead_ 0
set left [$sim node]
set right [$sim node]
$sim duplex-link $left $right ${mbps}Mb 10ms DropTail
$sim queue-limit $left $right [expr int(ceil($mbps * 24.0 / 8.0)) + 1]
$sim queue-limit $right $left 100000
[$left get-module Manual] add-route-to-adj-node -default $right
[$right get-module Manual] add-route-to-adj-node -default $left
for {set i 0} {$i < $n} {incr i} {
    foreach {end router} [list source $left target $right] {
        set node [$sim node]
        set ${end}($i) $node
        $sim duplex-link $node $router 1000Mb 1ms DropTail
        $sim queue-limit $node $router 100000
        $sim queue-limit $router $node 100000
        [$node get-module Manual] add-route-to-adj-node -default $router
        [$router get-module Manual] add-route-to-adj-node $node
    }
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $sim attach-agent $source($i) $tcp($i)
    $sim attach-agent $target($i) $sink
    $sim connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $sim at [expr double($i) / $n] "$ftp start"
}
set setup 0
$sim at 0 { set setup [cpu] }
$sim at $seconds {
    set delivered 0
    for {set i 0} {$i < $n} {incr i} { incr delivered [expr [$tcp($i) set ack_] + 1] }
    puts "delivered=$delivered setup_s=$setup cpu_s=[cpu]"
    exit 0
}
$sim run
"#;
