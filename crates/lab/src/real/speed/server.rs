//! The other end of a speed measurement: receives or sends what clients ask for.

use super::request::{Kind, REQUEST, Request};
use super::{BLOCK, TALLY};
use narrows_base::Time;
use narrows_drive::tap::Tap;
use narrows_drive::{Clock, Connection, Endpoint, Error, Options, block_on, block_on_for};
use narrows_drive::{ReceiveStream, SendStream};
use narrows_flow::connection::ConnectionConfig;
use narrows_flow::port::Clients;
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Between two tallies, ns, where so many bytes came meanwhile …
const TALLY_EVERY: u64 = 50_000_000;
const TALLY_BYTES: u64 = 128 << 10;
/// … and in any case: on a slow link the reports of tallies would take a tenth of it.
const TALLY_AT_LAST: u64 = 1_000_000_000;
/// Connections that are served at once; each has a thread.
const MOST: usize = 512;

/// A running server. Dropping it ends it.
pub struct Server {
    endpoint: Arc<Endpoint>,
    key: [u8; 32],
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Told {
    /// Bytes that came, by connection in the order of their coming.
    received: Mutex<Vec<Arc<AtomicU64>>>,
    serving: AtomicUsize,
    stop: AtomicBool,
}

impl Server {
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
    ) -> Result<Server, Error> {
        let public = *key.public();
        let options = Options::server(key, clients, connection).tapped(tap);
        let endpoint = Arc::new(Endpoint::bind(listen, options)?);
        let told = Arc::<Told>::default();
        let (accepting, telling) = (endpoint.clone(), told.clone());
        let thread = std::thread::Builder::new()
            .name("narrows-speed".into())
            .spawn(move || accept(&accepting, &telling))
            .map_err(|e| Error::System(e.to_string()))?;
        Ok(Server { endpoint, key: public, told, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }
    /// Who it is.
    pub fn key(&self) -> [u8; 32] {
        self.key
    }
    /// Bytes that came so far, all connections together.
    pub fn received(&self) -> u64 {
        self.received_each().iter().sum()
    }
    /// The same by connection.
    pub fn received_each(&self) -> Vec<u64> {
        let list = self.told.received.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        list.iter().map(|c| c.load(Ordering::Relaxed)).collect()
    }
    /// Serves until the endpoint ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Release);
        self.endpoint.close(0, "");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(endpoint: &Endpoint, told: &Arc<Told>) {
    while let Ok(connection) = block_on(endpoint.accept()) {
        if told.serving.fetch_add(1, Ordering::AcqRel) >= MOST {
            told.serving.fetch_sub(1, Ordering::AcqRel);
            connection.close(256, "this server measures as many connections as it can");
            continue;
        }
        let counted = Arc::<AtomicU64>::default();
        told.received
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(counted.clone());
        let telling = told.clone();
        let spawned = std::thread::Builder::new().spawn(move || {
            // However it ended: the client knows.
            let _ = serve(&connection, &counted, &telling.stop);
            telling.serving.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            told.serving.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn serve(connection: &Connection, counted: &AtomicU64, stop: &AtomicBool) -> Result<(), Error> {
    let (mut send, mut receive) = block_on(connection.accept_bi())?;
    let mut request = [0; REQUEST];
    let mut have = 0;
    while let Some(rest) = request.get_mut(have..).filter(|r| !r.is_empty()) {
        match block_on(receive.receive(rest))? {
            0 => return Ok(()),
            n => have += n,
        }
    }
    let Some(request) = Request::read(&request) else {
        connection.close(257, "that is no request of narrows speed");
        return Ok(());
    };
    let mut tally = Tally::new(&mut send, counted);
    match request.kind {
        Kind::Up => up(&mut receive, &mut tally)?,
        Kind::Down => return down(&mut send, request.bytes, stop),
        Kind::Messages => messages(connection, &mut tally, stop)?,
    }
    tally.tell()?;
    block_on(send.arrived())
}

fn up(receive: &mut ReceiveStream, tally: &mut Tally<'_>) -> Result<(), Error> {
    let mut buffer = vec![0; BLOCK];
    loop {
        match block_on(receive.receive(&mut buffer))? {
            0 => return Ok(()),
            n => tally.add(n)?,
        }
    }
}

fn down(send: &mut SendStream, bytes: u64, stop: &AtomicBool) -> Result<(), Error> {
    let block = vec![0x5a; BLOCK];
    let mut left = bytes;
    while left > 0 && !stop.load(Ordering::Acquire) {
        let n = left.min(BLOCK as u64) as usize;
        block_on(send.send_all(block.get(..n).unwrap_or_default()))?;
        left -= n as u64;
    }
    block_on(send.arrived())
}

fn messages(
    connection: &Connection,
    tally: &mut Tally<'_>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let patience = std::time::Duration::from_millis(100);
    while !stop.load(Ordering::Acquire) {
        match block_on_for(patience, connection.receive_message()) {
            Some(message) => tally.add(message?.len())?,
            None => tally.tell()?,
        }
    }
    Ok(())
}

/// Counts, and tells the client now and then.
struct Tally<'a> {
    send: &'a mut SendStream,
    counted: &'a AtomicU64,
    clock: Clock,
    told: Time,
    /// Bytes since.
    since: u64,
}

impl<'a> Tally<'a> {
    fn new(send: &'a mut SendStream, counted: &'a AtomicU64) -> Tally<'a> {
        Tally { send, counted, clock: Clock::new(), told: Time::ZERO, since: 0 }
    }
    fn add(&mut self, bytes: usize) -> Result<(), Error> {
        self.counted.fetch_add(bytes as u64, Ordering::Relaxed);
        self.since += bytes as u64;
        let passed = self.clock.now().since(self.told).as_nanos();
        if passed >= TALLY_AT_LAST || passed >= TALLY_EVERY && self.since >= TALLY_BYTES {
            self.tell()?;
        }
        Ok(())
    }
    fn tell(&mut self) -> Result<(), Error> {
        (self.told, self.since) = (self.clock.now(), 0);
        let mut tally = [0; TALLY];
        tally[..8].copy_from_slice(&self.counted.load(Ordering::Relaxed).to_be_bytes());
        tally[8..].copy_from_slice(&self.told.as_nanos().to_be_bytes());
        block_on(self.send.send_all(&tally))
    }
}
