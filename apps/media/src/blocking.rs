//! Blocking functions for programs without an async runtime: each creates a runtime and returns when it is stopped.

use crate::connection;
use crate::dial::Peer;
use crate::flow::MediaFlowState;
use crate::group_run::{self, GroupReceive, GroupSend};
use crate::inlet::Outs;
use crate::measures::Measures;
use crate::outlet::OutletOptions;
use crate::playing::Observer;
use crate::rate_http;
use crate::receive::{MediaServer, ReceiveOptions, Viewing};
use crate::send::{MediaSending, Offer, Offering};
use crate::sender::SenderCounters;
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Interval at which the stop flag is checked.
const LOOK: Duration = Duration::from_millis(100);

fn runtime() -> Result<Runtime, Error> {
    narrows_net::has_threads_for_runtime().map_err(|e| Error::no_thread(&e))?;
    let made = Builder::new_multi_thread().enable_all().build();
    made.map_err(|e| Error::new(ErrorKind::Local, format!("the system refuses: {e}")))
}

async fn stopped(stop: &AtomicBool) {
    looking(|| (), stop).await;
}

/// Calls `look` about ten times a second until `stop` is set.
async fn looking(mut look: impl FnMut(), stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        look();
        tokio::time::sleep(LOOK).await;
    }
}

/// Receives from senders that connect, until `stop` is set. Calls `ready` with the address on which it listens, and
/// about ten times a second `look` with a function that replaces the list of clients.
///
/// # Errors
/// It cannot listen.
pub fn receive(
    address: SocketAddr,
    outs: Outs,
    options: ReceiveOptions,
    ready: impl FnOnce(SocketAddr) -> Result<(), Error>,
    mut look: impl FnMut(&dyn Fn(&AllowList)),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let server = MediaServer::bind(address, outs, options).await?;
        ready(server.address())?;
        let set = |clients: &AllowList| server.set_clients(clients);
        server.run(looking(|| look(&set), stop)).await;
        Ok(())
    });
    runtime.shutdown_background();
    done
}

/// Connects to a sender and receives, until `stop` is set. After a lost connection it reconnects. Calls `ready` when it
/// begins.
///
/// # Errors
/// A failure that another attempt would not cure.
pub fn view(
    outs: Outs,
    sender: Peer,
    ready: impl FnOnce() -> Result<(), Error>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let viewing = Viewing::new(outs, sender).await?;
        ready()?;
        viewing.run(stopped(stop)).await
    });
    // Do not wait for a name lookup that hangs.
    runtime.shutdown_background();
    done
}

/// The receiver, which listens or connects.
pub enum SenderDestination {
    /// A receiver to connect to.
    At(Peer),
    /// A receiver that connects to this address.
    Comes(SocketAddr, Offer),
}

/// Local addresses of a sender that is ready.
pub struct Ready<'a> {
    /// Where it takes media from, one address for each layer.
    pub from: &'a [SocketAddr],
    /// Where it serves the encoder's rate over HTTP.
    pub rate: Option<SocketAddr>,
    /// Where it listens for receivers.
    pub listens: Option<SocketAddr>,
}

/// Sends the datagrams that arrive at these addresses, one for each layer, until `stop` is set. Returns the final
/// state. `look` is as in [`receive`]. If `http` is set, the encoder's rate is served over HTTP at this port of the loopback address.
///
/// # Errors
/// A port is in use, or a failure that another attempt would not cure.
pub fn send(
    from: &[SocketAddr],
    http: Option<u16>,
    media: OutletOptions,
    receiver: SenderDestination,
    ready: impl FnOnce(&Ready<'_>) -> Result<(), Error>,
    mut look: impl FnMut(&dyn Fn(&AllowList)),
    stop: &AtomicBool,
) -> Result<MediaFlowState, Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let flag = if from.len() > 1 { "--layer" } else { "--from" };
        let mut sockets = Vec::new();
        let mut at = Vec::new();
        for from in from {
            let socket = connection::bind(flag, *from).await?;
            at.push(socket.local_addr().unwrap_or(*from));
            sockets.push(socket);
        }
        let listener = match http {
            None => None,
            Some(port) => Some(listen(port).await?),
        };
        let rate = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let sender = match receiver {
            SenderDestination::At(peer) => {
                SenderRole::Connects(MediaSending::new(sockets, media, peer))
            }
            SenderDestination::Comes(address, offer) => {
                SenderRole::Listens(Arc::new(Offering::bind(address, sockets, media, offer)?))
            }
        };
        if let Some(listener) = listener {
            let asked = sender.clone();
            let state = move || serde_json::to_string(&asked.state()).unwrap_or_default();
            tokio::spawn(rate_http::serve(listener, state));
        }
        ready(&Ready { from: &at, rate, listens: sender.listens() })?;
        let set = |clients: &AllowList| sender.set_clients(clients);
        let ended = tokio::select! {
            ended = sender.run() => ended,
            () = looking(|| look(&set), stop) => Ok(()),
        };
        sender.leave();
        ended.map(|()| sender.state())
    });
    // Do not wait for a name lookup that hangs.
    runtime.shutdown_background();
    done
}

/// A sender that connects, or one that listens.
#[derive(Clone)]
enum SenderRole {
    Connects(Arc<MediaSending>),
    Listens(Arc<Offering>),
}

impl SenderRole {
    fn state(&self) -> MediaFlowState {
        match self {
            SenderRole::Connects(one) => one.state(),
            SenderRole::Listens(one) => one.state(),
        }
    }
    fn listens(&self) -> Option<SocketAddr> {
        match self {
            SenderRole::Connects(_) => None,
            SenderRole::Listens(one) => Some(one.address()),
        }
    }
    async fn run(&self) -> Result<(), Error> {
        match self {
            SenderRole::Connects(one) => one.keep().await,
            SenderRole::Listens(one) => {
                one.run().await;
                Ok(())
            }
        }
    }
    fn set_clients(&self, clients: &AllowList) {
        if let SenderRole::Listens(one) = self {
            one.set_clients(clients);
        }
    }
    fn leave(&self) {
        match self {
            SenderRole::Connects(one) => one.leave(),
            SenderRole::Listens(one) => one.leave(),
        }
    }
}

/// Sends to multicast groups until `stop` is set, and returns its counters. Calls `ready` with the addresses where it
/// takes media from.
///
/// # Errors
/// As of [`group_run::send`].
pub fn send_to_groups(
    options: &GroupSend,
    ready: impl FnOnce(&[SocketAddr]) -> Result<(), Error>,
    stop: &AtomicBool,
) -> Result<SenderCounters, Error> {
    runtime()?.block_on(group_run::send(options, ready, stopped(stop)))
}

/// Receives from multicast groups until `stop` is set. Returns the measures, if any packet arrived. Calls `tell` with
/// log lines, and `observer` with the state while media arrive.
///
/// # Errors
/// As of [`group_run::receive`].
pub fn receive_from_groups(
    options: &GroupReceive,
    ready: impl FnOnce() -> Result<(), Error>,
    tell: impl Fn(&str),
    observer: Option<&Observer>,
    stop: &AtomicBool,
) -> Result<Option<Measures>, Error> {
    runtime()?.block_on(group_run::receive(options, ready, tell, observer, stopped(stop)))
}

async fn listen(port: u16) -> Result<TcpListener, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::AddrInUse => "another program listens there already".into(),
            _ => e.to_string(),
        };
        Error::new(ErrorKind::Local, format!("--rate-http {port}: {why}"))
    })
}
