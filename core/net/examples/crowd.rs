//! The memory and CPU cost of many idle connections on one socket: `cargo run --release -p narrows-net --example crowd
//! -- 10000` opens that many over loopback. The client is a process of its own, so that each end's cost is its own.

use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Endpoint, Options, block_on};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use std::error::Error;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Four times the interval of keep-alive packets (15 s): a shorter time may have none of them.
const IDLE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = args.first().map_or(Ok(10_000), |a| a.parse())?;
    let config = connection(Protocol::with_controller("bbr")?);
    match args.get(1) {
        None => server(count, config),
        Some(address) => client(count, config, address),
    }
}

fn server(count: usize, config: ConnectionConfig) -> Result<(), Box<dyn Error>> {
    let mut options = Options::server(new_key()?, Clients::Any, config);
    // All connections come from one address in a short time: remove the limits of handshakes.
    options.limits.connections_of_source = options.limits.connections;
    options.limits.handshake_rate = u32::MAX;
    options.limits.handshake_rate_of_source = u32::MAX;
    let server = Endpoint::bind("127.0.0.1:0".parse()?, options)?;
    let before = proc("statm", 1);
    let begin = Instant::now();
    let address = server.local_addr().to_string();
    let mut client =
        Command::new(std::env::current_exe()?).args([count.to_string(), address]).spawn()?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(block_on(server.accept())?);
    }
    println!("{count} connections in {:.1} s", begin.elapsed().as_secs_f64());
    measure("server", before, count);
    let open = server.connections();
    client.wait()?;
    println!("after a minute: {open} connections open");
    Ok(())
}

fn client(count: usize, config: ConnectionConfig, address: &str) -> Result<(), Box<dyn Error>> {
    let client =
        Endpoint::bind("127.0.0.1:0".parse()?, Options::client(new_key()?, config.clone()))?;
    let before = proc("statm", 1);
    let address = address.parse()?;
    let mut all = Vec::new();
    for _ in 0..count {
        let options = ConnectOptions::new(ServerKey::Any, config.clone());
        all.push(block_on(client.connect(address, options))?);
    }
    measure("client", before, count);
    // The server measures at the same time.
    sleep(Duration::from_secs(2));
    Ok(())
}

/// Prints this process's memory per connection and its CPU use while idle.
fn measure(end: &str, pages_before: u64, count: usize) {
    // Idle connections release memory.
    sleep(Duration::from_secs(5));
    let ticks = || proc("stat", 13) + proc("stat", 14);
    let began = Instant::now();
    let ticks_before = ticks();
    sleep(IDLE);
    let cpu = (ticks() - ticks_before) as f64 / began.elapsed().as_secs_f64();
    // Resident memory is counted in pages of 4096 bytes, CPU time in hundredths of a second.
    let bytes = proc("statm", 1).saturating_sub(pages_before) * 4096 / count.max(1) as u64;
    println!("{end}: {bytes} B a connection, idle {cpu:.2} % of a processor");
}

/// A number from `/proc/self`; zero on systems without it.
fn proc(file: &str, field: usize) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    text.split_whitespace().nth(field).and_then(|f| f.parse().ok()).unwrap_or(0)
}
