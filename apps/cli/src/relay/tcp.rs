//! `narrows relay --tcp`: TCP connections cross the emulated link as streams of one rrtp connection between two ends of
//! a tunnel in this process.

use crate::failure::Failure;
use crate::log::{Log, LogArgs, LogLevel};
use crate::transport::{Hints, TransportArgs};
use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_files::url;
use narrows_peers::access::AllowList;
use narrows_peers::dial::Peer;
use narrows_peers::{Error, Identity, key};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::Permit;
use narrows_tunnel::allow::{AllowedTarget, Targets};
use narrows_tunnel::blocking::{self, Entrances};
use narrows_tunnel::client::ClientOptions;
use narrows_tunnel::forward::Forward;
use narrows_tunnel::limits::ClientLimits;
use narrows_tunnel::permissions::Permissions;
use narrows_tunnel::request::TunnelRequest;
use narrows_tunnel::reverse::ReversePorts;
use narrows_tunnel::server::ServerOptions;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A port of loopback that the system chooses.
pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Time limit of an attempt to connect over the link, and silence after which the ends connect again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Concurrent TCP connections, and new ones per second: as many as a load test of one machine opens.
const CONNECTIONS: u32 = 10_000;

/// The two ends. They stop when the value is dropped.
pub struct TcpEnds {
    /// Address of the far end, for the relay.
    pub far: SocketAddr,
    to: TunnelRequest,
    config: ConnectionConfig,
    server: [u8; 32],
    client: Identity,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), Error>>>,
}

impl TcpEnds {
    /// Starts the far end, which connects to the first of these addresses of `to` that answers. Both ends send with this
    /// controller.
    ///
    /// # Errors
    /// An unknown controller, or a port cannot be opened.
    pub fn start(controller: &str, to: &str, all: &[SocketAddr]) -> Result<TcpEnds, Failure> {
        let protocol = format!("rrtp+{controller}");
        let config =
            TransportArgs { protocol, hints: Hints::default() }.connection().map_err(|_| {
                Failure::Input(format!(
                    "--tcp: '{controller}' is no controller over UDP; narrows list controllers"
                ))
            })?;
        let server = Identity::generate()?;
        let client = Identity::generate()?;
        let (host, port) = url::host_port(to).map_err(Failure::Input)?;
        let targets: Result<Vec<AllowedTarget>, _> =
            all.iter().map(|address| address.to_string().parse()).collect();
        let targets = targets.map_err(Failure::Input)?;
        let found: Vec<IpAddr> = all.iter().map(SocketAddr::ip).collect();
        let limits = ClientLimits {
            streams: CONNECTIONS as usize,
            openings: CONNECTIONS,
            ..ClientLimits::default()
        };
        let permissions = Permissions {
            clients: AllowList::read(&key::text(client.public()))?,
            targets: Targets::new(targets),
            reverse: ReversePorts::default(),
            limits,
        };
        let mut ends = TcpEnds {
            far: LOOPBACK,
            to: TunnelRequest::tcp(&host, port),
            config: config.clone(),
            server: *server.public(),
            client,
            stop: Arc::default(),
            threads: Vec::new(),
        };
        // A line for each refused connection would fill the error stream.
        let log = Log::new(&LogArgs::default())?;
        let options = ServerOptions {
            identity: server,
            permissions,
            tun: Vec::new(),
            config,
            permit: Permit::Own,
            learned: None,
            tap: None,
            lookup: Arc::new(move |_| Ok(found.clone())),
            log: Arc::new(move |event| {
                if let Some(line) = event.line.as_ref().filter(|_| event.is_warning) {
                    log.line(LogLevel::Warning, "", line);
                }
            }),
        };
        ends.far = ends.run(move |ready, stop| {
            let ready = move |at, _| ready.send(at).map_err(|_| Error::interrupted());
            blocking::serve(LOOPBACK, options, ready, |_| (), |_| (), stop)
        })?;
        Ok(ends)
    }

    /// Opens the TCP port `listen`, and connects through the relay. Returns the port's address.
    ///
    /// # Errors
    /// The port is in use.
    pub fn open(&mut self, listen: SocketAddr, relay: SocketAddr) -> Result<String, Failure> {
        let entrances = Entrances {
            tcp: vec![Forward { listen, host: self.to.host.clone(), port: self.to.port }],
            ..Entrances::default()
        };
        let options = ClientOptions {
            peer: Peer {
                host: relay.ip().to_string(),
                port: relay.port(),
                key: Some(self.server),
                judge: Box::new(|_| Ok(())),
                identity: self.client.clone(),
                config: self.config.clone(),
                patience: PATIENCE,
                tap: None,
                paths: Default::default(),
            },
            receiving: PathHints::default(),
            silence: PATIENCE,
            incoming: 0,
            learned: None,
            tell: Box::new(|_| ()),
        };
        self.run(move |ready, stop| {
            let first = move |open: &[(String, String)]| {
                let at = open.first().map(|(at, _)| at.clone()).unwrap_or_default();
                ready.send(at).map_err(|_| Error::interrupted())
            };
            blocking::connect(options, entrances, first, || (), stop)
        })
    }

    /// Runs an end in a thread, until it has sent that it is ready.
    fn run<T: Send + 'static>(
        &mut self,
        end: impl FnOnce(Sender<T>, &AtomicBool) -> Result<(), Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (sender, receiver) = channel();
        let stop = self.stop.clone();
        let thread = std::thread::spawn(move || end(sender, &stop));
        match receiver.recv() {
            Ok(ready) => {
                self.threads.push(thread);
                Ok(ready)
            }
            // It ended before.
            Err(_) => match thread.join() {
                Ok(Err(e)) => Err(e.into()),
                _ => Err(Failure::Outside("--tcp: an end stopped".into())),
            },
        }
    }
}

impl Drop for TcpEnds {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
