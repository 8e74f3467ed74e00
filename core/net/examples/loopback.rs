//! Throughput and CPU cost: `cargo run --release -p narrows-net --example loopback -- MB [PROTOCOL [CONNECTIONS]]`
//! sends MB megabytes over loopback, encrypted, from memory to memory, and prints the rate and the CPU seconds per
//! gigabyte of both sides together.

use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Endpoint, Options, block_on};
use narrows_transport::Protocol;
use narrows_transport::endpoint::{Clients, ServerKey};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let megabytes: usize = args.next().map_or(Ok(1000), |a| a.parse())?;
    let protocol: Protocol = args.next().unwrap_or("rrtp+cubic".into()).parse()?;
    let connections: usize = args.next().map_or(Ok(1), |a| a.parse())?;
    let label = protocol.label().to_string();
    let config = connection(protocol);
    let key = new_key()?;
    let public = *key.public();
    let address = "127.0.0.1:0".parse()?;
    let server = Endpoint::bind(address, Options::server(key, Clients::Any, config.clone()))?;
    let client = Endpoint::bind(address, Options::client(new_key()?, config.clone()))?;
    let each = megabytes * 1_000_000 / connections.max(1);
    let begin = Instant::now();
    let cpu = cpu_seconds();
    let total: usize = std::thread::scope(|scope| {
        let receivers: Vec<_> = (0..connections)
            .map(|_| {
                let server = &server;
                scope.spawn(move || {
                    block_on(async {
                        let connection = server.accept().await?;
                        let mut stream = connection.accept_uni().await?;
                        let mut buffer = vec![0; 256 << 10];
                        let mut got = 0;
                        loop {
                            match stream.receive(&mut buffer).await? {
                                0 => return Ok::<usize, narrows_net::Error>(got),
                                count => got += count,
                            }
                        }
                    })
                })
            })
            .collect();
        for _ in 0..connections {
            let options = ConnectOptions::new(ServerKey::Is(public), config.clone());
            let client = &client;
            let to = server.local_addr();
            scope.spawn(move || {
                block_on(async {
                    let connection = client.connect(to, options).await?;
                    let mut stream = connection.open_uni().await?;
                    let piece = vec![7; 256 << 10];
                    let mut left = each;
                    while left > 0 {
                        let part = piece.get(..left.min(piece.len())).unwrap_or_default();
                        stream.send_all(part).await?;
                        left -= part.len();
                    }
                    stream.arrived().await?;
                    println!("{:#?}", connection.stats());
                    Ok::<(), narrows_net::Error>(())
                })
                .unwrap_or_else(|why| eprintln!("{why}"));
            });
        }
        receivers.into_iter().map(|r| r.join().map_or(0, |got| got.unwrap_or(0))).sum()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    let gigabytes = total as f64 / 1e9;
    println!(
        "{label}: {gigabytes:.3} GB in {seconds:.2} s: {:.2} Gbit/s, {:.2} CPU s/GB",
        gigabytes * 8.0 / seconds,
        cpu / gigabytes
    );
    Ok(())
}

/// CPU time of this process so far, s: user and system, in the kernel's hundredths. Zero on systems without `/proc`.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
