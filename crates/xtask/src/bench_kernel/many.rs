//! Very many connections at once.

use super::LoadedController;
use narrows_base::{Duration, Rate};
use narrows_emulator::{EmulatedLink, LinkOptions, Namespace};
use narrows_kernel::status::DecidedBy;
use narrows_link::LinkConfig;
use narrows_link::{QueueConfig, QueueLimit};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

const CONNECTIONS: usize = 1000;
const SECONDS: f64 = 12.0;
/// Threads that make them.
const CONNECTERS: usize = 25;
/// Seconds over which the transfers begin, one after another.
const BEGIN: f64 = 4.0;

/// 1,000 connections share a link.
pub fn section() -> Result<String, String> {
    let within = |e: narrows_emulator::Error| e.to_string();
    let text = |e: std::io::Error| e.to_string();
    let limits = getrlimit(Resource::Nofile);
    let more = Rlimit { current: limits.maximum, ..limits };
    setrlimit(Resource::Nofile, more).map_err(|e| e.to_string())?;
    let (a, b) = (Namespace::create("a").map_err(within)?, Namespace::create("b").map_err(within)?);
    let mut way = LinkConfig::plain(Rate::from_bps(200_000_000), Duration::from_millis(50));
    way.queue = QueueConfig { limit: QueueLimit::Bytes(2_500_000), aqm: None };
    let link = EmulatedLink::between(&a, &b, LinkOptions::new(way.clone(), way)).map_err(within)?;
    let loaded = LoadedController::load("rrtp")?;
    let to = (link.b().addresses[0], 0);
    let listener = b.enter(|| TcpListener::bind(to)).map_err(within)?.map_err(text)?;
    let to = listener.local_addr().map_err(text)?;
    let connect = || -> std::io::Result<Vec<TcpStream>> {
        (0..CONNECTIONS / CONNECTERS)
            .map(|_| {
                let near = TcpStream::connect(to)?;
                rustix::net::sockopt::set_tcp_congestion(&near, &loaded.name)?;
                near.set_nonblocking(true)?;
                Ok(near)
            })
            .collect()
    };
    let accept = || -> std::io::Result<Vec<TcpStream>> {
        (0..CONNECTIONS)
            .map(|_| {
                let far = listener.accept()?.0;
                far.set_nonblocking(true)?;
                Ok(far)
            })
            .collect()
    };
    let (near, far) = std::thread::scope(|scope| -> Result<_, String> {
        let far = scope.spawn(accept);
        let near: Vec<_> = (0..CONNECTERS).map(|_| scope.spawn(|| a.enter(connect))).collect();
        let mut all = Vec::new();
        for thread in near {
            let connected = thread.join().map_err(|_| "a thread panicked")?;
            all.extend(connected.map_err(within)?.map_err(text)?);
        }
        let far = far.join().map_err(|_| "a thread panicked")?.map_err(text)?;
        Ok((all, far))
    })?;
    let mut ends: Vec<_> =
        near.into_iter().zip(far).map(|(near, far)| (near, far, 0_u64)).collect();
    let begun = Instant::now();
    let (data, mut buffer) = (vec![0x6e; 1 << 15], vec![0; 1 << 18]);
    while begun.elapsed().as_secs_f64() < SECONDS {
        let begin = (begun.elapsed().as_secs_f64() / BEGIN * CONNECTIONS as f64) as usize;
        for (n, (near, far, bytes)) in ends.iter_mut().enumerate() {
            if n < begin {
                let _ = near.write(&data);
            }
            while let Ok(n @ 1..) = far.read(&mut buffer) {
                *bytes += n as u64;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let status = loaded.agent.status();
    let s = &status.statistics;
    let by_it =
        |c: &&narrows_kernel::status::ConnectionStatus| c.decided_by == DecidedBy::Controlled;
    let all: u64 = ends.iter().map(|e| e.2).sum();
    Ok(format!(
        "{CONNECTIONS} connections under `rrtp` on one link of 200 Mbit/s, 50 ms, 2.5 MB of queue, for {SECONDS} s, begun within {BEGIN} s: {:.0} \
         Mbit/s, {} of them decided by the controller at the end, {} without a byte; {} records ({} lost), {} fallbacks, answers p50 {:.2} \
         ms, p99 {:.2} ms; {:.0}% of a core.\n",
        all as f64 * 8e-6 / seconds,
        status.connections.iter().filter(by_it).count(),
        ends.iter().filter(|e| e.2 == 0).count(),
        s.records(),
        status.lost_records,
        status.fallbacks,
        s.delay_s(0.5) * 1e3,
        s.delay_s(0.99) * 1e3,
        s.cpu_s() / seconds * 100.0
    ))
}
