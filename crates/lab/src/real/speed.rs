//! Memory to memory over `rrtp`: how fast, at what cost.
//!
//! The client opens a stream and says what it wants in 17 bytes: direction and cargo (1), how many
//! bytes (8; all ones for "until I end it"), how long messages are (8). Data follow on that stream
//! from whoever sends; messages go beside it. Whoever receives tells on the other half of the
//! stream, every 50 ms (each second where little comes) and at the end, what came: bytes in order
//! (8) and nanoseconds since the request (8). Goodput counts from the moment when the client began
//! to connect.

mod request;
mod server;

pub use server::Server;

use super::record::Recorder;
use narrows_base::{Duration, Time};
use narrows_control::Profile;
use narrows_drive::clock::processor_seconds;
use narrows_drive::endpoint::{connection, new_key};
use narrows_drive::{Clock, ConnectOptions, Connection, Endpoint, Error, Options, block_on};
use narrows_drive::{ReceiveStream, SendStream, block_on_for};
use narrows_flow::Protocol;
use narrows_flow::connection::{ConnectionConfig, Stats};
use narrows_flow::port::{Clients, ServerKey};
use narrows_wire::Suite;
use request::{Kind, Request};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a write.
const BLOCK: usize = 256 << 10;
const TALLY: usize = 16;
/// Longest message, bytes: with its frame and seal in a datagram of 1200.
pub const LONGEST: usize = 1150;

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
pub enum Cargo {
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
    pub profile: Profile,
    /// Never faster than this.
    pub rate_limit: Option<narrows_base::Rate>,
    /// The cipher.
    pub suite: Suite,
    /// Connections at once.
    pub connections: usize,
    /// Who sends.
    pub direction: Direction,
    /// What.
    pub cargo: Cargo,
    /// How much.
    pub amount: Amount,
    /// What it is recorded by, if it is.
    pub recorder: Option<Arc<Recorder>>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct SpeedResult {
    /// Application bytes that arrived, in order where they are a stream.
    pub bytes: u64,
    /// From the beginning to connect to the end, s.
    pub seconds: f64,
    /// From the beginning to connect to the keys, s; mean over connections.
    pub handshake_s: f64,
    /// Bytes of each connection.
    pub per_connection: Vec<u64>,
    /// The client's figures, added up where they add, else of the first connection.
    pub stats: Stats,
    /// Mean round-trip time over the samples of all senders at this end, s; 0 without any.
    pub mean_rtt_s: f64,
    /// Processor time of this process over the measurement, s.
    pub cpu_seconds: f64,
    /// Messages handed over, where messages are sent.
    pub messages: u64,
}

impl SpeedResult {
    /// Application bits per second.
    pub fn goodput_bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

impl Speed {
    fn config(&self) -> ConnectionConfig {
        ConnectionConfig {
            profile: self.profile,
            rate_limit: self.rate_limit,
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
        let stop = Arc::new(AtomicBool::new(false));
        let mut result = SpeedResult::default();
        std::thread::scope(|scope| -> Result<(), Error> {
            let workers: Vec<_> = shared
                .iter()
                .map(|count| {
                    let worker = Worker {
                        speed: self,
                        endpoint: &endpoint,
                        options: options.clone(),
                        to,
                        clock,
                        began,
                        count: count.clone(),
                        stop: stop.clone(),
                    };
                    scope.spawn(move || worker.work())
                })
                .collect();
            let seen = || match counts {
                Some(server) if self.direction == Direction::Up => server.received(),
                _ => shared.iter().map(|c| c.bytes.load(Ordering::Relaxed)).sum(),
            };
            loop {
                let passed = clock.now().since(began);
                let left = match self.amount {
                    Amount::Time(all) if passed >= all => break,
                    Amount::Time(all) => (all.as_secs_f64() - passed.as_secs_f64()).min(0.1),
                    Amount::Bytes(_) if workers.iter().all(|w| w.is_finished()) => break,
                    Amount::Bytes(_) => 0.02,
                };
                if workers.iter().all(|w| w.is_finished()) {
                    break;
                }
                if !tell(passed.as_secs_f64(), seen()) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_secs_f64(left.max(1e-4)));
            }
            result.seconds = clock.now().since(began).as_secs_f64();
            result.bytes = seen();
            result.cpu_seconds = processor_seconds() - cpu;
            stop.store(true, Ordering::Release);
            let ended = workers.into_iter().map(|w| w.join().unwrap_or(Err(Error::Closed)));
            ended.into_iter().collect::<Result<Vec<()>, Error>>().map(drop)
        })?;
        self.sum(&shared, counts, &mut result);
        endpoint.close(0, "");
        Ok(result)
    }

    fn sum(&self, shared: &[Arc<Count>], counts: Option<&Server>, result: &mut SpeedResult) {
        let mut rtt = (0.0, 0u64);
        for count in shared {
            result.handshake_s += count.handshake_ns.load(Ordering::Relaxed) as f64 * 1e-9;
            result.messages += count.messages.load(Ordering::Relaxed);
            let stats = count.stats.lock().map_or_else(|e| *e.into_inner(), |s| *s);
            rtt = (rtt.0 + stats.rtt_sum.as_secs_f64(), rtt.1 + stats.rtt_samples);
            add(&mut result.stats, &stats);
        }
        result.handshake_s /= shared.len() as f64;
        result.mean_rtt_s = if rtt.1 > 0 { rtt.0 / rtt.1 as f64 } else { 0.0 };
        result.per_connection = match counts {
            Some(server) if self.direction == Direction::Up => server.received_each(),
            _ => shared.iter().map(|c| c.bytes.load(Ordering::Relaxed)).collect(),
        };
        // A server in this process is told of all before the last worker ends.
        if matches!(self.amount, Amount::Bytes(_)) {
            result.bytes = result.per_connection.iter().sum();
        }
    }
}

fn add(sum: &mut Stats, s: &Stats) {
    if sum.bytes_sent == 0 {
        *sum = *s;
        return;
    }
    let (a, b) = (&mut sum.counters, &s.counters);
    a.sent += b.sent;
    a.lost += b.lost;
    a.retransmissions += b.retransmissions;
    a.timeouts += b.timeouts;
    a.episodes += b.episodes;
    a.marks += b.marks;
    a.expired += b.expired;
    sum.bytes_sent += s.bytes_sent;
    sum.bytes_received += s.bytes_received;
    sum.refused += s.refused;
    sum.radio_losses += s.radio_losses;
}

/// What a worker tells while it works.
#[derive(Default)]
struct Count {
    bytes: AtomicU64,
    handshake_ns: AtomicU64,
    messages: AtomicU64,
    stats: std::sync::Mutex<Stats>,
}

/// One connection at the client.
struct Worker<'a> {
    speed: &'a Speed,
    endpoint: &'a Endpoint,
    options: ConnectOptions,
    to: SocketAddr,
    clock: Clock,
    began: Time,
    count: Arc<Count>,
    stop: Arc<AtomicBool>,
}

impl Worker<'_> {
    fn work(self) -> Result<(), Error> {
        let patience = match self.speed.amount {
            Amount::Time(all) => all.min(self.options.patience),
            Amount::Bytes(_) => self.options.patience,
        };
        let options = ConnectOptions { patience, ..self.options.clone() };
        let connection = block_on(self.endpoint.connect(self.to, options))?;
        let opened = self.clock.now().since(self.began);
        self.count.handshake_ns.store(opened.as_nanos(), Ordering::Relaxed);
        let done = self.transfer(&connection);
        if let Ok(mut stats) = self.count.stats.lock() {
            *stats = connection.stats();
        }
        connection.close(0, "");
        // A measurement that was stopped ends in the middle of everything.
        done.or_else(|e| if self.stopped() { Ok(()) } else { Err(e) })
    }

    fn transfer(&self, connection: &Connection) -> Result<(), Error> {
        let (mut send, receive) = block_on(connection.open_bi())?;
        let bytes = match self.speed.amount {
            Amount::Bytes(n) => n,
            Amount::Time(_) => u64::MAX,
        };
        let request = match (self.speed.direction, self.speed.cargo) {
            (Direction::Up, Cargo::Stream) => Request { kind: Kind::Up, bytes, length: 0 },
            (Direction::Down, _) => Request { kind: Kind::Down, bytes, length: 0 },
            (Direction::Up, Cargo::Messages(length)) => {
                Request { kind: Kind::Messages, bytes, length: u64::from(length) }
            }
        };
        block_on(send.send_all(&request.bytes()))?;
        let mut tallies = Tallies { receive, pending: Vec::new(), count: &self.count };
        match request.kind {
            Kind::Up => self.up(&mut send, &mut tallies, bytes),
            Kind::Down => self.down(&mut tallies.receive),
            Kind::Messages => {
                self.messages(connection, &mut tallies, request.length as usize, bytes)
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for something, but not longer than the measurement lasts.
    fn until_stopped<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        let mut what = std::pin::pin!(what);
        loop {
            let done = block_on_for(std::time::Duration::from_millis(20), what.as_mut());
            if done.is_some() || self.stopped() {
                return done;
            }
        }
    }

    fn up(
        &self,
        send: &mut SendStream,
        tallies: &mut Tallies<'_>,
        bytes: u64,
    ) -> Result<(), Error> {
        let block = vec![0x5a; BLOCK];
        let mut left = bytes;
        while left > 0 && !self.stopped() {
            let n = left.min(BLOCK as u64) as usize;
            match self.until_stopped(send.send_all(block.get(..n).unwrap_or_default())) {
                Some(done) => done?,
                None => return Ok(()),
            }
            left -= n as u64;
            tallies.hear(std::time::Duration::ZERO)?;
        }
        send.finish()?;
        while !self.stopped() && tallies.hear(std::time::Duration::from_millis(20))? {}
        Ok(())
    }

    fn down(&self, receive: &mut ReceiveStream) -> Result<(), Error> {
        let mut buffer = vec![0; BLOCK];
        while let Some(read) = self.until_stopped(receive.receive(&mut buffer)) {
            match read? {
                0 => break,
                n => self.count.bytes.fetch_add(n as u64, Ordering::Relaxed),
            };
        }
        Ok(())
    }

    fn messages(
        &self,
        connection: &Connection,
        tallies: &mut Tallies<'_>,
        length: usize,
        bytes: u64,
    ) -> Result<(), Error> {
        let mut message = vec![0x5a; length.max(1)];
        let mut left = bytes;
        while left > 0 && !self.stopped() {
            match connection.send_message(&message, Duration::ZERO) {
                Ok(()) => {
                    let number = self.count.messages.fetch_add(1, Ordering::Relaxed);
                    for (byte, digit) in message.iter_mut().zip(number.to_be_bytes()) {
                        *byte = digit;
                    }
                    left = left.saturating_sub(message.len() as u64);
                }
                // As many wait as may: the controller is slower than this loop.
                Err(Error::Message) if message.len() <= LONGEST => {
                    tallies.hear(std::time::Duration::from_micros(500))?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// What the receiver tells.
struct Tallies<'a> {
    receive: ReceiveStream,
    /// A part of one.
    pending: Vec<u8>,
    count: &'a Count,
}

impl Tallies<'_> {
    /// Waits so long for more; false at their end.
    fn hear(&mut self, most: std::time::Duration) -> Result<bool, Error> {
        let mut buffer = [0; 64 * TALLY];
        let Some(read) = block_on_for(most, self.receive.receive(&mut buffer)) else {
            return Ok(true);
        };
        let n = read?;
        self.pending.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let whole = self.pending.len() - self.pending.len() % TALLY;
        for tally in self.pending.drain(..whole).as_slice().chunks_exact(TALLY) {
            if let Some(Ok(bytes)) = tally.get(..8).map(<[u8; 8]>::try_from) {
                self.count.bytes.store(u64::from_be_bytes(bytes), Ordering::Relaxed);
            }
        }
        Ok(n > 0)
    }
}
