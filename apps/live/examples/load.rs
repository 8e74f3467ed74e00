//! CPU and memory that the page costs the command: `cargo run --release -p narrows-live --example load`.
//!
//! A hundred flows are sampled 60 times a second while one reader takes all of them, like a page that draws everything,
//! and another takes eight. Then an hour of updates (216,000) is written at full speed.

use narrows_live::LivePage;
use narrows_live::feed::history::Merge;
use narrows_live::feed::{Feed, LiveRun, RunDescription, TrackColumn, TrackKind};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FLOWS: usize = 100;
const COLUMNS: usize = 16;
const RATE: f64 = 60.0;
const SECONDS: f64 = 20.0;
const HOUR: i64 = 216_000;

fn run(feed: &Arc<Feed>) -> Arc<LiveRun> {
    let about =
        RunDescription { name: "load".into(), detail: String::new(), real: true, end_s: None };
    let Some(run) = feed.begin(about) else { panic!("a feed has room for a run") };
    for n in 0..FLOWS {
        let column =
            |_| TrackColumn { name: "cwnd", unit: "", meaning: String::new(), merge: Merge::Mean };
        run.track(TrackKind::Flow, &format!("main.{n}"), (0..COLUMNS).map(column).collect());
    }
    run
}

fn tell(run: &LiveRun, n: i64) {
    run.update(n * 16_667, |update| {
        for flow in 0..FLOWS {
            let base = (n % 1000) as f32 * 1.37 + flow as f32;
            let row: Vec<f32> = (0..COLUMNS).map(|c| base * (c as f32 + 0.31)).collect();
            update.row(flow, &row);
        }
    });
}

/// CPU share of a core for this many flows on the page, including the reader's part.
fn share(flows: &str) -> std::io::Result<(f64, f64)> {
    let feed = Feed::new("load");
    let live = LivePage::open(([127, 0, 0, 1], 0).into(), feed.clone(), None)?;
    let url = live.url();
    let (address, token) =
        url.trim_start_matches("http://").split_once("/?token=").unwrap_or_default();
    let run = run(&feed);
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /events?token={token}{flows} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let reader = std::thread::spawn(move || {
        let mut part = vec![0; 1 << 18];
        let mut bytes = 0;
        while let Ok(n @ 1..) = stream.read(&mut part) {
            bytes += n;
        }
        bytes
    });
    let begun = Instant::now();
    let before = processor_seconds();
    for n in 0..(SECONDS * RATE) as i64 {
        tell(&run, n);
        std::thread::sleep(
            Duration::from_secs_f64(n as f64 / RATE).saturating_sub(begun.elapsed()),
        );
    }
    let share = (processor_seconds() - before) / begun.elapsed().as_secs_f64();
    drop(live);
    let bytes = reader.join().unwrap_or(0);
    Ok((share, bytes as f64 / SECONDS))
}

/// CPU time of this process so far, s, from /proc in hundredths of a second.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Resident memory in MB.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|p| p.parse::<f64>().ok());
    pages.map_or(f64::NAN, |p| p * 4096e-6)
}

fn main() -> std::io::Result<()> {
    let eight = "&flows=0.1.2.3.4.5.6.7";
    for (name, flows) in [("100 flows", ""), ("8 of 100 flows", eight)] {
        let (share, rate) = share(flows)?;
        println!("{name}: {:.1}% of a core, {:.0} kB/s", share * 100.0, rate * 1e-3);
    }
    let feed = Feed::new("load");
    let run = run(&feed);
    let before = resident();
    let begun = Instant::now();
    for n in 0..HOUR {
        tell(&run, n);
        if n == HOUR / 100 || n == HOUR / 10 {
            println!("after {n} updates: {:.0} MB", resident() - before);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("after {HOUR} updates in {seconds:.0} s: {:.0} MB", resident() - before);
    Ok(())
}
