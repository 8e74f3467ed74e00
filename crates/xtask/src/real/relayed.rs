//! A transfer by a program of its own through a relay in this process.

use super::Ran;
use super::ledger::Figures;
use narrows_net::relay::{Relay, RelayStats};
use narrows_scenario::BottleneckLink;
use narrows_scenario::link_direction::LinkDirection;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

/// Datagrams' bytes of IP and UDP headers.
const HEADERS: u64 = 28;

/// Runs `transfer` with the server's address and the relay's. Its output has `bytes` and `seconds`.
pub fn relayed(
    spec: &str,
    link_bps: f64,
    seed: u64,
    transfer: impl FnOnce(&str, &str) -> Result<Value, String>,
) -> Result<Ran, String> {
    let link = BottleneckLink::parse(spec, Path::new("")).map_err(|e| e.to_string())?;
    let rtt = link.forward.delay + link.back.delay;
    let config = |way: &LinkDirection| way.config(rtt, 1500, false);
    let server = free_port()?;
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let relay = Relay::bind(any, server, &config(&link.forward), &config(&link.back), seed)
        .map_err(|e| e.to_string())?;
    let v = transfer(&server.to_string(), &relay.local_addr().to_string())?;
    let stats: RelayStats = relay.stop();
    let bytes = figure(&v, "bytes")?;
    let way = stats.there;
    let payload = way.offered_bytes.saturating_sub(HEADERS * way.offered_packets);
    let filled = bytes * 8.0 / figure(&v, "seconds")? / link_bps;
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
