//! The client: opens the connections, observes them, and stops them.

use crate::measurement::{Amount, Speed, SpeedDirection};
use crate::result::SpeedResult;
use crate::server::SpeedServer;
use crate::transfer::runtime;
use crate::worker::{Worker, WorkerCounts};
use narrows_base::{Duration, Time};
use narrows_net::clock::processor_seconds;
use narrows_net::endpoint::new_key;
use narrows_net::{Clock, ConnectOptions, Connection, Driver, Endpoint, Error, Options};
use narrows_transport::endpoint::{Clients, ServerKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Connections that are opened at the same time: a server's limit for one address.
pub const OPENING: usize = 64;

/// An open connection, to be measured.
pub struct OpenConnection {
    /// Its endpoint, which is closed after the measurement.
    pub endpoint: Endpoint,
    /// The connection, with [`Speed::config`].
    pub connection: Connection,
    /// The server's address.
    pub address: SocketAddr,
    /// Duration of its handshake.
    pub handshake: Duration,
}

/// Where the connections of a measurement begin.
struct Beginning {
    endpoint: Endpoint,
    options: ConnectOptions,
    to: SocketAddr,
    /// The first connection and the duration of its handshake, if it is open already.
    first: Option<(Connection, Duration)>,
}

impl Speed {
    /// Both ends in this process: a server at `listen`, the client connecting to `through` (a relay to the server) or
    /// to the server itself. Bytes are counted at the server, not by its tallies.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn local(
        &self,
        listen: SocketAddr,
        through: impl FnOnce(SocketAddr) -> Result<SocketAddr, Error>,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let tap = self.taps.server.clone();
        let server = SpeedServer::start(listen, new_key()?, Clients::Any, self.config(), tap)?;
        let to = through(server.local_addr())?;
        let key = server.key();
        self.run(&[to], ServerKey::Is(key), Some(&server), tell)
    }

    /// The client's side. About every tenth of a second, `tell` is called with the seconds that have passed and the
    /// bytes that have arrived; it returns whether to continue. `counts` is the server, if it is in this process. Of
    /// several addresses, the first that answers is measured, from its first connection on.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn run(
        &self,
        to: &[SocketAddr],
        server_key: ServerKey,
        counts: Option<&SpeedServer>,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let tap = self.taps.client.clone();
        // Bulk: its packets are sealed on other threads than the measurement's.
        let options =
            Options::client(new_key()?, self.config()).tapped(tap).driven_by(Driver::Thread);
        let endpoint = Endpoint::to_any(to, options)?;
        let mut options = ConnectOptions::new(server_key, self.config());
        options.suite = self.suite;
        if let Amount::Time(all) = self.amount {
            options.patience = options.patience.min(all);
        }
        let (to, first) = match to {
            [only] => (*only, None),
            several => {
                let clock = Clock::new();
                let runtime = runtime().map_err(|e| Error::System(e.into()))?;
                let until = |time: std::time::Instant| tokio::time::sleep_until(time.into());
                let dialling = endpoint.connect_any(several, options.clone(), until);
                let dialled = runtime.block_on(dialling)?;
                let opened = clock.now().since(Time::ZERO);
                (dialled.address, Some((dialled.value, opened)))
            }
        };
        self.measure(Beginning { endpoint, options, to, first }, counts, tell)
    }

    /// As [`run`](Speed::run) over one connection that is open already.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn run_on(
        &self,
        open: OpenConnection,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let OpenConnection { endpoint, connection, address: to, handshake } = open;
        let options = ConnectOptions::new(ServerKey::Any, self.config());
        let first = Some((connection, handshake));
        let one = Speed { connections: 1, ..self.clone() };
        one.measure(Beginning { endpoint, options, to, first }, None, tell)
    }

    fn measure(
        &self,
        beginning: Beginning,
        counts: Option<&SpeedServer>,
        tell: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<SpeedResult, Error> {
        let Beginning { endpoint, options, to, mut first } = beginning;
        let clock = Clock::new();
        let runtime = runtime().map_err(|e| Error::System(e.into()))?;
        let began = clock.now();
        let cpu = processor_seconds();
        let shared: Vec<Arc<WorkerCounts>> =
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
            opened: first.take(),
            clock,
            turns: turns.clone(),
            count: count.clone(),
            stop: stopped.clone(),
        });
        let seen = || match counts {
            Some(server) if self.direction == SpeedDirection::Up => server.received(),
            _ => shared.iter().map(|c| c.bytes.load(Ordering::Relaxed)).sum(),
        };
        runtime.block_on(async {
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
