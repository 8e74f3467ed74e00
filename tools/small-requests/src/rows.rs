//! The rows: what one operation is, and what it cost.

use crate::transport::{Connection, Endpoint, Result};
use nix::sys::resource::{UsageWho, getrusage};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long one turn of a row lasts, and what goes before it so that both ends are warm.
const TURN: Duration = Duration::from_millis(300);
const WARM: Duration = Duration::from_millis(60);
/// Bytes of a request and of its answer, and of a message.
const REQUEST: usize = 1024;
const MESSAGE: usize = 100;
/// Bytes of a bulk transfer: so often so many.
const PIECE: usize = 64 << 10;
const PIECES: usize = 2000;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Row {
    /// Requests with their answers, so many at once.
    Request(usize),
    /// Streams of one byte, each answered by another.
    Byte(usize),
    /// Messages, each answered by another.
    Message(usize),
    /// A handshake, and the connection's end.
    Handshake,
    /// 131 MB on one stream; per 64 KiB.
    Bulk,
}

pub const ROWS: [(&str, Row); 8] = [
    ("request", Row::Request(1)),
    ("requests-64", Row::Request(64)),
    ("byte", Row::Byte(1)),
    ("bytes-64", Row::Byte(64)),
    ("message", Row::Message(1)),
    ("messages-64", Row::Message(64)),
    ("handshake", Row::Handshake),
    ("bulk", Row::Bulk),
];

/// What one operation took, both ends together.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub cpu_us: f64,
    /// From its beginning to its end, the mean.
    pub latency_us: f64,
    pub switches: f64,
    /// Datagrams that the client sent; those of the server are about as many.
    pub datagrams: f64,
}

struct Usage {
    cpu_us: f64,
    switches: f64,
}

fn usage() -> Result<Usage> {
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let us = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e6 + t.tv_usec() as f64;
    Ok(Usage {
        cpu_us: us(used.user_time()) + us(used.system_time()),
        switches: (used.voluntary_context_switches() + used.involuntary_context_switches()) as f64,
    })
}

/// One turn of a row.
pub async fn measure<E: Endpoint>(client: &E, server: SocketAddr, row: Row) -> Result<Cost> {
    match row {
        Row::Handshake => handshakes(client, server).await,
        Row::Bulk => bulk(client, server).await,
        Row::Request(at_once) | Row::Byte(at_once) | Row::Message(at_once) => {
            let connection = client.connect(server).await?;
            in_parallel(&connection, row, at_once, WARM).await?;
            let before = usage()?;
            let sent = connection.datagrams();
            let times = in_parallel(&connection, row, at_once, TURN).await?;
            let cost = cost(&before, times, connection.datagrams() - sent);
            connection.close().await;
            cost
        }
    }
}

fn cost(before: &Usage, times: Vec<Duration>, datagrams: u64) -> Result<Cost> {
    let after = usage()?;
    if times.is_empty() {
        return Err("a turn without one operation".into());
    }
    let count = times.len() as f64;
    let latency: f64 = times.iter().map(Duration::as_secs_f64).sum();
    Ok(Cost {
        cpu_us: (after.cpu_us - before.cpu_us) / count,
        latency_us: latency * 1e6 / count,
        switches: (after.switches - before.switches) / count,
        datagrams: datagrams as f64 / count,
    })
}

/// So many tasks do the same again and again; how long each operation took.
async fn in_parallel<C: Connection>(
    connection: &C,
    row: Row,
    at_once: usize,
    lasts: Duration,
) -> Result<Vec<Duration>> {
    let until = Instant::now() + lasts;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let connection = connection.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let begin = Instant::now();
                once(&connection, row).await?;
                times.push(begin.elapsed());
            }
            Result::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.append(&mut done??);
    }
    Ok(all)
}

async fn once<C: Connection>(connection: &C, row: Row) -> Result<()> {
    let came = match row {
        Row::Request(_) => connection.request(&[5; REQUEST]).await? == REQUEST,
        Row::Byte(_) => {
            connection.send(b"?", 1).await?;
            connection.read().await? == 1
        }
        Row::Message(_) => {
            connection.send_message(&[5; MESSAGE])?;
            connection.message().await? == MESSAGE
        }
        Row::Handshake | Row::Bulk => true,
    };
    if came { Ok(()) } else { Err("not what was sent".into()) }
}

async fn handshakes<E: Endpoint>(client: &E, server: SocketAddr) -> Result<Cost> {
    client.connect(server).await?.close().await;
    let before = usage()?;
    let until = Instant::now() + TURN;
    let mut times = Vec::new();
    let mut datagrams = 0;
    while Instant::now() < until {
        let begin = Instant::now();
        let connection = client.connect(server).await?;
        times.push(begin.elapsed());
        datagrams += connection.datagrams();
        connection.close().await;
    }
    cost(&before, times, datagrams)
}

async fn bulk<E: Endpoint>(client: &E, server: SocketAddr) -> Result<Cost> {
    let connection = client.connect(server).await?;
    let piece = vec![5; PIECE];
    connection.send(&piece, PIECES / 10).await?;
    connection.read().await?;
    let before = usage()?;
    let sent = connection.datagrams();
    let begin = Instant::now();
    connection.send(&piece, PIECES).await?;
    connection.read().await?;
    let times = vec![begin.elapsed() / PIECES as u32; PIECES];
    let cost = cost(&before, times, connection.datagrams() - sent);
    connection.close().await;
    cost
}
