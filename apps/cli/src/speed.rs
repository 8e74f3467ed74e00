//! `narrows speed`: memory to memory over real sockets.

mod args;
mod on_page;
mod over_paths;

pub use args::SpeedArgs;

use self::args::SEED;
use self::on_page::SpeedPage;
use crate::failure::Failure;
use crate::live::ShownConnections;
use crate::local_paths::{CarriedBytes, shares};
use crate::relay;
use crate::terminal::{STOP, TerminalBar, catch_interrupt, note, print};
use crate::transport::{address, addresses, host_addresses};
use narrows_net::endpoint::new_key;
use narrows_net::relay::{Relay, RelayStats};
use narrows_net::tap::{self, Tap};
use narrows_peers::path_choice::PathChoices;
use narrows_record::Recorder;
use narrows_scenario::link_direction::LinkDirection;
use narrows_speed::{Amount, MeasurementTaps, Speed, SpeedDirection, SpeedResult, SpeedServer};
use narrows_transport::Protocol;
use narrows_transport::endpoint::{Clients, ServerKey};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub const HELP: &str = "\
Goodput counts data received in order, from the beginning of the handshake.

Examples:
  narrows speed                                        this machine's limit
  narrows speed --link 20Mbit/s,25ms,loss=1%           over an emulated link
  narrows speed --link geo --protocol rrtp+cubic       another controller
  narrows speed --link geo --protocol 'rrtp(rtt=600ms)'  with a hint
  narrows speed --link geo --record geo                with pcapng, qlog, report
  narrows speed --link lte --duration 60s --live       a page; break the link
  narrows speed --serve --listen '[::]:4433'           at one place
  narrows speed example.org:4433 --duration 30s        at another
  narrows speed example.org:4433 --path all            over all its lines";

fn outside(e: narrows_net::Error) -> Failure {
    Failure::Outside(e.to_string())
}

/// `narrows speed`.
pub fn speed(a: &SpeedArgs) -> Result<(), Failure> {
    let listen = address("--listen", a.listen.as_deref().unwrap_or("127.0.0.1:0"))?;
    let protocol = a.transport().protocol()?;
    let paths = over_paths::choices(a)?;
    if a.serve {
        let shown = ShownConnections::open(&a.live, "speed --serve", protocol.label())?;
        let recording = a.record.start("speed", protocol.label(), format!("UDP at {listen}"))?;
        let tap = ShownConnections::beside(shown.as_ref(), recording.tap("server"));
        let done = serve(a, listen, tap);
        return recording.finish(done);
    }
    let link = match (&a.link, &a.server) {
        (Some(link), _) => link.clone(),
        (_, Some(server)) => format!("the path to {server}"),
        _ => "this machine's loopback".to_string(),
    };
    let links = match &a.link {
        Some(link) => Some(relay::links(["--link", "--link-back"], link, None)?),
        None => None,
    };
    let directions = links.as_ref().map(|(there, back)| [there, back]);
    let page = SpeedPage::open(a, &protocol, &link, directions)?;
    let recording = a.record.start("speed", protocol.label(), link)?;
    let done = measure(a, listen, protocol, paths, recording.recorder(), links, page.as_ref());
    let done = recording.finish(done);
    if let Some(page) = page.filter(|_| done.is_ok()) {
        page.finish();
    }
    done
}

fn measure(
    a: &SpeedArgs,
    listen: SocketAddr,
    protocol: Protocol,
    paths: PathChoices,
    recorder: Option<Arc<Recorder>>,
    links: Option<(LinkDirection, LinkDirection)>,
    page: Option<&SpeedPage>,
) -> Result<(), Failure> {
    let amount = a.duration;
    let speed = Speed {
        connections: usize::from(a.connections),
        direction: if a.down { SpeedDirection::Down } else { SpeedDirection::Up },
        taps: taps(a, recorder.as_ref(), page),
        ..Speed::new(protocol, amount)
    };
    catch_interrupt();
    let bar = TerminalBar::new("measuring".into());
    let mut tell = |seconds: f64, bytes: u64| {
        bar.tell(match amount {
            Amount::Time(all) => seconds / all.as_secs_f64(),
            Amount::Bytes(all) => bytes as f64 / (all as f64 * speed.connections as f64),
        });
        bar.say(|| format!("{:.1} Mbit/s", bytes as f64 * 8e-6 / seconds.max(1e-9)));
        !STOP.load(Ordering::SeqCst)
    };
    let mut relay = None;
    let mut names = None;
    let result = match &a.server {
        Some(server) if !paths.all.is_empty() => {
            let (_, to) = host_addresses("the server", server)?;
            let opened = over_paths::open(&speed, &paths, &to)?;
            names = Some(opened.names);
            speed.run_on(opened.open, &mut tell)
        }
        Some(server) if a.listen.is_none() => {
            let (_, to) = host_addresses("the server", server)?;
            speed.run(&to, ServerKey::Any, None, &mut tell)
        }
        relay_address => {
            let through = relay_address.as_deref().map(|t| address("the relay", t)).transpose()?;
            speed.local(
                listen,
                |server| {
                    if let Some((there, back)) = &links {
                        let any = SocketAddr::new(server.ip(), 0);
                        let (mut there, mut back) = relay::configs(there, back, SEED);
                        there.changes = page.is_some();
                        back.changes = page.is_some();
                        let watch = page.and_then(SpeedPage::watch);
                        let started = Relay::watched(any, server, &there, &back, SEED, watch)?;
                        return Ok(relay.insert(started).local_addr());
                    }
                    Ok(through.unwrap_or(server))
                },
                &mut tell,
            )
        }
    };
    bar.finish();
    let result = result.map_err(outside)?;
    let carried = names.map_or(Vec::new(), |names| over_paths::carried(a, &result, &names));
    let link = relay.map(Relay::stop);
    if let (Some(recorder), Some(link)) = (&recorder, &link) {
        recorder.note(of_link(a, link).trim_end_matches('.').to_string());
    }
    let text = if a.json {
        as_json(a, &result, link.as_ref(), &carried).to_string()
    } else {
        as_text(a, &result, link.as_ref(), &carried)
    };
    print(&(text + "\n"))
}

/// Whether both ends are in this process.
fn is_local(a: &SpeedArgs) -> bool {
    a.server.is_none() || a.listen.is_some()
}

/// Observers: a page shows the sending end, or the one in this process.
fn taps(
    a: &SpeedArgs,
    recorder: Option<&Arc<Recorder>>,
    page: Option<&SpeedPage>,
) -> MeasurementTaps {
    let sends = if a.down && is_local(a) { "server" } else { "client" };
    let of = |name: &'static str| {
        let live = page.filter(|_| name == sends).map(SpeedPage::tap);
        tap::joined(recorder.map(|r| r.tap(name)).into_iter().chain(live))
    };
    MeasurementTaps { client: of("client"), server: of("server") }
}

fn serve(a: &SpeedArgs, listen: SocketAddr, tap: Option<Arc<dyn Tap>>) -> Result<(), Failure> {
    let key = new_key().map_err(outside)?;
    let server = SpeedServer::start(listen, key, Clients::Any, a.transport().connection()?, tap)
        .map_err(outside)?;
    note(&format!(
        "measuring for any client at {}; Ctrl-C ends it",
        addresses(server.local_addr())
    ));
    catch_interrupt();
    while !STOP.load(Ordering::SeqCst) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(())
}

/// UDP payload bytes sent by this end per byte received.
fn offered(r: &SpeedResult) -> f64 {
    r.stats.bytes_sent as f64 / (r.bytes as f64).max(1.0)
}

/// Statistics of the emulated link, in the direction of the data.
fn of_link(a: &SpeedArgs, s: &RelayStats) -> String {
    let way = if a.down { &s.reverse } else { &s.forward };
    format!(
        "The link: {} offered, {} dropped, {} lost, queue {:.2} ms on average; late by {:.3} ms",
        way.offered_packets,
        way.dropped,
        way.lost,
        way.mean_wait_s() * 1e3,
        s.lateness.mean_s * 1e3
    )
}

fn as_text(
    a: &SpeedArgs,
    r: &SpeedResult,
    link: Option<&RelayStats>,
    carried: &[CarriedBytes],
) -> String {
    let mut out = format!(
        "{:.3} Mbit/s: {:.3} MB in {:.3} s, handshake {:.1} ms",
        r.goodput_bps() * 1e-6,
        r.bytes as f64 * 1e-6,
        r.seconds,
        r.handshake_s * 1e3
    );
    if !carried.is_empty() {
        out += &format!("; {}", shares(carried));
    }
    if !a.down {
        out += &format!(
            "\n{} packets sent, {} lost, {} timeouts, {:.3} bytes sent for each that arrived; RTT \
             {:.2} ms on average, {:.2} ms at least",
            r.stats.counters.sent,
            r.stats.counters.lost,
            r.stats.counters.timeouts,
            offered(r),
            r.mean_rtt_s * 1e3,
            r.stats.min_rtt.as_secs_f64() * 1e3
        );
    }
    if let Some(s) = link {
        out.push('\n');
        out += &of_link(a, s);
    }
    out + &format!(
        "\n{:.2} s of processor time{}: {:.2} s per GB",
        r.cpu_seconds,
        if is_local(a) { ", both ends" } else { "" },
        r.cpu_seconds / (r.bytes as f64 * 1e-9).max(1e-9)
    )
}

fn as_json(
    a: &SpeedArgs,
    r: &SpeedResult,
    link: Option<&RelayStats>,
    carried: &[CarriedBytes],
) -> serde_json::Value {
    json!({
        "protocol": a.protocol, "bytes": r.bytes, "seconds": r.seconds,
        "goodput_bps": r.goodput_bps(), "handshake_s": r.handshake_s,
        "per_connection": r.per_connection, "packets_sent": r.stats.counters.sent,
        "packets_lost": r.stats.counters.lost, "timeouts": r.stats.counters.timeouts,
        "bytes_sent": r.stats.bytes_sent, "messages": r.messages,
        "mean_rtt_s": r.mean_rtt_s, "min_rtt_s": r.stats.min_rtt.as_secs_f64(),
        "cpu_seconds": r.cpu_seconds, "both_ends": is_local(a),
        "link": link.map(relay::json), "paths": carried,
    })
}
