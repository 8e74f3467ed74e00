//! The server's side: sends the requested trains, and reports arrivals.

use super::peer::{PeerEvent, ProbePeer};
use super::{APPLICATION, BUSY, OVERHEAD, ProbeError, ProbeGate, REFUSED};
use crate::{Connection, block_on_for};
use narrows_base::{Duration, Time};
use narrows_probe::frames::{HEADER, MAX_PACKETS, ProbeFrame, TrainFrame, TrainHeader};
use narrows_probe::{Budget, MAX_TIME, OverflowWatch, TrainArrival};

/// Time limit of a probe, including delays of a loaded host, beyond its round trips.
const LONGEST: Duration = Duration::from_secs(20);
/// Round trips of a probe that sends each train once, and the longest that counts.
const ROUND_TRIPS: u64 = 16;
const MAX_ROUND_TRIP: Duration = Duration::from_secs(20);
/// Time limit of the first request, and of packets that arrive after the train's end was announced.
const FIRST: std::time::Duration = std::time::Duration::from_secs(5);
/// A probe whose client is silent for this time, or for three round trips if longer, gives its place to the next probe of
/// that network.
const SILENT: Duration = Duration::from_secs(1);
const SILENT_RTTS: u64 = 3;
pub(super) const LATE: Duration = Duration::from_millis(30);

/// Answers a probe on a thread of its own if `gate` has a place for this client; else closes the connection with the
/// reason.
pub fn answer(connection: Connection, gate: &ProbeGate) {
    let Some(remote) = connection.remote() else { return };
    let held = connection.clone();
    let place = match gate.enter(remote.ip(), Box::new(move || is_over(&held))) {
        Ok(place) => place,
        Err(why) => return connection.close(BUSY, why),
    };
    let handle = connection.clone();
    let spawned = std::thread::Builder::new().name("narrows-probe".into()).spawn(move || {
        let stream = block_on_for(FIRST, connection.accept_bi());
        let Some(Ok(stream)) = stream else {
            drop(place);
            return connection.close(REFUSED, "no request came");
        };
        let mut answering = Answering::new(ProbePeer::new(connection, stream));
        let done = answering.run();
        let connection = &answering.peer.connection;
        // First, because a client that sees the end may begin another probe.
        drop(place);
        match done {
            // The client adds that it was refused.
            Err(ProbeError::Refused { reason }) => connection.close(REFUSED, &reason),
            Err(e @ ProbeError::BadFrame) => connection.close(REFUSED, &e.to_string()),
            _ => connection.close(0, ""),
        }
    });
    if spawned.is_err() {
        handle.close(BUSY, "busy: the server has no thread left");
    }
}

/// Whether a probe is over. If its client fell silent, as after a lost CLOSE, this ends it.
fn is_over(connection: &Connection) -> bool {
    let Ok((silence, _)) = connection.silence() else { return true };
    let is_silent = silence > connection.stats().srtt.saturating_mul(SILENT_RTTS).max(SILENT);
    if is_silent {
        connection.close(BUSY, "another probe of this address has begun");
    }
    is_silent || connection.is_closed()
}

/// Whether a connection is a probe.
pub async fn is_probe(connection: &Connection) -> bool {
    connection.application().await.is_ok_and(|name| name.as_deref() == Some(APPLICATION))
}

struct Answering {
    peer: ProbePeer,
    began: Time,
    budget: Budget,
    received: TrainArrivals,
}

impl Answering {
    fn new(peer: ProbePeer) -> Answering {
        let began = peer.connection.now();
        Answering { peer, began, budget: Budget::default(), received: TrainArrivals::default() }
    }

    /// Runs until the client ends the probe, or until the time limit.
    fn run(&mut self) -> Result<(), ProbeError> {
        loop {
            let passed = self.peer.connection.now().since(self.began);
            let rtt = match self.peer.connection.stats().min_rtt {
                Duration::ZERO => MAX_ROUND_TRIP,
                measured => measured.min(MAX_ROUND_TRIP),
            };
            if passed >= LONGEST + rtt.saturating_mul(ROUND_TRIPS) {
                return Ok(());
            }
            match self.peer.wait(MAX_TIME + rtt.saturating_mul(2))? {
                None => return Ok(()),
                Some(PeerEvent::Packet(at, ecn, header)) => {
                    if self.received.on_packet(at, ecn, &header) {
                        self.peer.say(&ProbeFrame::Stop { train: header.train })?;
                    }
                }
                Some(PeerEvent::Frame(ProbeFrame::Up(train))) => self.received.expect(&train)?,
                Some(PeerEvent::Frame(ProbeFrame::Sent { train, packets })) => {
                    self.report(train, packets)?
                }
                Some(PeerEvent::Frame(ProbeFrame::Down(train))) => self.send(&train)?,
                // A train may end before the receiver's stop arrives.
                Some(PeerEvent::Frame(ProbeFrame::Stop { .. })) => {}
                Some(PeerEvent::Frame(ProbeFrame::Report { .. } | ProbeFrame::Refused { .. })) => {
                    return Err(ProbeError::BadFrame);
                }
            }
        }
    }

    fn send(&mut self, train: &TrainFrame) -> Result<(), ProbeError> {
        let refuse = |reason: &str| Err(ProbeError::Refused { reason: reason.into() });
        let bytes = u32::from(train.bytes) + OVERHEAD;
        if usize::from(train.bytes) < HEADER {
            return refuse("that is no train of a probe");
        }
        if let Err(why) =
            self.budget.check(train.packets, bytes, Duration::from_nanos(train.gap_ns))
        {
            return refuse(why);
        }
        if usize::from(train.bytes) > self.peer.connection.max_message_len()? {
            return refuse("packets of a probe are no longer than every path carries");
        }
        let sent = self.peer.send_train(train)?;
        self.budget.count(sent.len(), bytes);
        self.peer.say(&ProbeFrame::Sent { train: train.train, packets: sent.len() as u32 })
    }

    /// Waits a moment for late packets, and reports the arrivals.
    fn report(&mut self, train: u32, packets: u32) -> Result<(), ProbeError> {
        let until = self.peer.connection.now() + LATE;
        while !self.received.has_all(train, packets) {
            let left = until.since(self.peer.connection.now());
            match self.peer.wait(left)? {
                Some(PeerEvent::Packet(at, ecn, header)) => {
                    self.received.on_packet(at, ecn, &header);
                }
                Some(PeerEvent::Frame(_)) => return Err(ProbeError::BadFrame),
                None => break,
            }
        }
        let arrivals = self.received.take(train);
        self.peer.say(&ProbeFrame::Report { train, arrivals })
    }
}

/// Arrivals of the current train.
#[derive(Default)]
struct TrainArrivals {
    train: u32,
    arrivals: Vec<TrainArrival>,
    watch: Option<OverflowWatch>,
    stopped: bool,
}

impl TrainArrivals {
    fn begin(&mut self, train: u32) {
        if self.train != train {
            *self = TrainArrivals { train, ..TrainArrivals::default() };
        }
    }
    fn expect(&mut self, train: &TrainFrame) -> Result<(), ProbeError> {
        if train.packets > MAX_PACKETS {
            return Err(ProbeError::BadFrame);
        }
        self.begin(train.train);
        self.watch = Some(OverflowWatch::new(train.stop_at));
        Ok(())
    }
    /// Records a packet. Returns true once, when the train is to be stopped.
    fn on_packet(&mut self, at: Time, ecn: u8, header: &TrainHeader) -> bool {
        let TrainHeader { train, index, .. } = *header;
        // Ignore packets of an older train.
        if train < self.train || index >= MAX_PACKETS {
            return false;
        }
        self.begin(train);
        if self.arrivals.len() < MAX_PACKETS as usize {
            self.arrivals.push(TrainArrival { index, at_ns: at.as_nanos(), ecn });
        }
        let stop = self.watch.as_mut().is_some_and(|w| w.on_arrival(index, ecn));
        stop && !std::mem::replace(&mut self.stopped, true)
    }
    fn has_all(&self, train: u32, packets: u32) -> bool {
        self.train == train && self.arrivals.len() >= packets as usize
    }
    fn take(&mut self, train: u32) -> Vec<TrainArrival> {
        if self.train == train { std::mem::take(&mut self.arrivals) } else { Vec::new() }
    }
}
