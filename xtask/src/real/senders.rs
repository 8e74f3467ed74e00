//! Transfers by programs beside each other, each through a relay in this process, and the table of their figures.

use super::ledger::{Figures, LedgerKey, LedgerRow};
use super::{MeasuredLink, Ran, runs_of, spread};
use narrows_net::relay::{Relay, RelayStats};
use narrows_scenario::BottleneckLink;
use narrows_scenario::link_direction::LinkDirection;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

/// Datagrams' bytes of IP and UDP headers.
const HEADERS: u64 = 28;

/// How a sender is run.
#[derive(Clone, Copy, PartialEq)]
pub enum HowSent {
    /// The rrtp endpoint with a protocol, and with the link's hints if it is told.
    Ours { protocol: &'static str, hinted: bool },
    /// quinn with a congestion control.
    Quinn(&'static str),
    /// Hysteria, with the link's rate if it is told.
    Hysteria { hinted: bool },
}

/// A sender: its name, and its title in the table.
#[derive(Clone, Copy)]
pub struct ComparedSender {
    pub name: &'static str,
    pub title: &'static str,
    pub how: HowSent,
}

pub const fn sender(name: &'static str, title: &'static str, how: HowSent) -> ComparedSender {
    ComparedSender { name, title, how }
}

/// Paths of the senders' programs, or why one is missing.
pub struct SpeedPrograms {
    pub ours: String,
    pub quinn: String,
    pub hysteria: Result<String, String>,
}

/// One run: a transfer over one of the links, or `other` where none has the name in the key.
pub fn run(
    programs: &SpeedPrograms,
    senders: &[ComparedSender],
    links: &[MeasuredLink],
    key: &LedgerKey,
    other: impl FnOnce(HowSent) -> Result<Ran, String>,
) -> Result<Ran, String> {
    let how = senders.iter().find(|s| s.name == key.protocol).ok_or("an unknown sender")?.how;
    let Some(link) = links.iter().find(|l| l.name == key.link) else { return other(how) };
    let seconds = key.seconds.to_string();
    relayed(link, key.seed, |server, through| match how {
        HowSent::Ours { protocol, hinted } => {
            let duration = format!("{seconds}s");
            let hinted = if hinted { format!("({})", link.hints) } else { String::new() };
            let protocol = format!("{protocol}{hinted}");
            let args = ["speed", through, "--listen", server, "--protocol", &protocol];
            json(&programs.ours, &[&args[..], &["--duration", &duration, "--json"]].concat())
        }
        HowSent::Quinn(control) => {
            let way = ["--listen", server, "--connect", through];
            let what = ["--seconds", &seconds, "--control", control];
            json(&programs.quinn, &[way, what].concat())
        }
        HowSent::Hysteria { hinted } => {
            let rate = if hinted { link.bps } else { 0.0 }.to_string();
            let way = ["-listen", server, "-connect", through];
            json(
                programs.hysteria.as_ref().map_err(Clone::clone)?,
                &[way, ["-seconds", &seconds, "-rate", &rate]].concat(),
            )
        }
    })
}

/// A line for each link and sender with rows: medians, with the least and the largest. The rate is in Mbit/s if `mbps`,
/// otherwise a bold share of the link's.
pub fn table(
    rows: &[LedgerRow],
    links: &[MeasuredLink],
    senders: &[ComparedSender],
    shorter: f64,
    mbps: bool,
) -> String {
    let mut out = String::new();
    for link in links {
        for sender in senders {
            let seconds = link.seconds * shorter;
            let (tried, in_time) = runs_of(rows, link.name, sender.name, seconds);
            let (here, late) = if in_time.is_empty() { (tried, " (late)") } else { (in_time, "") };
            if here.is_empty() {
                continue;
            }
            let of = |what: &str, scale: f64, digits: usize, bold: &str| {
                let (m, min, max) = spread(here.iter().map(|r| r.figure(what) * scale));
                format!("{bold}{m:.digits$}{bold} ({min:.digits$} to {max:.digits$})")
            };
            let filled = match mbps {
                true => of("filled", link.bps * 1e-6, 1, ""),
                false => of("filled", 1.0, 3, "**"),
            };
            let _ = writeln!(
                out,
                "| {} | {} | {filled} | {} | {} | {:.2}{late} | {} |",
                link.name,
                sender.title,
                of("offered", 1.0, 3, ""),
                of("queue_s", 1e3, 1, ""),
                spread(here.iter().map(|r| r.late_mean_s * 1e3)).2,
                here.len()
            );
        }
    }
    out
}

/// Runs `transfer` with the server's address and the relay's. Its output has `bytes` and `seconds`.
fn relayed(
    on: &MeasuredLink,
    seed: u64,
    transfer: impl FnOnce(&str, &str) -> Result<Value, String>,
) -> Result<Ran, String> {
    let link = BottleneckLink::parse(on.spec, Path::new("")).map_err(|e| e.to_string())?;
    let rtt = link.forward.delay + link.reverse.delay;
    let config = |way: &LinkDirection| way.config(rtt, on.packet, false);
    let server = free_port()?;
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let relay = Relay::bind(any, server, &config(&link.forward), &config(&link.reverse), seed)
        .map_err(|e| e.to_string())?;
    let v = transfer(&server.to_string(), &relay.local_addr().to_string())?;
    let stats: RelayStats = relay.stop();
    let bytes = figure(&v, "bytes")?;
    let way = stats.forward;
    let payload = way.offered_bytes.saturating_sub(HEADERS * way.offered_packets);
    let filled = bytes * 8.0 / figure(&v, "seconds")? / on.bps;
    let offered = payload as f64 / bytes.max(1.0);
    let late = stats.lateness;
    let figures: Figures = [
        ("filled".to_string(), filled),
        ("offered".into(), offered),
        ("queue_s".into(), way.mean_wait_s()),
        ("late_p99_s".into(), late.p99_s),
    ]
    .into();
    let queue = way.mean_wait_s() * 1e3;
    let line = format!("{filled:.4} filled, offered {offered:.3}, queue {queue:.2} ms");
    Ok(Ran { figures, late_mean_s: late.mean_s, line })
}

/// Runs a program and parses its output.
pub fn json(program: &str, args: &[&str]) -> Result<Value, String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    serde_json::from_str(&text)
        .map_err(|_| format!("{program}: {text}{}", String::from_utf8_lossy(&out.stderr)))
}

/// A number of a program's output.
pub fn figure(v: &Value, key: &str) -> Result<f64, String> {
    v.get(key).and_then(Value::as_f64).ok_or_else(|| format!("no {key} in {v}"))
}

/// A port for a server, below the system's ephemeral range. So a program beside it does not get the same port by
/// chance.
fn free_port() -> Result<SocketAddr, String> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..4000 {
        let port = 21_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 4000;
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no port from 21000 to 24999 is free".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(protocol: &str, seed: u64, filled: f64, late_mean_s: f64) -> LedgerRow {
        let key = LedgerKey { protocol: protocol.into(), link: "10%".into(), seed, seconds: 12.0 };
        let figures = [("filled", filled), ("offered", 1.2), ("queue_s", 0.004)];
        let figures = figures.map(|(name, x)| (name.to_string(), x)).into();
        LedgerRow { commit: String::new(), key, attempt: 1, late_mean_s, figures, load: 0.0 }
    }

    #[test]
    fn late_run_counts_only_if_its_row_has_no_other() {
        let links = [super::super::link("10%", "20Mbit/s,25ms", 20e6, 1500, 12.0, "")];
        let how = HowSent::Hysteria { hinted: false };
        let senders = [sender("a", "A", how), sender("b", "B", how)];
        let rows = [
            row("a", 1, 0.8, 0.0),
            row("a", 2, 0.7, 0.0),
            row("a", 3, 0.1, 0.01),
            row("b", 1, 0.6, 0.01),
        ];
        let table = table(&rows, &links, &senders, 1.0, true);
        assert!(table.contains("| 10% | A | 15.0 (14.0 to 16.0) | 1.200"), "{table}");
        assert!(table.contains("| 10% | B | 12.0") && table.contains("(late)"), "{table}");
        assert_eq!(table.lines().count(), 2, "{table}");
    }
}
