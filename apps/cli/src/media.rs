//! `narrows media`: live media from a local UDP port to another machine's, within a latency budget.

mod far_end;
mod groups;
mod on_page;
mod values;

use self::far_end::{ClientList, FarEnd, FarEndWords, coming, connected};
use self::groups::{GroupReceiveArgs, GroupSendArgs};
use self::values::{Layer, latency, layer, port};
use crate::daemon::{self, catch_signals};
use crate::failure::Failure;
use crate::live::{LiveArgs, ShownConnections};
use crate::local_paths::PathArgs;
use crate::log::{Log, LogArgs, LogLevel};
use crate::metrics::MetricsArgs;
use crate::terminal::{STOP, note, print, print_json, print_json_line};
use crate::transport::{Hints, TransportArgs, rate, urls};
use clap::{Args, Subcommand};
use narrows_base::{Duration, Rate, Spec};
use narrows_congestion::layers::MAX_LAYERS;
use narrows_lab::options::RARE;
use narrows_media::blocking::{self, Ready, SenderDestination};
use narrows_media::dial::Peer;
use narrows_media::encoder::EncoderRates;
use narrows_media::inlet::{InletEvent, Outs};
use narrows_media::outlet::OutletOptions;
use narrows_media::receive::ReceiveOptions;
use narrows_media::send::Offer;
use narrows_peers::access::AllowList;
use narrows_peers::refusals::RefusalLog;
use narrows_peers::{Error, ErrorKind, key};
use narrows_sim::protocol::{Family, STREAM_PREFIX, find};
use narrows_transport::endpoint::{ClientFilter, Permit};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub const HELP: &str = "\
The receiver accepts senders with a listed key, and passes the media to a UDP
port. The sender takes the datagrams of a program (ffmpeg, GStreamer, OBS) from
a UDP port: RTP, MPEG-TS or any other.

Each packet leaves the receiver after the path's shortest delay plus --latency,
counted from its arrival at the sender. Until then lost packets are repeated.

Examples:
  narrows media receive --clients friends.txt --to 5004 --listen '[::]:47472'
  narrows media send rrtp://KEY@host:47472 --from 5000 --latency 300ms
  ffmpeg -re -i clip.mp4 -c copy -f mpegts 'udp://127.0.0.1:5000?pkt_size=1316'
  ffplay 'udp://127.0.0.1:5004'

If the receiver is unreachable, for example behind a NAT, it connects instead:
  narrows media send --listen '[::]:47473' --clients viewers.txt --from 5000
  narrows media receive rrtp://KEY@host:47473 --to 5004

Each layer of a stream (simulcast, or a scalable encoder) has a port. The path's
rate determines which layers are sent; the base layer is always sent:
  narrows media send rrtp://KEY@host:47472 \\
    --layer 5000:500kbit/s --layer 5002:1.5Mbit/s
  narrows media receive --clients friends.txt --to 5004,5006

For many receivers, layers are sent to IP multicast groups. Each receiver joins
and leaves groups by its path's rate (Jayaram 2001). Packets are not sealed:
  narrows media send --multicast site --max-total 2Mbit/s \\
    --layer 5000:500kbit/s --layer 5002:1Mbit/s
  narrows media receive --multicast site --to 5004,5006

--live opens a page with frame delays, late frames, and the rates of encoder and
controller; it shows no keys and no media:
  narrows media receive --clients friends.txt --to 5004 --live

--protocol at the sender selects the controller: rrtp, tfrc, tfwc, tear,
tear-wireless, scream, rrtp+bbr and so on. --rate-lines (a line per change) and
--rate-http (JSON) report the rate for the encoder.";

#[derive(Args, Debug)]
pub struct MediaArgs {
    #[command(subcommand)]
    pub command: MediaCommand,
}

#[derive(Subcommand, Debug)]
pub enum MediaCommand {
    /// Accept listed senders, one at a time, or connect to a sender, and pass the media to a UDP port
    Receive(Box<Receive>),
    /// Send the media of a local UDP port to such a receiver, or to one that connects
    Send(Box<Send>),
}

#[derive(Args, Debug)]
pub struct Receive {
    /// Connect to this sender (media send --listen), as rrtp://[KEY@]HOST:PORT, instead of listening
    #[arg(id = "sender", value_name = "URL", conflicts_with_all = ["multicast", "listen", "clients"])]
    pub url: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Listen at HOST:PORT; port 0 takes a free one [default: 127.0.0.1:47472]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Accept senders with a key in this file (required, unless a URL is given)
    #[arg(long, value_name = "FILE", conflicts_with = "multicast")]
    pub clients: Option<PathBuf>,
    /// Destination of the media, on loopback unless an address is given; for a stream in layers, a destination for
    /// each, the base layer first, as 5004,5006 [default: 127.0.0.1:5004]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = port, value_delimiter = ',')]
    pub to: Vec<SocketAddr>,
    /// Minimum latency; a sender may request more
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub latency: Option<Duration>,
    /// Read flags and sender (the URL) from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the measures of each stream as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// End after the first stream
    #[arg(long)]
    pub once: bool,
    /// This receiver's key [default: server.key in the folder that `narrows key` names; client.key, if it connects]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub group: GroupReceiveArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

#[derive(Args, Debug)]
pub struct Send {
    /// The receiver, as rrtp://[KEY@]HOST:PORT
    #[arg(id = "receiver", value_name = "URL", conflicts_with_all = ["multicast", "listen"])]
    pub url: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Instead of a URL: accept listed receivers at this HOST:PORT, one at a time; port 0 takes a free one
    #[arg(long, value_name = "ADDR", conflicts_with = "multicast")]
    pub listen: Option<String>,
    /// Accept receivers with a key in this file (required with --listen)
    #[arg(long, value_name = "FILE", conflicts_with = "receiver")]
    pub clients: Option<PathBuf>,
    /// Port to which a program sends its media, on loopback unless an address is given [default: 127.0.0.1:5000]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = port)]
    pub from: Option<SocketAddr>,
    /// Instead of --from: port and rate of a layer, as 5000:500kbit/s; once for each layer, the base layer first. A
    /// layer is sent while the rate suffices for it and those below
    #[arg(long, value_name = "[ADDR:]PORT:RATE", value_parser = layer, conflicts_with = "from")]
    pub layer: Vec<Layer>,
    /// Time from a packet's arrival here until it leaves the receiver, beyond the path's shortest delay: four round
    /// trips and 100 ms repair nearly all losses [default: 300ms]
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub latency: Option<Duration>,
    /// Minimum rate for the encoder [default: 300kbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub min_rate: Option<Rate>,
    /// Maximum rate for the encoder [default: 8Mbit/s, or that of all layers]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub max_rate: Option<Rate>,
    /// Print a line for each change of the encoder's rate, as rate 4200000 (bit/s)
    #[arg(long, hide_short_help = true, help_heading = RARE)]
    pub rate_lines: bool,
    /// Answer HTTP requests (GET /) at this port of loopback with that rate and more, as JSON; 0 takes a free one
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "PORT")]
    pub rate_http: Option<u16>,
    /// Read flags and receiver (the URL) from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the final statistics as JSON
    #[arg(long)]
    pub json: bool,
    /// This sender's key [default: client.key in the folder that `narrows key` names; server.key with --listen]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
    #[command(flatten)]
    pub group: GroupSendArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

/// `narrows media`.
///
/// # Errors
/// One line that describes the error.
pub fn media(a: &MediaArgs) -> Result<(), Failure> {
    match &a.command {
        MediaCommand::Receive(a) => receive(a),
        MediaCommand::Send(a) => send(a),
    }
}

/// Words for messages of the two commands about the other end.
const RECEIVES: FarEndWords =
    FarEndWords { command: "media receive", peer: "a sender", listen: "127.0.0.1:47472" };
const SENDS: FarEndWords =
    FarEndWords { command: "media send", peer: "a receiver", listen: "127.0.0.1:47473" };

fn input(line: &str) -> Failure {
    Failure::Input(line.into())
}

fn silent() -> Error {
    Error::new(ErrorKind::Local, "cannot write to the standard output")
}

fn receive(a: &Receive) -> Result<(), Failure> {
    a.paths.check_connects(a.url.as_ref())?;
    let mut to = a.to.clone();
    if to.is_empty() {
        to.push((Ipv4Addr::LOCALHOST, 5004).into());
    }
    if to.iter().any(|to| to.port() == 0) {
        return Err(input("--to: port 0 is not a destination"));
    }
    if to.len() > MAX_LAYERS {
        return Err(Failure::Input(format!("--to: there are {MAX_LAYERS} layers at most")));
    }
    let places: Vec<_> = to.iter().map(SocketAddr::to_string).collect();
    if let Some(base) = a.group.group.multicast {
        let log = Log::of_known(&a.log)?;
        return groups::receive(&a.group, base, to, a.latency, a.json, &log, &a.live);
    }
    catch_signals();
    // This end sends little itself: only requests for missing packets.
    let hints = Hints { rate: None, rtt: None, loss: None, limit: None };
    let config = TransportArgs { protocol: "rrtp".into(), hints }.connection()?;
    let identity = a.identity.as_deref();
    let end = match &a.url {
        Some(url) => connected(url, RECEIVES, identity, config.clone(), a.paths.named()?)?,
        None => coming(a.listen.as_ref(), a.clients.as_ref(), RECEIVES, identity)?,
    };
    let log = Arc::new(Log::of_known(&a.log)?);
    let json = a.json;
    let once = a.once;
    let lines = log.clone();
    let tell = move |event: &InletEvent| match event {
        InletEvent::Line { is_warning, sender, line } => {
            let level = if *is_warning { LogLevel::Warning } else { LogLevel::Info };
            lines.line(level, sender, line);
        }
        InletEvent::Over(measures) => {
            let shown = match json {
                true => print_json_line(&serde_json::to_value(measures).unwrap_or_default()),
                false => print(&format!("A stream is over\n{}", measures.text())),
            };
            if shown.is_err() || once {
                STOP.store(true, Ordering::SeqCst);
            }
        }
    };
    let tell = Box::new(tell);
    let (page, observer) = on_page::of_receiver(&a.live, config.protocol.label())?;
    let metrics = a.metrics.endpoint()?;
    let tap = metrics.beside(ShownConnections::beside(page.as_ref(), None));
    let outs = Outs { to, latency: a.latency, tell, observer };
    // With --json the standard output has only JSON.
    let say = |line: String| {
        if json {
            note(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            print(&line).map_err(|_| silent())?;
        }
        daemon::ready();
        Ok(())
    };
    let places = places.join(", ");
    let done = match end {
        FarEnd::At(sender) => {
            let ready = || say(format!("Receiving media\n  for {places}\n"));
            blocking::view(outs, Peer { tap, ..*sender }, ready, &STOP)
        }
        FarEnd::Comes { at, list, identity } => {
            let name = key::text(identity.public());
            let ready = |at| {
                let urls = urls(&name, at);
                say(format!("Receiving media\n{urls}  for {places}\n"))
            };
            let permit = Permit::Own;
            let clients = list.load()?;
            let options =
                ReceiveOptions { identity, clients, config, permit, filter: logged(&log), tap };
            let look = |set: &dyn Fn(&AllowList)| reload(&log, Some(&list), set);
            blocking::receive(at, outs, options, ready, look, &STOP)
        }
    };
    daemon::stopping();
    Ok(done?)
}

/// Reads the list of clients again if SIGHUP has come.
/// Logs clients that are refused.
fn logged(log: &Arc<Log>) -> ClientFilter {
    let log = Arc::clone(log);
    RefusalLog::filter(move |from, key, reason| {
        let line = format!("{} ({from}): {reason}", key::text(key));
        log.line(LogLevel::Warning, &from.to_string(), &line);
    })
}

fn reload(log: &Log, list: Option<&ClientList>, set: &dyn Fn(&AllowList)) {
    daemon::reload(log, || {
        let Some(list) = list else { return daemon::nothing_to_reload() };
        let clients = list.reload()?;
        set(&clients);
        Ok(format!("{} clients", clients.len()))
    });
}

/// Translates a protocol for media to its form over sockets, `rrtp+NAME`.
fn over_sockets(text: &str) -> String {
    let name = Spec::parse(text).ok().map(|spec| spec.name);
    let entry = name.and_then(|name| find(&name).ok());
    match entry {
        Some(entry) if entry.family == Family::Media => format!("{STREAM_PREFIX}{text}"),
        _ => text.into(),
    }
}

fn send(a: &Send) -> Result<(), Failure> {
    a.paths.check_connects(a.url.as_ref())?;
    let layers = &a.layer;
    if layers.len() > MAX_LAYERS {
        return Err(Failure::Input(format!("--layer: {MAX_LAYERS} layers at most")));
    }
    if let Some(base) = a.group.group.multicast {
        if a.live.live.is_some() {
            return Err(input(
                "--live: groups send no reports to the sender; media receive --multicast has --live",
            ));
        }
        return groups::send(&a.group, base, layers, a.json);
    }
    catch_signals();
    let all: u64 = layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.rate.as_bps()));
    let encoder = EncoderRates {
        min: a.min_rate.unwrap_or(Rate::from_bps(300_000)),
        max: a.max_rate.unwrap_or(match all {
            0 => Rate::from_bps(8_000_000),
            all => Rate::from_bps(all.max(300_000)),
        }),
    };
    if encoder.min > encoder.max || encoder.min.as_bps() == 0 {
        return Err(input("--min-rate: it is above 0, and not above --max-rate"));
    }
    let protocol = over_sockets(&a.transport.protocol);
    let transport = TransportArgs { protocol, hints: a.transport.hints.clone() };
    let config = transport.connection()?;
    let identity = a.identity.as_deref();
    let end = match (&a.url, &a.listen) {
        (Some(url), _) => connected(url, SENDS, identity, config.clone(), a.paths.named()?)?,
        (None, Some(listen)) => coming(Some(listen), a.clients.as_ref(), SENDS, identity)?,
        (None, None) => {
            return Err(input(
                "media send: the receiver is missing: rrtp://[KEY@]HOST:PORT, or --listen for one that connects",
            ));
        }
    };
    let log = Arc::new(Log::of_known(&a.log)?);
    let lines = log.clone();
    let says_rates = a.rate_lines;
    let (page, on_state) = on_page::of_sender(&a.live, config.protocol.label())?;
    let metrics = a.metrics.endpoint()?;
    let tap = metrics.beside(ShownConnections::beside(page.as_ref(), None));
    let media = OutletOptions {
        latency: a.latency.unwrap_or(Duration::from_millis(300)),
        encoder,
        link: a.transport.hints.rate,
        layers: match &layers[..] {
            [] => vec![encoder.max],
            layers => layers.iter().map(|layer| layer.rate).collect(),
        },
        on_rate: Box::new(move |rate| {
            // If the reading script has ended, the command ends at the next check.
            if says_rates && print(&format!("rate {}\n", rate.as_bps())).is_err() {
                STOP.store(true, Ordering::SeqCst);
            }
        }),
        tell: Box::new(move |line| lines.line(LogLevel::Info, "media", line)),
        on_state,
    };
    let (receiver, name, list) = match end {
        FarEnd::At(receiver) => {
            (SenderDestination::At(Peer { tap, ..*receiver }), String::new(), None)
        }
        FarEnd::Comes { at, list, identity } => {
            let name = key::text(identity.public());
            let clients = list.load()?;
            (
                SenderDestination::Comes(
                    at,
                    Offer { identity, clients, config, filter: logged(&log), tap },
                ),
                name,
                Some(list),
            )
        }
    };
    let is_quiet = a.rate_lines || a.json;
    let ready = |ready: &Ready<'_>| {
        let from: Vec<_> = ready.from.iter().map(SocketAddr::to_string).collect();
        let from = from.join(", ");
        let said = |at: Option<SocketAddr>, say: &dyn Fn(SocketAddr) -> String| {
            at.map_or(String::new(), |at| format!("  {}\n", say(at)))
        };
        let rate = said(ready.rate, &|at| format!("the encoder's rate: http://{at}/"));
        let listens = ready.listens.map_or(String::new(), |at| urls(&name, at));
        let line = format!("Sending media\n  from {from}\n{listens}{rate}");
        if is_quiet {
            note(&line.split_whitespace().collect::<Vec<_>>().join(" "))
        } else {
            print(&line).map_err(|_| silent())?
        }
        daemon::ready();
        Ok(())
    };
    let from = match &layers[..] {
        [] => vec![a.from.unwrap_or((Ipv4Addr::LOCALHOST, 5000).into())],
        layers => layers.iter().map(|layer| layer.from).collect(),
    };
    let look = |set: &dyn Fn(&AllowList)| reload(&log, list.as_ref(), set);
    let state = blocking::send(&from, a.rate_http, media, receiver, ready, look, &STOP);
    daemon::stopping();
    let state = state?;
    if a.json {
        return print_json(&serde_json::to_value(&state).unwrap_or_default());
    }
    let line = format!(
        "{} packets sent, {} repeated, {} of repair, {} dropped after waiting too long, {} late at the receiver",
        state.packets, state.repeated, state.repairs, state.dropped, state.late
    );
    let line = match from.len() {
        1 => line,
        all => format!(
            "{line}, {} of {all} layers at the end, {} quality switches",
            state.layers, state.quality_switches
        ),
    };
    if is_quiet {
        note(&line)
    } else {
        print(&(line + "\n"))?
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_protocol_keeps_its_name_over_sockets() {
        for (text, spoken) in [
            ("tfrc", "rrtp+tfrc"),
            ("tear-wireless", "rrtp+tear-wireless"),
            ("fixed(rate=2Mbit/s)", "rrtp+fixed(rate=2Mbit/s)"),
            ("rrtp", "rrtp"),
            ("rrtp+bbr", "rrtp+bbr"),
            ("cubic", "cubic"),
        ] {
            assert_eq!(over_sockets(text), spoken);
        }
    }
}
