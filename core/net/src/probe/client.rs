//! The probing client: runs the steps that [`Probe`] requests.

use super::peer::{PeerEvent, ProbePeer};
use super::server::LATE;
use super::{CONTROLLER, OVERHEAD, ProbeError, client_config};
use crate::block::sleep_until;
use crate::clock::Clock;
use crate::dial::ordered;
use crate::endpoint::{Driver, OPENING_TIMEOUT};
use crate::{ConnectOptions, Endpoint, Error, LocalPath, Options, block_on_for};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_probe::frames::{HEADER, ProbeFrame, TrainFrame};
use narrows_probe::{
    OverflowWatch, PathEstimate, Probe, RecordedWay, TraceRecording, TrainArrival, TrainObservation,
};
use narrows_probe::{ProbeDirection, ProbeStep};
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use std::net::SocketAddr;

/// Time limit of an answer beyond its expected duration, and two round trips.
const ANSWER: Duration = Duration::from_secs(4);

/// Server and options of a probe.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// UDP addresses; the first that answers is probed.
    pub servers: Vec<SocketAddr>,
    /// Expected key of the server.
    pub server_key: ServerKey,
    /// Where the packets leave; `None`: the system's routes decide.
    pub local: Option<LocalPath>,
    /// Key pair of this end.
    pub key: StaticKey,
    /// Whether the probe may overflow a queue, once in each direction.
    pub fill: bool,
    /// Whether to record both directions under light and heavy load after the probe.
    pub record: bool,
}

/// The result of a probe.
#[derive(Clone, Debug)]
pub struct Probed {
    /// Estimates of the path's properties.
    pub estimate: PathEstimate,
    /// Seconds from the first packet to the last answer.
    pub seconds: f64,
    /// Key of the server; `None` if it did not arrive.
    pub server_key: Option<[u8; 32]>,
    /// The recorded directions, there and back, if they were asked for.
    pub recorded: Option<[RecordedWay; 2]>,
}

/// Attempts while the server is busy with a former probe of this address, and the pause between them: together more than
/// the silence after which a server ends a probe.
const ATTEMPTS: u32 = 20;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Probes the path to a server, on this thread. `tell` receives the progress, from 0 to 1, and returns whether to
/// continue.
///
/// # Errors
/// See [`ProbeError`].
pub fn probe(
    mut options: ProbeOptions,
    tell: &mut dyn FnMut(f64) -> bool,
) -> Result<Probed, ProbeError> {
    let clock = Clock::new();
    let share = if options.record { 0.5 } else { 1.0 };
    let (estimate, server_key, remote, seconds) = while_busy(&mut || {
        if !tell(0.0) {
            return Err(ProbeError::Stopped);
        }
        let begun = clock.now();
        let mut link = ProbeConnection::open(&options)?;
        let mut probe = Probe::new(link.now(), link.rtt, options.fill);
        link.run(|now, done| {
            if let Some((step, observed)) = done {
                probe.on_train(&step, observed);
            }
            (probe.next(now), tell(share * probe.progress(now)))
        })?;
        let estimate = probe.estimate().ok_or(ProbeError::TooLittle)?;
        let seconds = clock.now().since(begun).as_secs_f64();
        let connection = &link.prober.peer.connection;
        Ok((estimate, connection.peer_key(), connection.remote(), seconds))
    })?;
    // The recording is of the same path.
    options.servers = ordered(options.servers, remote);
    let recorded = options.record.then(|| record(&options, &estimate, tell)).transpose()?;
    Ok(Probed { estimate, seconds, server_key, recorded })
}

/// Repeats `work` for about 2 s while the server is busy.
fn while_busy<T>(work: &mut dyn FnMut() -> Result<T, ProbeError>) -> Result<T, ProbeError> {
    for _ in 1..ATTEMPTS {
        match work() {
            Err(ProbeError::Busy { .. }) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    work()
}

/// Records the path over a connection of its own, since a server sends a bounded number of bytes to each.
fn record(
    options: &ProbeOptions,
    estimate: &PathEstimate,
    tell: &mut dyn FnMut(f64) -> bool,
) -> Result<[RecordedWay; 2], ProbeError> {
    while_busy(&mut || {
        let mut link = ProbeConnection::open(options)?;
        let mut recording = TraceRecording::new(link.now(), estimate);
        link.run(|now, done| {
            if let Some((step, observed)) = done {
                recording.on_train(&step, observed);
            }
            (recording.next(now), tell(0.5 + 0.5 * recording.progress(now)))
        })?;
        recording.recorded().ok_or(ProbeError::TooLittle)
    })
}

/// A connection for one probe; it is closed when this is dropped.
struct ProbeConnection {
    endpoint: Endpoint,
    prober: Prober,
    /// About a round trip.
    rtt: Duration,
}

impl ProbeConnection {
    fn open(options: &ProbeOptions) -> Result<ProbeConnection, ProbeError> {
        let config =
            client_config().map_err(|why| Error::Link { place: CONTROLLER.into(), why })?;
        let client = Options::client(options.key.clone(), config.clone()).driven_by(Driver::Thread);
        let endpoint = match &options.local {
            None => Endpoint::to_any(&options.servers, client)?,
            Some(path) => {
                let any_ipv6 = options.servers.iter().any(SocketAddr::is_ipv6);
                let socket = path.bind(any_ipv6).map_err(|e| Error::system(&e))?;
                Endpoint::with_socket(socket, client)?
            }
        };
        let connect = ConnectOptions::new(options.server_key, config);
        let clock = Clock::new();
        let max = std::time::Duration::from_nanos(OPENING_TIMEOUT.as_nanos() * 3);
        let dialling = endpoint.connect_any(&options.servers, connect, sleep_until);
        let connection = block_on_for(max, dialling).ok_or(ProbeError::Silent)??.value;
        let handshake = clock.now();
        let stream = block_on_for(max, connection.open_bi()).ok_or(ProbeError::Silent)??;
        // Connecting and the first stream take about two round trips.
        let measured = connection.stats().min_rtt;
        let halved = Duration::from_nanos(handshake.as_nanos() / 2);
        let rtt = if measured > Duration::ZERO && measured < halved { measured } else { halved };
        let answer = ANSWER + rtt.saturating_mul(2);
        let prober = Prober { peer: ProbePeer::new(connection, stream), train: 0, answer };
        Ok(ProbeConnection { endpoint, prober, rtt })
    }

    fn now(&self) -> Time {
        self.prober.peer.connection.now()
    }

    /// Sends each train that `next` returns, and passes it the observation; until it returns none, or false.
    fn run(
        &mut self,
        mut next: impl FnMut(Time, Option<(ProbeStep, TrainObservation)>) -> (Option<ProbeStep>, bool),
    ) -> Result<(), ProbeError> {
        let mut done = None;
        loop {
            match next(self.now(), done.take()) {
                (None, _) => return Ok(()),
                (_, false) => return Err(ProbeError::Stopped),
                (Some(step), true) => done = Some((step, self.prober.take(&step)?)),
            }
        }
    }
}

impl Drop for ProbeConnection {
    fn drop(&mut self) {
        self.prober.peer.connection.close(0, "");
        self.endpoint.close(0, "");
    }
}

struct Prober {
    peer: ProbePeer,
    train: u32,
    /// Time limit of an answer beyond its expected duration.
    answer: Duration,
}

impl Prober {
    fn take(&mut self, step: &ProbeStep) -> Result<TrainObservation, ProbeError> {
        self.train += 1;
        let train = TrainFrame {
            train: self.train,
            packets: step.train.packets,
            bytes: u16::try_from(step.train.bytes.saturating_sub(OVERHEAD))
                .unwrap_or(u16::MAX)
                .max(HEADER as u16),
            gap_ns: step.train.gap.as_nanos(),
            stop_at: step.stop_at,
            ce: u16::try_from(step.train.ce).unwrap_or(u16::MAX),
        };
        match step.way {
            ProbeDirection::Up => self.up(&train),
            ProbeDirection::Down => self.down(&train),
        }
    }

    /// Sends a train to the server.
    fn up(&mut self, train: &TrainFrame) -> Result<TrainObservation, ProbeError> {
        self.peer.say(&ProbeFrame::Up(*train))?;
        // The train's own rate is the hint, so that its schedule is kept.
        let bits = (u64::from(train.bytes) + u64::from(OVERHEAD)) * 8;
        if let Some(bps) = (bits * 1_000_000_000).checked_div(train.gap_ns) {
            let hints = PathHints { rate: Some(Rate::from_bps(bps)), ..PathHints::default() };
            self.peer.connection.reconfigure(&hints, HintSource::User)?;
        }
        let sent = self.peer.send_train(train)?;
        self.peer.say(&ProbeFrame::Sent { train: train.train, packets: sent.len() as u32 })?;
        let until = self.peer.connection.now() + self.answer;
        loop {
            let left = until.since(self.peer.connection.now());
            match self.peer.wait(left)? {
                None => return Err(ProbeError::Silent),
                Some(PeerEvent::Frame(ProbeFrame::Report { train: which, arrivals }))
                    if which == train.train =>
                {
                    return Ok(TrainObservation::new(sent, &arrivals));
                }
                Some(PeerEvent::Frame(ProbeFrame::Refused { why })) => {
                    return Err(ProbeError::Refused { reason: why });
                }
                Some(_) => {}
            }
        }
    }

    /// Receives a train from the server.
    fn down(&mut self, train: &TrainFrame) -> Result<TrainObservation, ProbeError> {
        // The server's announcement has arrived, because trains went to it before.
        if self.peer.connection.peer_protocol()? != CONTROLLER {
            return Err(ProbeError::OwnProtocol);
        }
        self.peer.say(&ProbeFrame::Down(*train))?;
        let whole = Duration::from_nanos(train.gap_ns).saturating_mul(u64::from(train.packets));
        let mut until = self.peer.connection.now() + whole + self.answer;
        let mut watch = OverflowWatch::new(train.stop_at);
        let mut arrivals = Vec::new();
        let mut stamps = vec![None; train.packets as usize];
        let mut all = None;
        let mut stopped = false;
        while all.is_none_or(|n| arrivals.len() < n) {
            let left = until.since(self.peer.connection.now());
            match self.peer.wait(left)? {
                None if all.is_some() => break,
                None => return Err(ProbeError::Silent),
                Some(PeerEvent::Packet(at, ecn, header)) if header.train == train.train => {
                    if let Some(stamp @ None) = stamps.get_mut(header.index as usize) {
                        *stamp = Some(header.sent_ns);
                        let index = header.index;
                        let at_ns = at.as_nanos();
                        arrivals.push(TrainArrival { index, at_ns, ecn });
                    }
                    if watch.on_arrival(header.index, ecn) && !stopped {
                        stopped = true;
                        self.peer.say(&ProbeFrame::Stop { train: train.train })?;
                    }
                }
                Some(PeerEvent::Frame(ProbeFrame::Sent { train: which, packets }))
                    if which == train.train =>
                {
                    all = Some(packets.min(train.packets) as usize);
                    until = self.peer.connection.now() + LATE;
                }
                Some(PeerEvent::Frame(ProbeFrame::Refused { why })) => {
                    return Err(ProbeError::Refused { reason: why });
                }
                Some(_) => {}
            }
        }
        stamps.truncate(all.unwrap_or(0));
        Ok(TrainObservation::new(between(&stamps, train.gap_ns), &arrivals))
    }
}

/// Interpolates the send times of lost packets between their neighbours'.
fn between(stamps: &[Option<u64>], gap_ns: u64) -> Vec<u64> {
    let known: Vec<(usize, u64)> =
        stamps.iter().enumerate().filter_map(|(i, s)| Some((i, (*s)?))).collect();
    let mut next = 0;
    let each = (0..stamps.len()).map(|i| {
        while known.get(next).is_some_and(|(k, _)| *k < i) {
            next += 1;
        }
        let before = next.checked_sub(1).and_then(|n| known.get(n));
        match (before, known.get(next)) {
            (_, Some((k, at))) if *k == i => *at,
            (Some((a, from)), Some((b, to))) => {
                let share = (i - a) as f64 / (b - a) as f64;
                from + (to.saturating_sub(*from) as f64 * share) as u64
            }
            (Some((a, from)), None) => from.saturating_add((i - a) as u64 * gap_ns),
            (None, Some((b, to))) => to.saturating_sub((b - i) as u64 * gap_ns),
            (None, None) => i as u64 * gap_ns,
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn lost_packets_left_between_their_neighbours() {
        let stamps = [None, Some(100), None, None, Some(130), None];
        assert_eq!(between(&stamps, 7), [93, 100, 110, 120, 130, 137]);
        assert_eq!(between(&[None, None], 5), [0, 5]);
    }
}
