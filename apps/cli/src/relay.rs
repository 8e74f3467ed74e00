//! `narrows relay`: an emulated link between two ports, which drives the simulator's own links in real time.

mod tcp;

use self::tcp::{LOOPBACK, TcpEnds};
use crate::failure::Failure;
use crate::live::{LiveArgs, shown};
use crate::metrics::{self, MetricsArgs};
use crate::record::RecordArgs;
use crate::terminal::{STOP, catch_interrupt, note, print};
use crate::transport::{PACKET, address, addresses, host_addresses};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_base::{Duration, SpecError};
use narrows_lab::options::values::{seed, time};
use narrows_link::LinkConfig;
use narrows_live::link::LiveLinkTap;
use narrows_live::metrics::link::LinkMetrics;
use narrows_net::relay::{
    DirectionStats, MAX_CLIENTS, MissedDatagram, Relay, RelayObserver, RelayStats, RelayTap,
    RelayedDatagram,
};
use narrows_scenario::BottleneckLink;
use narrows_scenario::link_direction::{LinkDirection, TraceStart};
use narrows_scenario::plan::back_name;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Least time between two lines about clients that gave way.
const NOTE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(60);

#[derive(Args)]
pub struct RelayArgs {
    /// Read flags from this TOML file; those on the command line take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address that clients send to
    #[arg(long, value_name = "ADDR")]
    pub listen: String,
    /// Address of the server
    #[arg(long, value_name = "ADDR")]
    pub to: String,
    /// Path towards the server: RATE,DELAY[,key=value]* or a name from `narrows list links`
    #[arg(long, value_name = "SPEC|NAME", allow_hyphen_values = true)]
    pub link: String,
    /// Return path [default: the same rate, delay and queue without loss]
    #[arg(long, value_name = "SPEC|NAME", allow_hyphen_values = true)]
    pub link_back: Option<String>,
    /// Relay TCP connections instead of datagrams; the data cross the link under this controller [default: cubic]
    #[arg(long, value_name = "CONTROLLER", num_args = 0..=1, require_equals = true, default_missing_value = "cubic")]
    pub tcp: Option<String>,
    /// Seed of the losses and of where a trace begins; a simulation with this seed draws the same ones
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// Stop after this time instead of at Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Print the counters as one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

pub const HELP: &str = "\
Datagrams received at --listen cross --link to --to; answers cross --link-back.
Each counts with its UDP payload and 28 bytes of IP and UDP headers. Links have
the syntax of `narrows compare`; the delays of access= and egress= are added to
the link's own.

With --tcp all connections are streams of one rrtp connection across the link,
which has its own handshake, congestion control and retransmission.

Examples:
  narrows relay --listen 127.0.0.1:9000 --to 127.0.0.1:4433 \\
      --link 20Mbit/s,25ms,loss=1%
  narrows relay --tcp --listen 127.0.0.1:8080 --to 127.0.0.1:80 --link lte
  narrows relay --listen 127.0.0.1:9000 --to 127.0.0.1:4433 \\
      --link 1Mbit/s,250ms \\
      --link-back 1.5Mbit/s,250ms,loss=1%   loss on the downlink
  narrows relay --listen 127.0.0.1:9000 --to 127.0.0.1:4433 \\
      --link geo --record geo               with pcapng, series, report";

/// `narrows relay`.
pub fn relay(a: &RelayArgs) -> Result<(), Failure> {
    let listen = address("--listen", &a.listen)?;
    let (to, all) = host_addresses("--to", &a.to)?;
    let (there, back) = links(["--link", "--link-back"], &a.link, a.link_back.as_deref())?;
    let (mut forward, mut backward) = configs(&there, &back, a.seed);
    // Only a page can change them.
    forward.changes = a.live.live.is_some();
    backward.changes = a.live.live.is_some();
    let link =
        format!("{}; back {}", a.link, a.link_back.as_deref().unwrap_or("the same, lossless"));
    let feed = a.live.feed();
    let shown = feed.as_ref().and_then(|feed| shown(feed, "relay", &link, [&there, &back]));
    let (live, controls) = shown.unzip();
    // Opened first, so that an address in use does not leave a recording behind.
    let page = a.live.open(feed.as_ref(), controls)?;
    let counted = Arc::new(LinkMetrics::default());
    metrics::serve(a.metrics.bind()?, vec![counted.clone()])?;
    let recording = a.record.relay(link, vec![describe(&there), describe(&back)])?;
    let taps = recording
        .watch()
        .into_iter()
        .chain(live.map(|l| Arc::new(LiveLinkTap(l)) as Arc<dyn RelayTap>))
        .chain(a.metrics.address.is_some().then_some(counted as Arc<dyn RelayTap>));
    let mut tcp = a.tcp.as_deref().map(|name| TcpEnds::start(name, &a.to, &all)).transpose()?;
    let (at, far) = tcp.as_ref().map_or((listen, to), |ends| (LOOPBACK, ends.far));
    let relay = Relay::watched(at, far, &forward, &backward, a.seed, both(taps.collect()));
    let done = relay.map_err(|e| Failure::Outside(e.to_string())).and_then(|relay| {
        catch_interrupt();
        let at = relay.local_addr();
        let shown = match &mut tcp {
            Some(ends) => format!("TCP at {}", ends.open(listen, at)?),
            None => addresses(at),
        };
        note(&format!(
            "relaying {shown} to {to}: {}",
            directions([&there, &back], "--link-back", a.link_back.is_some())
        ));
        if all.len() > 1 && tcp.is_none() {
            note(&format!(
                "{} has {} addresses, and a relay of datagrams cannot tell which answers: it sends to {to}; name \
                 another by its address",
                a.to,
                all.len()
            ));
        }
        watch(&relay, a.duration);
        drop(tcp);
        let stats = relay.stop();
        print(&format!("{}\n", if a.json { json(&stats).to_string() } else { table(&stats) }))
    });
    drop(page);
    recording.finish(done)
}

/// Combines several observers of a relay into one.
fn both(mut taps: Vec<Arc<dyn RelayTap>>) -> Option<Arc<dyn RelayTap>> {
    if taps.len() < 2 { taps.pop() } else { Some(Arc::new(RelayTaps(taps))) }
}

#[derive(Debug)]
struct RelayTaps(Vec<Arc<dyn RelayTap>>);

impl RelayTap for RelayTaps {
    fn bound(&self, observer: RelayObserver) {
        self.0.iter().for_each(|tap| tap.bound(observer.clone()));
    }
    fn passed(&self, datagram: &RelayedDatagram<'_>) {
        self.0.iter().for_each(|tap| tap.passed(datagram));
    }
    fn missed(&self, datagram: &MissedDatagram) {
        self.0.iter().for_each(|tap| tap.missed(datagram));
    }
}

/// Both directions of the link by these flags.
pub fn links(
    flags: [&str; 2],
    there: &str,
    back: Option<&str>,
) -> Result<(LinkDirection, LinkDirection), Failure> {
    let read = |flag: &str, text: &str| -> Result<BottleneckLink, SpecError> {
        BottleneckLink::parse(text, Path::new(""))
            .and_then(BottleneckLink::folded)
            .map_err(|e| e.at(flag))
    };
    let BottleneckLink { forward, reverse: mirrored, .. } = read(flags[0], there)?;
    let back = match back {
        Some(text) => read(flags[1], text)?.forward,
        None => mirrored,
    };
    // A queue in BDP depends on both directions. From here on, queues are in packets and bytes, also on pages and in
    // recordings.
    let rtt = forward.delay + back.delay;
    Ok((forward.resolved(rtt, PACKET), back.resolved(rtt, PACKET)))
}

/// Both directions as configuration for the relay.
pub fn configs(there: &LinkDirection, back: &LinkDirection, seed: u64) -> (LinkConfig, LinkConfig) {
    let rtt = there.delay + back.delay;
    let config = |way: &LinkDirection, name: &str| {
        let mut config = way.config(rtt, PACKET, false);
        way.trace_start.unwrap_or(TraceStart::Random).enter(&mut config, name, seed);
        config
    };
    // The names of `compare`'s link, so that its traces begin at the same points.
    let name = "bottleneck";
    (config(there, name), config(back, &back_name(name)))
}

/// A direction as its keys and values.
pub fn describe(direction: &LinkDirection) -> String {
    let pairs: Vec<String> =
        direction.pairs().into_iter().map(|(k, v)| format!("{k} {v}")).collect();
    pairs.join(", ")
}

/// Both directions in a line. If only the forward path loses packets because the flag of the return path is not given,
/// the line names the flag.
pub fn directions([there, back]: [&LinkDirection; 2], flag: &str, is_given: bool) -> String {
    let is_one_way = !is_given && !there.loss.is_empty() && back.loss.is_empty();
    let hint = if is_one_way { format!(" (without loss; {flag} sets it)") } else { String::new() };
    format!("there: {}; back: {}{hint}", describe(there), describe(back))
}

/// Shows the traffic until it is time to stop.
fn watch(relay: &Relay, duration: Option<Duration>) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    let begun = Instant::now();
    let mut last = (begun, relay.stats());
    let mut noted: Option<(Instant, u64)> = None;
    while !STOP.load(Ordering::SeqCst)
        && duration.is_none_or(|d| begun.elapsed().as_secs_f64() < d.as_secs_f64())
    {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let seconds = last.0.elapsed().as_secs_f64();
        if seconds >= 1.0 {
            let now = relay.stats();
            let before = noted.map_or(0, |(_, clients)| clients);
            let is_due = noted.is_none_or(|(at, _)| at.elapsed() >= NOTE_INTERVAL);
            if now.clients_replaced > before && is_due {
                bar.suspend(|| note(&replaced(now.clients_replaced - before)));
                noted = Some((Instant::now(), now.clients_replaced));
            }
            let rate = |now: &DirectionStats, before: &DirectionStats| {
                (now.delivered_bytes - before.delivered_bytes) as f64 * 8e-6 / seconds
            };
            bar.set_message(format!(
                "there {:.2} Mbit/s, back {:.2} Mbit/s, {} clients, late by {:.2} ms on average",
                rate(&now.forward, &last.1.forward),
                rate(&now.reverse, &last.1.reverse),
                now.clients,
                now.lateness.mean_s * 1e3
            ));
            last = (Instant::now(), now);
        }
    }
    bar.finish_and_clear();
}

fn table(s: &RelayStats) -> String {
    let mut out = format!(
        "{:<6}{:>10}{:>11}{:>9}{:>8}{:>8}{:>13}{:>13}\n",
        "", "offered", "delivered", "dropped", "lost", "marked", "mean queue", "longest"
    );
    for (name, w) in [("there", &s.forward), ("back", &s.reverse)] {
        out += &format!(
            "{name:<6}{:>10}{:>11}{:>9}{:>8}{:>8}{:>10.2} ms{:>10.2} ms\n",
            w.offered_packets,
            w.delivered_packets,
            w.dropped,
            w.lost,
            w.marked,
            w.mean_wait_s() * 1e3,
            w.longest_wait_s * 1e3
        );
    }
    out.truncate(out.trim_end().len());
    out += &too_large([&s.forward, &s.reverse]);
    if s.clients_replaced > 0 {
        out += &format!("\n{}", replaced(s.clients_replaced));
    }
    let late = s.lateness;
    out += &format!(
        "\nThe relay itself was late by {:.3} ms on average, {:.3} ms for one in a hundred,\n{:.1} ms at worst.",
        late.mean_s * 1e3,
        late.p99_s * 1e3,
        late.max_s * 1e3
    );
    out
}

/// A line about clients that gave way.
fn replaced(clients: u64) -> String {
    format!(
        "More than {MAX_CLIENTS} clients: {clients} without an answer, or the longest idle, gave way to new ones."
    )
}

/// A line about packets above the MTU, if there were any: forward, reverse.
pub fn too_large(ways: [&DirectionStats; 2]) -> String {
    let [there, back] = ways.map(|way| way.too_large);
    if there + back == 0 {
        return String::new();
    }
    format!("\nOf the dropped packets {there} there and {back} back were larger than mtu=.")
}

pub fn json(s: &RelayStats) -> Value {
    let direction = |w: &DirectionStats| {
        json!({
            "offered_packets": w.offered_packets, "offered_bytes": w.offered_bytes,
            "delivered_packets": w.delivered_packets, "delivered_bytes": w.delivered_bytes,
            "dropped": w.dropped, "too_large": w.too_large, "lost": w.lost, "marked": w.marked,
            "mean_queue_s": w.mean_wait_s(), "longest_queue_s": w.longest_wait_s,
        })
    };
    json!({
        "there": direction(&s.forward), "back": direction(&s.reverse),
        "late_mean_s": s.lateness.mean_s, "late_p99_s": s.lateness.p99_s,
        "late_max_s": s.lateness.max_s, "clients": s.clients_seen, "clients_replaced": s.clients_replaced,
        "refused": s.refused, "errors": s.errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If only the forward path loses packets, the line names the flag of the return path.
    #[test]
    fn a_link_that_loses_one_way_names_the_other_flag() {
        let line = |there: &str, back: Option<&str>| {
            let (a, b) = links(["--link", "--back"], there, back).unwrap();
            directions([&a, &b], "--back", back.is_some())
        };
        let hint = "(without loss; --back sets it)";
        assert!(line("10Mbit/s,20ms,loss=2%", None).ends_with(hint));
        for (there, back) in [
            ("10Mbit/s,20ms", None),
            ("10Mbit/s,20ms,loss=2%", Some("10Mbit/s,20ms")),
            ("10Mbit/s,20ms,loss=2%", Some("10Mbit/s,20ms,loss=2%")),
        ] {
            assert!(!line(there, back).contains(hint), "{there} {back:?}");
        }
    }
}
