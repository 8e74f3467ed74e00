//! What small things cost with rrtp and with quinn, in one process, in turns.
//!
//! Each transport has a server and a client, each with a thread and a runtime of its own, as two processes would
//! have. They take turns row by row, so that whatever else happens on the machine happens to all. Prints a table of
//! medians, and at last how much memory an idle connection holds, for which every transport gets a process of its own
//! (`--idle NAME`).

mod quinn_side;
mod rows;
mod rrtp;
mod table;
mod transport;

use rows::{Cost, ROWS, Row};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use transport::{Endpoint, Result, serve};

/// Connections that are idle.
const IDLE: usize = 400;

/// A transport that waits for its turns.
struct Contestant {
    name: &'static str,
    row: Sender<Row>,
    cost: Receiver<Result<Cost>>,
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Starts a server in a thread of its own.
fn server<E: Endpoint>(name: &str) -> Result<(SocketAddr, E::Identity)> {
    let (tell, told) = channel();
    let thread = std::thread::Builder::new().name(format!("{name} server"));
    thread.spawn(move || -> Result<()> {
        runtime()?.block_on(async {
            let (endpoint, address, identity) = E::server()?;
            tell.send((address, identity))?;
            serve(endpoint).await
        })
    })?;
    Ok(told.recv()?)
}

fn contestant<E: Endpoint>(name: &'static str) -> Result<Contestant> {
    let (address, identity) = server::<E>(name)?;
    let (row, rows) = channel();
    let (told, cost) = channel();
    let thread = std::thread::Builder::new().name(format!("{name} client"));
    thread.spawn(move || -> Result<()> {
        let runtime = runtime()?;
        let client = runtime.block_on(async { E::client(identity) })?;
        while let Ok(row) = rows.recv() {
            told.send(runtime.block_on(rows::measure(&client, address, row)))?;
        }
        Ok(())
    })?;
    Ok(Contestant { name, row, cost })
}

/// Resident memory of this process, bytes.
fn resident() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split_whitespace().nth(1).ok_or("statm is empty")?.parse()?;
    Ok(pages * 4096.0)
}

/// Bytes that one idle connection holds, both ends together.
fn idle<E: Endpoint>(name: &str) -> Result<f64> {
    let (address, identity) = server::<E>(name)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let client = E::client(identity)?;
        let mut held = Vec::new();
        // The first ones grow what all share.
        for _ in 0..IDLE / 4 {
            held.push(client.connect(address).await?);
        }
        let before = resident()?;
        for _ in 0..IDLE {
            held.push(client.connect(address).await?);
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        Ok((resident()? - before) / IDLE as f64)
    })
}

fn idle_of(name: &str) -> Result<f64> {
    match name {
        "rrtp" => idle::<rrtp::Rrtp<true>>(name),
        "rrtp-thread" => idle::<rrtp::Rrtp<false>>(name),
        "quinn" => idle::<quinn_side::Quinn>(name),
        other => Err(format!("no transport '{other}'").into()),
    }
}

fn main() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "two providers")?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["--idle", name] = args[..] {
        println!("{}", idle_of(name)?);
        return Ok(());
    }
    let (turns, only): (usize, Vec<&str>) = match args.split_first() {
        Some((turns, rows)) => (turns.parse()?, rows.to_vec()),
        None => return Err("small-requests TURNS [ROW…], or small-requests --idle NAME".into()),
    };
    let all = [
        contestant::<rrtp::Rrtp<true>>("rrtp")?,
        contestant::<rrtp::Rrtp<false>>("rrtp-thread")?,
        contestant::<quinn_side::Quinn>("quinn")?,
    ];
    let mut costs: BTreeMap<(&str, &str), Vec<Cost>> = BTreeMap::new();
    for turn in 0..turns {
        for (name, row) in ROWS.iter().filter(|r| only.is_empty() || only.contains(&r.0)) {
            // Each is first as often as the others.
            for place in 0..all.len() {
                let who = &all[(turn + place) % all.len()];
                who.row.send(*row)?;
                costs.entry((*name, who.name)).or_default().push(who.cost.recv()??);
            }
        }
    }
    table::print(&costs);
    if only.is_empty() {
        for who in &all {
            let out = Command::new(std::env::current_exe()?).args(["--idle", who.name]).output()?;
            let text = String::from_utf8_lossy(&out.stdout);
            let bytes: f64 = text.trim().parse().map_err(|_| format!("idle: {out:?}"))?;
            println!("idle, {}: {:.0} kB", who.name, bytes / 1000.0);
        }
    }
    std::process::exit(0);
}
