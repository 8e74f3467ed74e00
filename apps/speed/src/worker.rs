//! One connection of a measurement, at the client: a task.

use super::measurement::{Amount, Speed, SpeedDirection, TrafficKind};
use super::request::{MeasurementKind, SpeedRequest};
use super::transfer::{TALLY, receive_some, send_bytes};
use narrows_base::Duration;
use narrows_congestion::HintSource;
use narrows_net::{Clock, ConnectOptions, Connection, Endpoint, Error};
use narrows_net::{ReceiveStream, SendStream};
use narrows_transport::connection::{PathStats, Stats};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, watch};
use tokio::task::coop::consume_budget;

/// Pause of a sender of messages while the connection's queue is full.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(500);

/// Longest wait for path MTU discovery to confirm that the messages fit.
const PATIENCE: Duration = Duration::from_secs(10);

/// A worker's counts while it runs.
#[derive(Default)]
pub(super) struct WorkerCounts {
    pub bytes: AtomicU64,
    pub handshake_ns: AtomicU64,
    pub messages: AtomicU64,
    pub stats: std::sync::Mutex<Stats>,
    pub paths: std::sync::Mutex<Vec<PathStats>>,
}

/// One connection at the client.
pub(super) struct Worker {
    pub speed: Arc<Speed>,
    pub endpoint: Endpoint,
    pub options: ConnectOptions,
    pub to: SocketAddr,
    /// The connection and the duration of its handshake, if it is open already.
    pub opened: Option<(Connection, Duration)>,
    pub clock: Clock,
    /// For opening a connection.
    pub turns: Arc<Semaphore>,
    pub count: Arc<WorkerCounts>,
    /// Becomes true when the measurement is over.
    pub stop: watch::Receiver<bool>,
}

impl Worker {
    /// Until it is done or stopped.
    pub async fn work(mut self) -> Result<(), Error> {
        let mut stop = self.stop.clone();
        let (connection, opened) = match self.opened.take() {
            Some(opened) => opened,
            None => {
                let turn = tokio::select! {
                    turn = self.turns.acquire() => turn,
                    _ = stop.wait_for(|stop| *stop) => return Ok(()),
                };
                let began = self.clock.now();
                let connection = self.endpoint.connect(self.to, self.options.clone()).await?;
                drop(turn);
                (connection, self.clock.now().since(began))
            }
        };
        self.count.handshake_ns.store(opened.as_nanos(), Ordering::Relaxed);
        // A measurement that was stopped ends in the middle of everything.
        let done = tokio::select! {
            done = self.transfer(&connection) => done,
            never = self.reconfigure(&connection) => match never {},
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        };
        if let Ok(mut stats) = self.count.stats.lock() {
            *stats = connection.stats();
        }
        if let Ok(mut paths) = self.count.paths.lock() {
            *paths = connection.paths();
        }
        connection.close(0, "");
        done
    }

    /// Applies the changed hints at their times.
    async fn reconfigure(&self, connection: &Connection) -> Infallible {
        let opened = tokio::time::Instant::now();
        for (at, hints) in &self.speed.reconfigurations {
            let at = std::time::Duration::from_nanos(at.as_nanos());
            tokio::time::sleep_until(opened + at).await;
            // A connection that is over is noticed by the transfer.
            let _ = connection.reconfigure(hints, HintSource::User);
        }
        std::future::pending().await
    }

    async fn transfer(&self, connection: &Connection) -> Result<(), Error> {
        let (mut send, receive) = connection.open_bi().await?;
        let bytes = match self.speed.amount {
            Amount::Bytes(n) => n,
            Amount::Time(_) => u64::MAX,
        };
        let request = match (self.speed.direction, self.speed.traffic) {
            (SpeedDirection::Up, TrafficKind::Stream) => {
                SpeedRequest { kind: MeasurementKind::Up, bytes, length: 0 }
            }
            (SpeedDirection::Down, _) => {
                SpeedRequest { kind: MeasurementKind::Down, bytes, length: 0 }
            }
            (SpeedDirection::Up, TrafficKind::Messages(length)) => {
                SpeedRequest { kind: MeasurementKind::Messages, bytes, length: u64::from(length) }
            }
        };
        send.send_all(&request.bytes()).await?;
        match request.kind {
            MeasurementKind::Up => {
                tokio::try_join!(up(&mut send, bytes), hear(receive, &self.count)).map(drop)
            }
            MeasurementKind::Down => self.down(receive).await,
            MeasurementKind::Messages => {
                let sent = async {
                    self.messages(connection, request.length as usize, bytes).await?;
                    // After the last message; the server then sends its last tally and ends.
                    send.finish()
                };
                tokio::try_join!(sent, hear(receive, &self.count)).map(drop)
            }
        }
    }

    async fn down(&self, mut receive: ReceiveStream) -> Result<(), Error> {
        loop {
            match receive_some(&mut receive).await? {
                0 => return Ok(()),
                n => self.count.bytes.fetch_add(n as u64, Ordering::Relaxed),
            };
        }
    }

    async fn messages(
        &self,
        connection: &Connection,
        length: usize,
        bytes: u64,
    ) -> Result<(), Error> {
        let mut message = vec![0x5a; length.max(1)];
        let mut left = bytes;
        let mut began = self.clock.now();
        while left > 0 {
            match connection.send_message(&message, Duration::ZERO) {
                Ok(()) => {
                    let number = self.count.messages.fetch_add(1, Ordering::Relaxed);
                    for (byte, digit) in message.iter_mut().zip(number.to_be_bytes()) {
                        *byte = digit;
                    }
                    left = left.saturating_sub(message.len() as u64);
                    began = self.clock.now();
                    consume_budget().await;
                }
                // As many wait as may: the controller is slower than this loop.
                Err(Error::MessagesFull) => tokio::time::sleep(PAUSE).await,
                // Path MTU discovery has not confirmed this size yet.
                Err(e @ Error::MessageTooLongNow { .. }) => {
                    if self.clock.now().since(began) > PATIENCE {
                        return Err(e);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Err(e) => return Err(e),
            }
        }
        // Until each message has been sent, and has arrived or is lost.
        while connection.messages_waiting()? > 0 || connection.stats().flight > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

async fn up(send: &mut SendStream, bytes: u64) -> Result<(), Error> {
    send_bytes(send, bytes).await?;
    send.finish()
}

/// Reads the receiver's tallies until it ends.
async fn hear(mut receive: ReceiveStream, count: &WorkerCounts) -> Result<(), Error> {
    let mut buffer = [0; 64 * TALLY];
    let mut pending = Vec::new();
    loop {
        let n = receive.receive(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        pending.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let whole = pending.len() - pending.len() % TALLY;
        for tally in pending.drain(..whole).as_slice().chunks_exact(TALLY) {
            if let Some(Ok(bytes)) = tally.get(..8).map(<[u8; 8]>::try_from) {
                count.bytes.store(u64::from_be_bytes(bytes), Ordering::Relaxed);
            }
        }
    }
}
