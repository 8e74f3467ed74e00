//! The memory and CPU cost of many idle connections on one socket: `cargo run --release -p narrows-net --example crowd
//! -- 10000` opens that many over loopback, with both ends in this process.

use narrows_base::Spec;
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Endpoint, Options, block_on};
use narrows_transport::endpoint::{Clients, ServerKey};
use narrows_transport::{Preset, Protocol};
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(10_000), |a| a.parse())?;
    let config = connection(Protocol::read(&Spec::named("rrtp+bbr"), Preset::Rfc, 1500)?);
    let key = new_key()?;
    let expected = ServerKey::Is(*key.public());
    let address = "127.0.0.1:0".parse()?;
    let mut options = Options::server(key, Clients::Any, config.clone());
    // All come from one address, as fast as they can.
    options.limits.connections_of_source = options.limits.connections;
    options.limits.handshake_rate = u32::MAX;
    options.limits.handshake_rate_of_source = u32::MAX;
    let server = Endpoint::bind(address, options)?;
    let client = Endpoint::bind(address, Options::client(new_key()?, config.clone()))?;
    let (before, begin) = (proc("statm", 1), Instant::now());
    let mut all = Vec::new();
    for _ in 0..count {
        let options = ConnectOptions::new(expected, config.clone());
        all.push(block_on(client.connect(server.local_addr(), options))?);
        all.push(block_on(server.accept())?);
    }
    // Resident memory is counted in pages of 4096 bytes.
    let bytes = (proc("statm", 1) - before) * 4096 / all.len().max(1) as u64;
    println!(
        "{count} connections in {:.1} s, {bytes} B at each end",
        begin.elapsed().as_secs_f64()
    );
    sleep(Duration::from_secs(2));
    let ticks = proc("stat", 13) + proc("stat", 14);
    sleep(Duration::from_secs(5));
    let ticks = proc("stat", 13) + proc("stat", 14) - ticks;
    println!("idle, both ends: {:.1} % of a processor", ticks as f64 / 5.0);
    let begin = Instant::now();
    drop(all);
    while client.connections() + server.connections() > 0 {
        sleep(Duration::from_millis(10));
    }
    println!("closed in {:.2} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// A number out of `/proc/self`; zero where there is none.
fn proc(file: &str, field: usize) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    text.split_whitespace().nth(field).and_then(|f| f.parse().ok()).unwrap_or(0)
}
