//! The other end of a speed measurement: receives or sends as clients request. Each client is a task of one thread.

use super::measurement::for_speed;
use super::request::{MeasurementKind, REQUEST, SpeedRequest};
use super::transfer::{TALLY, receive_some, runtime, send_bytes};
use narrows_base::Time;
use narrows_net::probe::{self, ProbeGate};
use narrows_net::tap::Tap;
use narrows_net::{Clock, Connection, Driver, Endpoint, Error, Options, ReceiveStream, SendStream};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS};
use narrows_transport::endpoint::Clients;
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::task::coop::consume_budget;

/// Interval between two tallies, ns, if [`TALLY_BYTES`] arrived since the last.
const TALLY_EVERY: u64 = 50_000_000;
const TALLY_BYTES: u64 = 128 << 10;
/// Interval in any case, ns: on a slow link, more frequent tallies would take a tenth of the rate.
const TALLY_AT_LAST: u64 = 1_000_000_000;
/// Connections that are served at once.
const MAX_STREAMS: usize = 16_384;

/// A running server. Dropping it ends it.
pub struct SpeedServer {
    endpoint: Endpoint,
    key: [u8; 32],
    counts: Arc<ServerCounts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ServerCounts {
    /// Bytes received, by connection in the order of acceptance; of the first [`MAX_STREAMS`].
    received: Mutex<Vec<Arc<AtomicU64>>>,
    serving: AtomicUsize,
}

impl SpeedServer {
    /// Binds and serves on threads of its own; `tap` watches.
    ///
    /// # Errors
    /// The address cannot be bound, or the system refuses threads.
    pub fn start(
        listen: SocketAddr,
        key: StaticKey,
        clients: Clients,
        connection: ConnectionConfig,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<SpeedServer, Error> {
        let public = *key.public();
        let connection = ConnectionConfig { paths: MAX_PATHS, ..for_speed(connection) };
        let connection = probe::answering(connection)
            .map_err(|why| Error::Link { place: "probe".into(), why })?;
        let options =
            Options::server(key, clients, connection).tapped(tap).driven_by(Driver::Thread);
        let endpoint = Endpoint::bind(listen, options)?;
        let counts = Arc::<ServerCounts>::default();
        let accepting = endpoint.clone();
        let telling = counts.clone();
        let system = |e: std::io::Error| Error::System(e.into());
        let runtime = runtime().map_err(system)?;
        let thread = std::thread::Builder::new()
            .name("narrows-speed".into())
            .spawn(move || runtime.block_on(accept(&accepting, &telling)))
            .map_err(system)?;
        Ok(SpeedServer { endpoint, key: public, counts, thread: Some(thread) })
    }

    /// Address on which the server listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }
    /// Public key of the server.
    pub fn key(&self) -> [u8; 32] {
        self.key
    }
    /// Bytes received so far, all connections together.
    pub fn received(&self) -> u64 {
        self.received_each().iter().sum()
    }
    /// The same by connection.
    pub fn received_each(&self) -> Vec<u64> {
        let list = self.counts.received.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().map(|c| c.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for SpeedServer {
    fn drop(&mut self) {
        self.endpoint.close(0, "");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections until the endpoint is closed. Those in service then end with the runtime.
async fn accept(endpoint: &Endpoint, counts: &Arc<ServerCounts>) {
    let probes = ProbeGate::default();
    while let Ok(connection) = endpoint.accept().await {
        if probe::is_probe(&connection).await {
            probe::answer(connection, &probes);
            continue;
        }
        if probe::is_misused(&connection) {
            connection.close(257, "that controller is for probes");
            continue;
        }
        if counts.serving.fetch_add(1, Ordering::AcqRel) >= MAX_STREAMS {
            counts.serving.fetch_sub(1, Ordering::AcqRel);
            connection.close(256, "this server measures as many connections as it can");
            continue;
        }
        let counted = Arc::<AtomicU64>::default();
        {
            let mut list = counts.received.lock().unwrap_or_else(PoisonError::into_inner);
            // A measurement opens fewer connections; the limit bounds the memory of a long-running server.
            if list.len() < MAX_STREAMS {
                list.push(counted.clone());
            }
        }
        let telling = counts.clone();
        tokio::spawn(async move {
            // The client reports errors, so they are ignored here.
            let _ = serve(&connection, &counted).await;
            telling.serving.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

async fn serve(connection: &Connection, counted: &AtomicU64) -> Result<(), Error> {
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut request = [0; REQUEST];
    let mut have = 0;
    while let Some(rest) = request.get_mut(have..).filter(|r| !r.is_empty()) {
        match receive.receive(rest).await? {
            0 => return Ok(()),
            n => have += n,
        }
    }
    let Some(request) = SpeedRequest::read(&request) else {
        connection.close(257, "that is no request of narrows speed");
        return Ok(());
    };
    let mut tally = ServedTally::new(&mut send, counted);
    match request.kind {
        MeasurementKind::Up => up(&mut receive, &mut tally).await?,
        MeasurementKind::Down => return down(&mut send, request.bytes).await,
        MeasurementKind::Messages => messages(connection, &mut receive, &mut tally).await?,
    }
    tally.tell().await?;
    send.arrived().await
}

async fn up(receive: &mut ReceiveStream, tally: &mut ServedTally<'_>) -> Result<(), Error> {
    loop {
        match receive_some(receive).await? {
            0 => return Ok(()),
            n => tally.add(n).await?,
        }
    }
}

async fn down(send: &mut SendStream, bytes: u64) -> Result<(), Error> {
    send_bytes(send, bytes).await?;
    send.arrived().await
}

/// Receives messages until the client ends the stream of its request, after its last message.
async fn messages(
    connection: &Connection,
    receive: &mut ReceiveStream,
    tally: &mut ServedTally<'_>,
) -> Result<(), Error> {
    let patience = std::time::Duration::from_millis(100);
    loop {
        let message = tokio::time::timeout(patience, connection.receive_message());
        tokio::select! {
            // Messages that arrived before the end count.
            biased;
            message_or_end = message => match message_or_end {
                Ok(message) => tally.add(message?.len()).await?,
                Err(_) => tally.tell().await?,
            },
            rest = receive_some(receive) => {
                if rest? == 0 {
                    return Ok(());
                }
            }
        }
        consume_budget().await;
    }
}

/// Counts bytes, and sends the client tallies.
struct ServedTally<'a> {
    send: &'a mut SendStream,
    counted: &'a AtomicU64,
    clock: Clock,
    sent_at: Time,
    /// Bytes since the last tally.
    since: u64,
}

impl<'a> ServedTally<'a> {
    fn new(send: &'a mut SendStream, counted: &'a AtomicU64) -> ServedTally<'a> {
        ServedTally { send, counted, clock: Clock::new(), sent_at: Time::ZERO, since: 0 }
    }
    async fn add(&mut self, bytes: usize) -> Result<(), Error> {
        self.counted.fetch_add(bytes as u64, Ordering::Relaxed);
        self.since += bytes as u64;
        let passed = self.clock.now().since(self.sent_at).as_nanos();
        if passed >= TALLY_AT_LAST || passed >= TALLY_EVERY && self.since >= TALLY_BYTES {
            self.tell().await?;
        }
        Ok(())
    }
    async fn tell(&mut self) -> Result<(), Error> {
        self.sent_at = self.clock.now();
        self.since = 0;
        let mut tally = [0; TALLY];
        tally[..8].copy_from_slice(&self.counted.load(Ordering::Relaxed).to_be_bytes());
        tally[8..].copy_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        self.send.send_all(&tally).await
    }
}
