//! `narrows tunnel`: unmodified programs over rrtp.

use crate::daemon::{self, catch_signals};
use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use crate::local_paths::PathArgs;
use crate::log::{Log, LogArgs, LogLevel};
use crate::metrics::MetricsArgs;
use crate::record::RecordArgs;
use crate::serve::learned;
use crate::settings::{self, KeptSettings};
use crate::terminal::{STOP, print};
use crate::transfer::{client_key, known_servers, pin, server_key};
use crate::transport::{Hints, TransportArgs, address, rate, urls};
use clap::{Args, Subcommand};
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;
use narrows_files::{Scheme, Url, url};
use narrows_lab::options::RARE;
use narrows_peers::access::AllowList;
use narrows_peers::dial::Peer;
use narrows_peers::learned::LearnedPaths;
use narrows_peers::{Error, ErrorKind, error, key};
use narrows_transport::endpoint::Permit;
use narrows_tunnel::address::Nat64Prefix;
use narrows_tunnel::allow::{self, AllowedTarget, Targets};
use narrows_tunnel::blocking::{self, Entrances};
use narrows_tunnel::client::ClientOptions;
use narrows_tunnel::dial;
use narrows_tunnel::forward::Forward;
use narrows_tunnel::limits::ClientLimits;
use narrows_tunnel::permissions::Permissions;
use narrows_tunnel::request::TunnelRequest;
use narrows_tunnel::reverse::{Ports, ReversePorts};
use narrows_tunnel::server::{ServerOptions, TunnelServer};
use narrows_tunnel::tun::IpNet;
use narrows_tunnel::tun::near::TunRoute;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Silence of a server, with unanswered probes, after which another connection is tried.
const SILENCE: Duration = Duration::from_secs(12);

pub const HELP: &str = "\
The far side (serve) runs where the targets are reachable. The near side
(connect) connects to it and listens on ports of this machine. All traffic uses
one encrypted rrtp connection: a stream for each TCP connection, and messages
that expire for datagrams.

The far side accepts only clients listed in --clients, one key per line as
`narrows key` prints it, and connects only to targets of --allow.

Examples:
  narrows tunnel serve --listen '[::]:47471' --clients friends.txt \\
      --allow example.org:443 --allow '10.0.0.0/8:22'
  narrows tunnel connect rrtp://KEY@host:47471 --tcp 8443:example.org:443
  narrows tunnel connect rrtp://KEY@host:47471 --socks 1080 --http-proxy 3128
  narrows tunnel connect rrtp://KEY@host:47471 --udp 5353:9.9.9.9:53
  ssh -o ProxyCommand='narrows tunnel connect rrtp://KEY@host:47471 \\
      --stdio %h:%p' intranet

A service of the near side at a port of the far side:
  narrows tunnel serve … --allow-reverse 0.0.0.0:8080
  narrows tunnel connect rrtp://KEY@host:47471 \\
      --reverse 0.0.0.0:8080:localhost:80

Packets of any kind, through an interface at each end (Linux, root):
  narrows tunnel serve --listen '[::]:47471' --clients friends.txt \\
      --tun 10.7.0.0/24 --allow '10.7.0.1:*' --allow '10.1.0.0/16:22'
  narrows tunnel connect rrtp://KEY@host:47471 --tun --route 10.1.0.0/16";

pub const SERVE: &str = "\
A TARGET is HOST:PORT, *.NAME:PORT, *:PORT (all public addresses),
10.0.0.0/8:PORT or [fd00::/8]:PORT; PORT is a number, or * for all. A name
permits only public addresses. Private, loopback, link-local and other special
addresses, and those of this machine, must be listed by address or network.

The log has a line for each opened or refused connection, with the client.

--tun NETWORK creates an interface with the network's first address; the n-th
key of the list of clients gets the n-th address after it. Packets pass if
--allow lists their destination, including this machine's own address
(10.7.0.1:*). Packets without a port, such as pings, need an entry for all
ports. Narrows does not enable forwarding (docs/tunnel.md: example with NAT).";

pub const CONNECT: &str = "\
--tun creates an interface and carries its packets as messages that expire. The
server assigns its address. Packets to the server's address, and to networks of
--route, are routed into it; default route and resolver remain unchanged.
`--route default` routes all packets into it, except those of the tunnel.";

#[derive(Args, Debug)]
pub struct TunnelArgs {
    #[command(subcommand)]
    pub command: TunnelCommand,
}

#[derive(Subcommand, Debug)]
pub enum TunnelCommand {
    /// Accept listed clients and connect them to permitted targets
    #[command(after_help = SERVE)]
    Serve(Box<TunnelServeArgs>),
    /// Connect to such a server, and forward ports of this machine
    #[command(after_help = CONNECT)]
    Connect(Box<TunnelConnectArgs>),
}

#[derive(Args, Debug)]
pub struct TunnelServeArgs {
    /// Listen at HOST:PORT; port 0 takes a free one [default: 127.0.0.1:47471]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Accept clients with a key in this file (required)
    #[arg(long, value_name = "FILE")]
    pub clients: Option<PathBuf>,
    /// Permit connections to this target (required; may be repeated)
    #[arg(long, value_name = "TARGET", num_args = 1..)]
    pub allow: Vec<AllowedTarget>,
    /// Let clients make this machine listen at these ports for services of theirs; loopback unless an address is given;
    /// with a KEY only that client; may be repeated [default: none]
    #[arg(long, value_name = "[ADDR:]PORT[-PORT][=KEY]", num_args = 1..)]
    pub allow_reverse: Vec<Ports>,
    /// Check addresses of this NAT64 prefix as the IPv4 addresses in them, as those of 64:ff9b::/96; may be repeated
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "PREFIX")]
    pub nat64: Vec<Nat64Prefix>,
    /// Carry clients' IP packets, and assign addresses of this private network (IPv4 or IPv6; both as two --tun); needs
    /// root
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    pub tun: Vec<IpNet>,
    /// Read flags from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Maximum number of concurrent TCP connections and UDP flows of a client [default: 1024]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "N", value_parser = streams)]
    pub max_streams: Option<usize>,
    /// Maximum number of concurrent UDP flows of a client [default: 256]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "N")]
    pub max_flows: Option<usize>,
    /// New connections and flows of a client per second, in the long run [default: 100]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_openings: Option<u32>,
    /// Maximum rate of each client, over all of its connections and in both directions together
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub client_limit: Option<Rate>,
    /// This server's key [default: server.key in the folder that `narrows key` names]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Store measured paths to clients, and begin with them when a client returns
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub learn: bool,
    /// Let clients choose protocols that send at a rate given by the client (tear-reliable, rrtp-lasthop, rrtp+tfrc,
    /// rrtp+fixed), up to this rate
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "RATE", value_parser = rate)]
    pub permit_rate_driven: Option<Rate>,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

#[derive(Args, Debug)]
pub struct TunnelConnectArgs {
    /// The server, as rrtp://[KEY@]HOST:PORT
    #[arg(id = "server", value_name = "URL")]
    pub url: Option<String>,
    /// Read flags and server (the URL) from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Forward a local TCP port to a target at the far side, as 8080:intranet:80; may be repeated
    #[arg(long, value_name = "[ADDR:]PORT:HOST:PORT")]
    pub tcp: Vec<Forward>,
    /// Forward a local UDP port, as 5353:resolver:53; may be repeated
    #[arg(long, value_name = "[ADDR:]PORT:HOST:PORT")]
    pub udp: Vec<Forward>,
    /// Let the server listen at its port, and forward its connections to a target of this side, as 8080:localhost:80;
    /// may be repeated
    #[arg(long, value_name = "[ADDR:]PORT:HOST:PORT")]
    pub reverse: Vec<Forward>,
    /// Connect standard input and output to a target at the far side, as ssh's ProxyCommand does
    #[arg(long, value_name = "HOST:PORT", value_parser = stdio_target,
        conflicts_with_all = ["tcp", "udp", "reverse", "socks", "http_proxy", "tun", "route"])]
    pub stdio: Option<TunnelRequest>,
    /// Run a SOCKS 5 proxy at this port, on loopback unless an address is given
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = port)]
    pub socks: Option<SocketAddr>,
    /// Run an HTTP proxy at this port, on loopback unless an address is given
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = port)]
    pub http_proxy: Option<SocketAddr>,
    /// Create an interface and carry its IP packets, with an address from the server; needs root
    #[arg(long)]
    pub tun: bool,
    /// Also route this network into the interface; "default" means everything; may be repeated
    #[arg(long, value_name = "NETWORK|default")]
    pub route: Vec<TunRoute>,
    /// Hint for the server: the rate at which this side can receive (--rate is that of sending)
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "RATE", value_parser = rate)]
    pub receive_rate: Option<Rate>,
    /// Store the measured path to the server, and begin with it the next time
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub learn: bool,
    /// This client's key [default: client.key in the folder that `narrows key` names]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub paths: PathArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

/// `narrows tunnel`.
///
/// # Errors
/// One line that describes the error.
pub fn tunnel(a: &TunnelArgs) -> Result<(), Failure> {
    match &a.command {
        TunnelCommand::Serve(a) => serve(a),
        TunnelCommand::Connect(a) => connect(a),
    }
}

/// Parses `PORT`, on loopback, or `ADDRESS:PORT`, for clap.
fn port(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into()).ok();
    let address = alone.or_else(|| text.parse().ok());
    address
        .ok_or_else(|| "a port is expected, as 1080, or an address with one, as [::1]:1080".into())
}

/// Parses a network, for clap.
fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| "a network is expected, as 10.7.0.0/24 or fd00:7::/64".into())
}

/// Parses the target of the standard streams, for clap.
fn stdio_target(text: &str) -> Result<TunnelRequest, String> {
    let found = url::host_port(text).ok().filter(|(host, port)| {
        *port > 0 && (host.parse::<IpAddr>().is_ok() || allow::name(host).is_some())
    });
    let (host, port) = found.ok_or("HOST:PORT is expected, as in intranet:22 or [fd00::1]:22")?;
    Ok(TunnelRequest::tcp(&host, port))
}

/// Parses a number of streams, for clap.
fn streams(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    number.ok_or_else(|| "a number from 1 to 1000000 is expected".into())
}

/// Prints that the command is ready, and tells systemd.
fn shown_ready(text: &str) -> Result<(), Error> {
    print(text).map_err(|_| Error::new(ErrorKind::Local, "cannot write to the standard output"))?;
    daemon::ready();
    Ok(())
}

/// Entrances of the tunnel.
fn entrances(a: &TunnelConnectArgs) -> Result<Entrances, Failure> {
    if a.reverse.iter().any(|forward| forward.listen.port() == 0) {
        return Err(input("--reverse: name the server's port, as in 8080:localhost:80"));
    }
    if !a.tun && !a.route.is_empty() {
        return Err(input("--route: there is no interface to send packets into: say --tun, too"));
    }
    Ok(Entrances {
        tcp: a.tcp.clone(),
        udp: a.udp.clone(),
        reverse: a.reverse.clone(),
        stdio: a.stdio.clone(),
        socks: a.socks,
        http: a.http_proxy,
        tun: a.tun.then(|| a.route.clone()),
    })
}

fn input(line: &str) -> Failure {
    Failure::Input(line.into())
}

/// What a reload changes, but does not remove.
struct KeptLimits {
    streams: Option<usize>,
    flows: Option<usize>,
    openings: Option<u32>,
    rate: Option<Rate>,
    nat64: Option<Vec<Nat64Prefix>>,
}

impl KeptLimits {
    fn of(a: &TunnelServeArgs) -> KeptLimits {
        KeptLimits {
            streams: a.max_streams,
            flows: a.max_flows,
            openings: a.max_openings,
            rate: a.client_limit,
            nat64: Some(a.nat64.clone()).filter(|prefixes| !prefixes.is_empty()),
        }
    }
}

/// The permissions. Reads the list of clients by `read`.
fn permissions(
    a: &TunnelServeArgs,
    bounds: &KeptLimits,
    read: fn(&Path) -> Result<AllowList, Error>,
) -> Result<Permissions, Failure> {
    let Some(clients) = &a.clients else {
        return Err(input(
            "tunnel serve: --clients FILE is missing: the keys of permitted clients, one per line",
        ));
    };
    if a.allow.is_empty() {
        return Err(input(
            "tunnel serve: --allow TARGET is missing: a target that clients may reach, as in --allow example.org:443",
        ));
    }
    let clients = read(clients).map_err(|e| e.at("--clients"))?;
    let default = ClientLimits::default();
    let limits = ClientLimits {
        streams: bounds.streams.unwrap_or(default.streams),
        flows: bounds.flows.unwrap_or(default.flows),
        openings: bounds.openings.unwrap_or(default.openings),
        rate: bounds.rate,
        ..default
    };
    let targets =
        Targets::new(a.allow.clone()).with_nat64(bounds.nat64.clone().unwrap_or_default());
    let reverse = ReversePorts::new(a.allow_reverse.clone());
    Ok(Permissions { clients, targets, reverse, limits })
}

/// Reads the file and the list of clients again, and replaces the permissions.
fn reload(
    before: &TunnelServeArgs,
    in_force: &mut KeptLimits,
    server: &TunnelServer,
    log: &Log,
) -> Result<String, Failure> {
    let a: TunnelServeArgs = settings::again()?;
    let mut kept = KeptSettings::default();
    let of_file = KeptLimits::of(&a);
    let bounds = KeptLimits {
        streams: kept.or("max-streams", of_file.streams, &in_force.streams),
        flows: kept.or("max-flows", of_file.flows, &in_force.flows),
        openings: kept.or("max-openings", of_file.openings, &in_force.openings),
        rate: kept.or("client-limit", of_file.rate, &in_force.rate),
        nat64: kept.or("nat64", of_file.nat64, &in_force.nat64),
    };
    let new = permissions(&a, &bounds, AllowList::reload)?;
    let keys = new.clients.len();
    server.set_permissions(new)?;
    *in_force = bounds;
    log.reconfigure(&a.log);
    let is_bound = (&a.listen, &a.tun) == (&before.listen, &before.tun);
    let bound = if is_bound { "" } else { "; listen and tun change only by a restart" };
    Ok(format!("{keys} clients, {} targets{}{bound}", a.allow.len(), kept.line()))
}

fn serve(a: &TunnelServeArgs) -> Result<(), Failure> {
    catch_signals();
    let mut bounds = KeptLimits::of(a);
    let permissions = permissions(a, &bounds, AllowList::load)?;
    let config = a.transport.connection()?;
    let listen = address("--listen", a.listen.as_deref().unwrap_or("127.0.0.1:47471"))?;
    let log = Arc::new(Log::of_known(&a.log)?);
    let identity = server_key(a.identity.as_deref())?;
    let name = key::text(identity.public());
    let permit = match a.permit_rate_driven {
        _ if a.transport.protocol != "rrtp" => Permit::Own,
        Some(max) => Permit::Any(max),
        None => Permit::Listed,
    };
    let learned = learned(a.learn, &a.transport.hints)?.map(Arc::new);
    let protocol = config.protocol.label().to_string();
    let recording = a.record.start("tunnel serve", &protocol, format!("UDP at {listen}"))?;
    let lines = log.clone();
    let page = ShownConnections::open(&a.live, "tunnel serve", config.protocol.label())?;
    let metrics = a.metrics.endpoint()?;
    let refusals = metrics.refusals.clone();
    let options = ServerOptions {
        identity,
        permissions,
        tun: a.tun.clone(),
        config,
        permit,
        learned,
        tap: metrics.beside(ShownConnections::beside(page.as_ref(), recording.tap("server"))),
        lookup: dial::system(),
        log: Arc::new(move |event| {
            let level = if event.is_warning { LogLevel::Warning } else { LogLevel::Info };
            event.line.iter().for_each(|line| lines.line(level, &event.client, line));
            event.refusal.iter().for_each(|refusal| refusals.add(&[refusal.word()], 1));
        }),
    };
    let ready = |at, tun: Option<String>| {
        let tun = tun.map_or(String::new(), |tun| format!("  {tun}\n"));
        shown_ready(&format!("Serving a tunnel\n{tun}{}", urls(&name, at)))
    };
    let lines = log.clone();
    let warn = move |line: &str| lines.line(LogLevel::Warning, "allow", line);
    let look =
        |server: &TunnelServer| daemon::reload(&log, || reload(a, &mut bounds, server, &log));
    let done = blocking::serve(listen, options, ready, warn, look, &STOP);
    daemon::stopping();
    recording.finish(done.map_err(Failure::from))
}

fn connect(a: &TunnelConnectArgs) -> Result<(), Failure> {
    catch_signals();
    let Some(url) = &a.url else {
        return Err(input("tunnel connect: the server is missing: rrtp://[KEY@]HOST:PORT"));
    };
    let shown = error::shown(url);
    let url = Url::read(url)?;
    let entrances = entrances(a)?;
    if url.scheme != Scheme::Rrtp || !url.path.is_root() || url.port == 0 {
        return Err(Failure::Input(format!(
            "'{shown}': a tunnel's server is named as rrtp://[KEY@]HOST:PORT, without a path"
        )));
    }
    if entrances.is_empty() {
        return Err(input(
            "tunnel connect: there is no entrance to the tunnel: give --socks 1080, or --tcp, as in --tcp 8080:intranet:80, or --udp, --http-proxy, --reverse, --stdio or --tun",
        ));
    }
    let config = a.transport.connection()?;
    let log = Arc::new(Log::of_known(&a.log)?);
    // ssh shows the error stream of its ProxyCommand: there, only the error that ends it is of interest.
    let is_silent = a.stdio.is_some() && a.log.log.is_none();
    let identity = client_key(a.identity.as_deref())?;
    let known = known_servers()?;
    let server = url.server();
    let key = match url.key {
        Some(key) => Some(key),
        None => known.get(&server)?,
    };
    let learned = remembered(a, &server)?;
    let protocol = config.protocol.label().to_string();
    let recording = a.record.start("tunnel connect", &protocol, format!("the path to {shown}"))?;
    let page = ShownConnections::open(&a.live, "tunnel connect", config.protocol.label())?;
    let lines = log.clone();
    let metrics = a.metrics.endpoint()?;
    let options = ClientOptions {
        peer: Peer {
            host: url.host.clone(),
            port: url.port,
            key,
            judge: Box::new(move |found| pin(&known, &server, found)),
            identity,
            config,
            patience: narrows_net::OPENING_TIMEOUT,
            paths: a.paths.named()?,
            tap: metrics.beside(ShownConnections::beside(page.as_ref(), recording.tap("client"))),
        },
        receiving: PathHints { rate: a.receive_rate, ..a.transport.hints.receiving() },
        silence: SILENCE,
        incoming: 0,
        learned,
        tell: Box::new(move |line| {
            if !is_silent {
                lines.line(LogLevel::Info, "tunnel", line);
            }
        }),
    };
    let ready = |open: &[(_, String)]| {
        if a.stdio.is_some() {
            // The standard output carries the connection.
            return Ok(());
        }
        let lines = open.iter().map(|(at, to)| format!("  {at} leads to {to}\n"));
        shown_ready(&format!("Tunnel\n{}", lines.collect::<String>()))
    };
    // ssh sends SIGHUP to its ProxyCommand at the end of a session; the end of its input ends the command.
    let is_proxy_command = a.stdio.is_some();
    let look = || {
        if !is_proxy_command {
            daemon::reload(&log, daemon::nothing_to_reload);
        }
    };
    let done = blocking::connect(options, entrances, ready, look, &STOP);
    daemon::stopping();
    recording.finish(done.map_err(Failure::from))
}

/// The file of learned paths, and the name of the path to this server, if `--learn` is set.
fn remembered(
    a: &TunnelConnectArgs,
    server: &str,
) -> Result<Option<(Arc<LearnedPaths>, String)>, Failure> {
    let Hints { rate, rtt, loss, .. } = &a.transport.hints;
    if !a.learn {
        return Ok(None);
    }
    if rate.is_some() || rtt.is_some() || loss.is_some() {
        return Err(input(
            "--learn: --rate, --rtt and --loss describe the path already; leave out one or the other",
        ));
    }
    let file = LearnedPaths::at(key::config_folder()?.join("paths.toml"));
    let name = format!("to {server}");
    // Report an invalid file now.
    file.get(&name)?;
    Ok(Some((Arc::new(file), name)))
}
