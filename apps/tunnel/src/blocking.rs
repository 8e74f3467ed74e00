//! Blocking functions for programs without an async runtime: each creates a runtime and returns when it is stopped.

use crate::client::{ClientOptions, Tunnel};
use crate::datagrams;
use crate::descriptors;
use crate::forward::{self, Forward};
use crate::http;
use crate::listen;
use crate::request::TunnelRequest;
use crate::reverse;
use crate::server::{ServerOptions, TunnelServer};
use crate::socks;
use crate::stdio;
use crate::tun::near::{NearTun, TunRoute};
use narrows_peers::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Interval at which the stop flag is checked.
const LOOK: Duration = Duration::from_millis(100);
/// Close code: the server was stopped.
const STOPPED: u64 = 256;

fn runtime() -> Result<Runtime, Error> {
    narrows_net::has_threads_for_runtime().map_err(|e| Error::no_thread(&e))?;
    // Each connection of a program needs a descriptor, and default limits are for interactive shells.
    descriptors::raise();
    let made = Builder::new_multi_thread().enable_all().build();
    made.map_err(|e| Error::new(ErrorKind::Local, format!("the system refuses: {e}")))
}

/// Calls `look` about ten times a second until `stop` is set.
async fn looking(mut look: impl FnMut(), stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        look();
        tokio::time::sleep(LOOK).await;
    }
}

/// Serves until `stop` is set. Calls `ready` with the listening address and the interface for packets, and `warn` for
/// each listed name that leads only to addresses that are not permitted. Calls `look` about ten times a second; it may
/// replace the permissions.
///
/// # Errors
/// It cannot listen.
pub fn serve(
    address: SocketAddr,
    options: ServerOptions,
    ready: impl FnOnce(SocketAddr, Option<String>) -> Result<(), Error>,
    warn: impl Fn(&str) + Send + 'static,
    mut look: impl FnMut(&TunnelServer),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let server = TunnelServer::bind(address, options)?;
        ready(server.address(), server.tun())?;
        let server = std::sync::Arc::new(server);
        let checked = server.clone();
        tokio::task::spawn_blocking(move || checked.useless_names().iter().for_each(|l| warn(l)));
        let ended = tokio::select! {
            () = server.run() => Err(Error::new(ErrorKind::Local, "the UDP socket has failed")),
            () = looking(|| look(&server), stop) => Ok(()),
        };
        server.keep_learned();
        server.endpoint().leave(STOPPED, "the server was stopped");
        ended
    });
    // Do not wait for a name lookup that hangs.
    runtime.shutdown_background();
    done
}

/// Local entrances of a tunnel.
#[derive(Clone, Default, Debug)]
pub struct Entrances {
    /// TCP ports, each to one target.
    pub tcp: Vec<Forward>,
    /// UDP ports, each to one target.
    pub udp: Vec<Forward>,
    /// Ports of the server, each to one target of this end.
    pub reverse: Vec<Forward>,
    /// The target of the standard streams.
    pub stdio: Option<TunnelRequest>,
    /// Address of a SOCKS proxy.
    pub socks: Option<SocketAddr>,
    /// Address of an HTTP proxy.
    pub http: Option<SocketAddr>,
    /// Routes into a TUN interface, in addition to that to the server's own address; `None` without an interface.
    pub tun: Option<Vec<TunRoute>>,
}

impl Entrances {
    /// Whether there is no entrance.
    pub fn is_empty(&self) -> bool {
        let Entrances { tcp, udp, reverse, stdio, socks, http, tun } = self;
        let has_ports = !(tcp.is_empty() && udp.is_empty() && reverse.is_empty());
        !has_ports && stdio.is_none() && socks.is_none() && http.is_none() && tun.is_none()
    }
}

/// Connects, and reconnects until `stop` is set. Calls `ready` with all listening addresses and their targets before
/// there is a connection, and `look` about ten times a second.
///
/// # Errors
/// A port is in use, or a failure that another attempt would not cure.
pub fn connect(
    mut options: ClientOptions,
    entrances: Entrances,
    ready: impl FnOnce(&[(String, String)]) -> Result<(), Error>,
    look: impl FnMut(),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        if !entrances.reverse.is_empty() {
            options.incoming = reverse::incoming(entrances.reverse.len());
        }
        let tunnel = Tunnel::new(options);
        let tun = match &entrances.tun {
            Some(routes) => {
                if !routes.is_empty() {
                    // Resolve the name now, since the name server may later be reached only by routes through the
                    // tunnel.
                    tunnel.dial.fix_addresses().await?;
                }
                Some(NearTun::create(routes)?)
            }
            None => None,
        };
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
            open.push((at.to_string(), TunnelRequest::udp(&forward.host, forward.port).shown()));
            tokio::spawn(datagrams::run(tunnel.clone(), socket, forward));
        }
        if let Some(address) = entrances.socks {
            let listener = listen::tcp("--socks", address).await?;
            let at = listener.local_addr().unwrap_or(address);
            open.push((at.to_string(), "targets of SOCKS requests".into()));
            tokio::spawn(socks::run(tunnel.clone(), listener));
        }
        if let Some(address) = entrances.http {
            let listener = listen::tcp("--http-proxy", address).await?;
            let at = listener.local_addr().unwrap_or(address);
            open.push((at.to_string(), "targets of HTTP requests".into()));
            tokio::spawn(http::run(tunnel.clone(), listener));
        }
        if let Some(tun) = &tun {
            open.push((tun.name().into(), "the server's network, packet by packet".into()));
        }
        for forward in &entrances.reverse {
            let at = format!("{} of the server", forward.listen);
            open.push((at, format!("{} from here", forward.target())));
        }
        ready(&open)?;
        let program = async {
            match &entrances.stdio {
                Some(to) => stdio::run(&tunnel, to, tokio::io::stdin(), tokio::io::stdout()).await,
                None => std::future::pending().await,
            }
        };
        let packets = async {
            match &tun {
                Some(tun) => tun.run(&tunnel).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = tunnel.keep() => ended,
            ended = packets => ended,
            ended = program => ended,
            ended = reverse::run(&tunnel, &entrances.reverse) => ended,
            () = looking(look, stop) => Ok(()),
        };
        tunnel.leave();
        ended
    });
    runtime.shutdown_background();
    done
}
