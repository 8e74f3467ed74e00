//! Both ends for programs without a runtime: each makes one, and returns when it is stopped.

use crate::client::{ClientOptions, Tunnel};
use crate::datagrams;
use crate::descriptors;
use crate::forward::{self, Forward};
use crate::http;
use crate::listen;
use crate::request::Request;
use crate::server::{Server, ServerOptions};
use crate::socks;
use crate::tun::near::{NearTun, Route};
use narrows_files::dial::Peer;
use narrows_files::{Error, Kind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How often it is looked whether the user has stopped it.
const LOOK: Duration = Duration::from_millis(100);
/// The code of connections whose server was stopped.
const STOPPED: u64 = 256;

fn runtime() -> Result<Runtime, Error> {
    narrows_net::has_threads_for_runtime().map_err(|e| Error::no_thread(&e))?;
    // Each connection of a program takes one, and usual limits are for interactive shells.
    descriptors::raise();
    let made = Builder::new_multi_thread().enable_all().build();
    made.map_err(|e| Error::new(Kind::Local, format!("the system refuses: {e}")))
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Serves until it is stopped. `ready` is told where it listens, and which interface packets have;
/// `warn` which listed names lead nowhere.
///
/// # Errors
/// What keeps it from listening.
pub fn serve(
    address: SocketAddr,
    options: ServerOptions,
    ready: impl FnOnce(SocketAddr, Option<String>) -> Result<(), Error>,
    warn: impl Fn(&str) + Send + 'static,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let server = Server::bind(address, options)?;
        ready(server.address(), server.tun())?;
        let server = std::sync::Arc::new(server);
        let checked = server.clone();
        tokio::task::spawn_blocking(move || checked.useless_names().iter().for_each(|l| warn(l)));
        let ended = tokio::select! {
            () = server.run() => Err(Error::new(Kind::Local, "the UDP socket has failed")),
            () = stopped(stop) => Ok(()),
        };
        server.keep_learned();
        server.endpoint().leave(STOPPED, "the server was stopped");
        ended
    });
    // A lookup that hangs keeps nobody.
    runtime.shutdown_background();
    done
}

/// What leads into a tunnel.
#[derive(Clone, Default, Debug)]
pub struct Entrances {
    /// TCP ports, each to one target.
    pub tcp: Vec<Forward>,
    /// UDP ports, each to one target.
    pub udp: Vec<Forward>,
    /// A SOCKS 5 proxy.
    pub socks: Option<SocketAddr>,
    /// An HTTP proxy.
    pub http: Option<SocketAddr>,
    /// An interface whose packets are carried, with routes beside that to the server's own address.
    pub tun: Option<Vec<Route>>,
}

impl Entrances {
    /// Whether nothing leads into the tunnel.
    pub fn is_empty(&self) -> bool {
        let Entrances { tcp, udp, socks, http, tun } = self;
        tcp.is_empty() && udp.is_empty() && socks.is_none() && http.is_none() && tun.is_none()
    }
}

/// Connects, and stays so until it is stopped. `ready` is told all that listens, and where it leads, before there is a
/// connection.
///
/// # Errors
/// A port is taken; or what another attempt to connect would not change.
pub fn connect(
    mut options: ClientOptions,
    entrances: Entrances,
    ready: impl FnOnce(&[(String, String)]) -> Result<(), Error>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let tun = match &entrances.tun {
            Some(routes) => {
                if !routes.is_empty() {
                    // The name's server, or its way there, may be behind the routes.
                    options.peer.host = looked_up(&options.peer).await?;
                }
                Some(NearTun::create(routes)?)
            }
            None => None,
        };
        let tunnel = Tunnel::new(options);
        let mut open = Vec::new();
        for forward in entrances.tcp {
            let listener = listen::tcp("--tcp", forward.listen).await?;
            let at = listener.local_addr().unwrap_or(forward.listen);
            open.push((at.to_string(), forward.request().shown()));
            tokio::spawn(forward::run(tunnel.clone(), listener, forward));
        }
        for forward in entrances.udp {
            let socket = datagrams::listen("--udp", forward.listen).await?;
            let at = socket.local_addr().unwrap_or(forward.listen);
            open.push((at.to_string(), Request::udp(&forward.host, forward.port).shown()));
            tokio::spawn(datagrams::run(tunnel.clone(), socket, forward));
        }
        if let Some(address) = entrances.socks {
            let listener = listen::tcp("--socks", address).await?;
            let at = listener.local_addr().unwrap_or(address);
            open.push((at.to_string(), "whatever SOCKS asks for".into()));
            tokio::spawn(socks::run(tunnel.clone(), listener));
        }
        if let Some(address) = entrances.http {
            let listener = listen::tcp("--http-proxy", address).await?;
            let at = listener.local_addr().unwrap_or(address);
            open.push((at.to_string(), "whatever HTTP asks for".into()));
            tokio::spawn(http::run(tunnel.clone(), listener));
        }
        if let Some(tun) = &tun {
            open.push((tun.name().into(), "the server's network, packet by packet".into()));
        }
        ready(&open)?;
        let packets = async {
            match &tun {
                Some(tun) => tun.run(&tunnel).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = tunnel.keep() => ended,
            ended = packets => ended,
            () = stopped(stop) => Ok(()),
        };
        tunnel.leave();
        ended
    });
    runtime.shutdown_background();
    done
}

/// The server's address as it is now.
async fn looked_up(peer: &Peer) -> Result<String, Error> {
    let Peer { host, port, .. } = peer;
    let found = tokio::net::lookup_host((host.as_str(), *port)).await.ok();
    let first = found.and_then(|mut found| found.next()).map(|address| address.ip().to_string());
    first.ok_or_else(|| {
        let line = format!("{}: no such host", narrows_files::error::shown(host));
        Error::new(Kind::Unreachable, line)
    })
}
