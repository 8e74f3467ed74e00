//! The same transfer over the same link twice: in simulation, and over real sockets through a relay.
//!
//! The link, the protocol and the seed are the same. Uniform losses are paired, because the relay numbers packets as
//! the simulator does; chain models (bursts) go through the same states, packet by packet of the link. The remaining
//! differences are those of real systems: the clock, wake-ups, and how often a real receiver reports.

use crate::{Amount, MAX_MESSAGE_BYTES, Speed, TrafficKind};
use narrows_base::{Duration, Spec, Time};
use narrows_link::LinkConfig;
use narrows_net::relay::{Lateness, Relay};
use narrows_scenario::BottleneckLink;
use narrows_sim::protocol::{self, Family};
use narrows_sim::protocol::{DatagramConfig, FlowProtocol, Protocol};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec, run};
use std::net::SocketAddr;
use std::path::Path;

/// Bytes of IP and UDP headers. Links count them, an endpoint's payload does not include them.
const HEADERS: u64 = 28;

/// All headers around a message, at most, and the seal.
const MESSAGE_OVERHEAD: u32 = 100;

/// A measurement to run in simulation and with real packets.
#[derive(Clone, Debug)]
pub struct SimVsReal {
    /// The protocol in the form of `--protocol`: one of the `rrtp` endpoint, with a stream or media messages.
    pub protocol: String,
    /// The link in the form of `--link`.
    pub link: String,
    /// Bytes of a full packet on the link: 1500, or 1228 on links below 300 kbit/s, where real
    /// datagrams stay small.
    pub packet: u32,
    /// How long, the handshake included, s.
    pub seconds: f64,
}

/// Measured values of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredRun {
    /// Application bits per second that arrived in order, handshake included.
    pub goodput_bps: f64,
    /// Mean round-trip time over reports, s.
    pub rtt_s: f64,
    /// Mean time of a packet in the link's queue, s.
    pub wait_s: f64,
    /// UDP payload bytes offered to the link for each application byte that arrived in order.
    pub offered: f64,
}

impl SimVsReal {
    /// Checks that the measurement is possible.
    ///
    /// # Errors
    /// A protocol or link that cannot be, in one line.
    pub fn check(&self) -> Result<(), String> {
        self.simulated_protocol()?;
        let link = self.link()?;
        let carries =
            link.forward.carries(self.packet).and_then(|()| link.reverse.carries(self.packet));
        carries.map_err(|e| e.to_string())
    }

    fn link(&self) -> Result<BottleneckLink, String> {
        BottleneckLink::parse(&self.link, Path::new(""))
            .and_then(BottleneckLink::folded)
            .map_err(|e| e.to_string())
    }

    /// The link's two directions, as relays and emulators use them.
    fn ways(&self) -> Result<[LinkConfig; 2], String> {
        let link = self.link()?;
        let rtt = link.forward.delay + link.reverse.delay;
        Ok([&link.forward, &link.reverse].map(|way| way.config(rtt, self.packet, false)))
    }

    fn protocol(&self, packet: u32) -> Result<Protocol, String> {
        Protocol::read(&self.spec()?, packet).map_err(|e| e.to_string())
    }
    /// As simulated: with the handshake of a connection.
    fn simulated_protocol(&self) -> Result<FlowProtocol, String> {
        let mut spec = self.spec()?;
        let mut packet = self.packet;
        if let Some(bytes) = self.message()? {
            if !spec.args.iter().any(|a| a.0.as_deref() == Some("handshake")) {
                spec.args.push((Some("handshake".into()), "on".into()));
            }
            packet = u32::from(bytes) + DatagramConfig::default().header_bytes;
        }
        Protocol::read(&spec, packet).map(FlowProtocol::from).map_err(|e| e.to_string())
    }
    fn spec(&self) -> Result<Spec, String> {
        Spec::parse(&self.protocol).map_err(|e| e.to_string())
    }
    /// Bytes of a media message: the largest that fits into a packet of the link together with a report.
    fn message(&self) -> Result<Option<u16>, String> {
        let bytes = self.packet.saturating_sub(MESSAGE_OVERHEAD).min(MAX_MESSAGE_BYTES as u32);
        Ok((self.family()? == Family::Media).then_some(bytes as u16))
    }

    fn family(&self) -> Result<Family, String> {
        protocol::find(&self.spec()?.name).map(|entry| entry.family).map_err(|e| e.to_string())
    }

    /// In simulation.
    ///
    /// # Errors
    /// A protocol or link that cannot be, in one line.
    pub fn simulated(&self, seed: u64) -> Result<MeasuredRun, String> {
        self.simulated_late(seed, Duration::ZERO)
    }

    /// In simulation with late timers, of mean lateness `mean`. Relay and sending host are late, so packets are up to
    /// four times as late, uniformly, in both directions.
    ///
    /// # Errors
    /// The protocol or link is invalid; one line.
    pub fn simulated_late(&self, seed: u64, mean: Duration) -> Result<MeasuredRun, String> {
        let ways = self.ways()?.map(|mut config| {
            let max = config.impairments.jitter + mean.saturating_mul(4);
            config.impairments.jitter = max;
            config
        });
        let end = Time::from_secs_f64(self.seconds);
        let bulk = Spec::parse("bulk").and_then(|s| SourceSpec::read(&s));
        let bulk = bulk.map_err(|e| e.to_string())?;
        let spec = between(self.simulated_protocol()?, bulk, 1, ways, end, seed);
        let result = run(&spec, &mut |_| true).map_err(|e| e.to_string())?;
        let nothing = || "the simulation has no results".to_string();
        let group = result.groups.first().ok_or_else(nothing)?;
        let forward = result.links.first().ok_or_else(nothing)?;
        let (flow, on_link) =
            group.flows.first().zip(forward.groups.first()).ok_or_else(nothing)?;
        let bytes = flow.goodput_bytes as f64;
        let payload = on_link.offered_bytes.saturating_sub(HEADERS * on_link.offered);
        Ok(MeasuredRun {
            goodput_bps: bytes * 8.0 / self.seconds,
            rtt_s: group.rtt.mean().unwrap_or(f64::NAN) * 1e-9,
            // Little: waiting packets over time, by packets served per second.
            wait_s: forward.queue_mean * result.span_s / (on_link.served as f64).max(1.0),
            offered: payload as f64 / bytes.max(1.0),
        })
    }

    /// Over real sockets and a relay in this process. Also returns the relay's lateness.
    ///
    /// # Errors
    /// The protocol or link is invalid, or an error of the sockets; one line.
    pub fn real(&self, seed: u64) -> Result<(MeasuredRun, Lateness), String> {
        // `true` means "continue": the run is not stopped early, and failures are still errors.
        self.real_while(seed, &|| true)
    }

    /// The same, as long as `goes_on` returns true; it is called repeatedly.
    ///
    /// # Errors
    /// As [`real`](SimVsReal::real). A run that was stopped early is not an error, but has no valid result.
    pub fn real_while(
        &self,
        seed: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(MeasuredRun, Lateness), String> {
        let [forward, reverse] = self.ways()?;
        let amount = Amount::Time(Duration::from_secs_f64(self.seconds));
        let traffic = self.message()?.map_or(TrafficKind::Stream, TrafficKind::Messages);
        // A real endpoint finds the path's packets itself.
        let speed = Speed { traffic, ..Speed::new(self.protocol(1500)?, amount) };
        let any: SocketAddr = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let mut relay = None;
        let through = |server| {
            let started = Relay::bind(any, server, &forward, &reverse, seed)?;
            Ok(relay.insert(started).local_addr())
        };
        let r = speed.local(any, through, &mut |_, _| goes_on()).map_err(|e| e.to_string())?;
        let stats = relay.map(Relay::stop).ok_or("no relay was started")?;
        let way = stats.forward;
        let payload = way.offered_bytes.saturating_sub(HEADERS * way.offered_packets);
        let seen = MeasuredRun {
            goodput_bps: r.goodput_bps(),
            rtt_s: r.mean_rtt_s,
            wait_s: way.mean_wait_s(),
            offered: payload as f64 / (r.bytes as f64).max(1.0),
        };
        Ok((seen, stats.lateness))
    }
}

/// A simulation of `flows` flows of a protocol over a link in both directions.
pub fn between(
    protocol: FlowProtocol,
    source: SourceSpec,
    flows: usize,
    ways: [LinkConfig; 2],
    end: Time,
    seed: u64,
) -> NetworkSpec {
    let names = ["bottleneck", "bottleneck.back"];
    let links = names.into_iter().zip(ways).map(|(name, config)| LinkSpec {
        name: name.into(),
        config: config.into(),
        metered: true,
    });
    let flow = FlowSpec::new(vec![0], vec![1]);
    NetworkSpec {
        seed,
        end,
        links: links.collect(),
        groups: vec![GroupSpec { name: "main".into(), protocol, source, flows: vec![flow; flows] }],
        ..NetworkSpec::default()
    }
}
