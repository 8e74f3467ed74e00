//! One connection of a measurement, at the client.

use super::request::{Kind, Request};
use super::{Amount, BLOCK, Cargo, Direction, LONGEST, Speed, TALLY};
use narrows_base::{Duration, Time};
use narrows_drive::{Clock, ConnectOptions, Connection, Endpoint, Error};
use narrows_drive::{ReceiveStream, SendStream, block_on, block_on_for};
use narrows_flow::connection::Stats;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a worker tells while it works.
#[derive(Default)]
pub(super) struct Count {
    pub bytes: AtomicU64,
    pub handshake_ns: AtomicU64,
    pub messages: AtomicU64,
    pub stats: std::sync::Mutex<Stats>,
}

/// One connection at the client.
pub(super) struct Worker<'a> {
    pub speed: &'a Speed,
    pub endpoint: &'a Endpoint,
    pub options: ConnectOptions,
    pub to: SocketAddr,
    pub clock: Clock,
    pub began: Time,
    pub count: Arc<Count>,
    pub stop: Arc<AtomicBool>,
}

impl Worker<'_> {
    /// Until it is done or stopped.
    pub fn work(self) -> Result<(), Error> {
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
