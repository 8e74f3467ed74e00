//! Measurement without a server of narrows: TCP handshakes show only the round-trip time.

use crate::failure::Failure;
use crate::terminal::{STOP, print, print_json};
use narrows_net::dial::{DialFailure, listed, tcp};
use narrows_probe::link_text::time;
use serde_json::json;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const HANDSHAKES: usize = 10;
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// Connects ten times to the first of a server's addresses that answers, and prints the round-trip times.
pub fn handshakes(servers: &[SocketAddr], as_json: bool) -> Result<(), Failure> {
    let server = answering(servers)?;
    let mut took = Vec::new();
    for _ in 0..HANDSHAKES {
        let begun = Instant::now();
        let connected = TcpStream::connect_timeout(&server, PATIENCE);
        let seconds = begun.elapsed().as_secs_f64();
        match connected {
            Ok(_) => took.push(seconds),
            // A refusal arrives after a round trip, too; other errors may be immediate.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => took.push(seconds),
            Err(e) if took.is_empty() => {
                return Err(Failure::Outside(format!("{server}: {}", tcp::brief(&e))));
            }
            Err(_) => {}
        }
        std::thread::sleep(PAUSE);
    }
    took.sort_by(f64::total_cmp);
    let at = |q: f64| took.get((q * (took.len() - 1) as f64) as usize).copied().unwrap_or(0.0);
    let min = at(0.0);
    let middle = at(0.5);
    let max = at(1.0);
    if as_json {
        return print_json(&json!({
            "handshakes": took.len(), "least_s": min, "median_s": middle, "longest_s": max,
        }));
    }
    print(&format!(
        "{} of {HANDSHAKES} TCP handshakes: {} at least, {} in the median, {} at most.\n\
         That is the round trip with what waits in queues, and all that handshakes show: rate, loss and \
         buffer take a narrows serve or narrows speed --serve at the other end.\n",
        took.len(),
        time(min),
        time(middle),
        time(max),
    ))
}

/// The address to measure. If none accepts a connection, a refusal is an answer, too.
fn answering(servers: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    if let [only] = servers {
        return Ok(*only);
    }
    match tcp::connect(servers, PATIENCE, || STOP.load(Ordering::SeqCst)) {
        Ok(connected) => Ok(connected.address),
        Err(DialFailure::Final(_)) => Err(Failure::Stopped("interrupted".into())),
        Err(DialFailure::All(failed)) => {
            let refusal =
                failed.iter().find(|one| one.cause.kind() == ErrorKind::ConnectionRefused);
            let line = || format!("no connection to any address ({})", listed(&failed, tcp::brief));
            refusal.map(|one| one.address).ok_or_else(|| Failure::Outside(line()))
        }
    }
}
