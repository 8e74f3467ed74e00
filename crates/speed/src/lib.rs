//! Memory to memory over `rrtp`: how fast, at what cost.
//!
//! The client opens a stream and says what it wants in 17 bytes: direction and cargo (1), how many
//! bytes (8; all ones for "until I end it"), how long messages are (8). Data follow on that stream
//! from whoever sends; messages go beside it, and when each has arrived or is lost, the stream ends. Whoever receives tells on the other half of the
//! stream, every 50 ms (each second where little comes) and at the end, what came: bytes in order
//! (8) and nanoseconds since the request (8). Goodput counts from the moment when the client began
//! to connect.

mod request;
mod result;
mod server;
mod sim_vs_real;
mod worker;

pub use result::SpeedResult;
pub use server::Server;
pub use sim_vs_real::{Observed, SimVsReal};

use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_net::clock::processor_seconds;
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{Clock, ConnectOptions, Endpoint, Error, Options, ReceiveStream, SendStream};
use narrows_record::Recorder;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use narrows_wire::Suite;
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;
use worker::{Count, Worker};

/// Bytes of a write, and of a read at most.
const BLOCK: usize = 256 << 10;
/// What is sent.
static DATA: [u8; BLOCK] = [0x5a; BLOCK];
const TALLY: usize = 16;
/// Connections that are opened at the same time: a server answers so many of one place.
const OPENING: usize = 64;
/// Longest message, bytes: what an endpoint takes unless configured otherwise. With its frame and seal it
/// fits into a datagram of Ethernet's size.
pub const MAX_MESSAGE_BYTES: usize = 1400;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A reliable stream.
    Stream,
    /// Unreliable messages of so many bytes, as fast as the controller permits. From the client
    /// only.
    Messages(u16),
}

/// When it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// When so many bytes of each connection arrived.
    Bytes(u64),
    /// So long after the client began to connect.
    Time(Duration),
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Speed {
    /// What paces the sender. The server's own is what it was started with.
    pub protocol: Protocol,
    /// What the sender is told of the path.
    pub hints: PathHints,
    /// Never faster than this.
    pub rate_limit: Option<narrows_base::Rate>,
    /// The cipher.
    pub suite: Suite,
    /// Connections at once.
    pub connections: usize,
    /// Who sends.
    pub direction: Direction,
    /// What.
    pub traffic: Traffic,
    /// How much.
    pub amount: Amount,
    /// What it is recorded by, if it is.
    pub recorder: Option<Arc<Recorder>>,
}

impl Speed {
    fn config(&self) -> ConnectionConfig {
        ConnectionConfig {
            hints: self.hints,
            rate_limit: self.rate_limit,
            sounds: self.direction == Direction::Up,
            ..connection(self.protocol.clone())
        }
    }

    /// Both ends in this process: a server at `listen`, the client connecting to `through` (a relay
    /// to the server) or to the server itself. Counts at the server without waiting for its word.
    ///
    /// # Errors
    /// As the driver says.
    pub fn local(
        &self,
        listen: SocketAddr,
        through: impl FnOnce(SocketAddr) -> Result<SocketAddr, Error>,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let tap = self.recorder.as_ref().map(|r| r.tap("server"));
        let server = Server::start(listen, new_key()?, Clients::Any, self.config(), tap)?;
        let to = through(server.local_addr())?;
        let key = server.key();
        self.run(to, ServerKey::Is(key), Some(&server), tell)
    }

    /// The client's side; `tell` hears about every tenth of a second how many seconds have passed
    /// and how many bytes have arrived, and says whether to go on. `counts` is the server, if it is in this process.
    ///
    /// # Errors
    /// As the driver says.
    pub fn run(
        &self,
        to: SocketAddr,
        server_key: ServerKey,
        counts: Option<&Server>,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let any: SocketAddr = if to.is_ipv6() {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        };
        let tap = self.recorder.as_ref().map(|r| r.tap("client"));
        let options = Options::client(new_key()?, self.config()).tapped(tap);
        let endpoint = Endpoint::bind(any, options)?;
        let options =
            ConnectOptions { suite: self.suite, ..ConnectOptions::new(server_key, self.config()) };
        let clock = Clock::new();
        let (began, cpu) = (clock.now(), processor_seconds());
        let shared: Vec<Arc<Count>> =
            (0..self.connections.max(1)).map(|_| Arc::default()).collect();
        let mut result = SpeedResult::default();
        let (stop, stopped) = watch::channel(false);
        let turns = Arc::new(Semaphore::new(OPENING));
        let speed = Arc::new(self.clone());
        let workers = shared.iter().map(|count| Worker {
            speed: speed.clone(),
            endpoint: endpoint.clone(),
            options: options.clone(),
            to,
            clock,
            turns: turns.clone(),
            count: count.clone(),
            stop: stopped.clone(),
        });
        let seen = || match counts {
            Some(server) if self.direction == Direction::Up => server.received(),
            _ => shared.iter().map(|c| c.bytes.load(Ordering::Relaxed)).sum(),
        };
        runtime().map_err(|e| Error::System(e.to_string()))?.block_on(async {
            let mut working: JoinSet<_> = workers.map(Worker::work).collect();
            let mut ended = Ok(());
            let mut note = |done: Result<_, _>| {
                ended = ended.clone().and(done.unwrap_or(Err(Error::Closed)));
            };
            loop {
                let passed = clock.now().since(began);
                let left = match self.amount {
                    Amount::Time(all) if passed >= all => break,
                    Amount::Time(all) => (all.as_secs_f64() - passed.as_secs_f64()).min(0.1),
                    Amount::Bytes(_) => 0.1,
                };
                if !tell(passed.as_secs_f64(), seen()) {
                    break;
                }
                let pause = tokio::time::sleep(std::time::Duration::from_secs_f64(left));
                tokio::select! {
                    done = working.join_next() => match done {
                        Some(done) => note(done),
                        None => break,
                    },
                    () = pause => {}
                }
            }
            result.seconds = clock.now().since(began).as_secs_f64();
            result.bytes = seen();
            result.cpu_seconds = processor_seconds() - cpu;
            let _ = stop.send(true);
            while let Some(done) = working.join_next().await {
                note(done);
            }
            ended
        })?;
        self.sum(&shared, counts, &mut result);
        endpoint.close(0, "");
        Ok(result)
    }
}

/// One thread for all connections of an end: the work between two waits is short.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// Writes so much.
async fn send_bytes(send: &mut SendStream, bytes: u64) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let n = left.min(BLOCK as u64) as usize;
        send.send_all(DATA.get(..n).unwrap_or_default()).await?;
        left -= n as u64;
        consume_budget().await;
    }
    Ok(())
}

/// Reads and forgets what there is: how many bytes, 0 at the end.
async fn receive_some(receive: &mut ReceiveStream) -> Result<usize, Error> {
    thread_local! {
        /// One for all connections, so that it stays in the processor's cache.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BLOCK]);
    }
    consume_budget().await;
    poll_fn(|context| BUFFER.with_borrow_mut(|b| receive.poll_receive(context, b))).await
}

#[cfg(test)]
mod tests;
