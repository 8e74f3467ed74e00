//! The media of one connection: from the local sockets into the connection, as fast as the controller permits.

use crate::connection::{MAX_DATAGRAM, RECEIVE_BUFFER, message, readable, until};
use crate::demand::{Demand, DemandInputs, PacketCounts};
use crate::encoder::{EncoderInputs, EncoderRate, EncoderRates};
use crate::layered::Layered;
use crate::packet::HEAD;
use crate::sender::{PathMeasurements, SenderCounters};
use crate::waiting::{CauseTracker, DropsByCause, PAUSED, WaitingSample};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::layers::LayerChange;
use narrows_congestion::{HintSource, PathHints};
use narrows_net::{Connection, Error as NetError};
use narrows_transport::connection::Stats;
use serde::Serialize;
use tokio::net::UdpSocket;

/// Interval of updates of the encoder's rate.
const RATE_EVERY: Duration = Duration::from_millis(50);
/// Interval at which the connection is checked for room while parts wait: the resolution of timers.
const LOOK: Duration = Duration::from_millis(1);
/// Target time in seconds that packets spend in the connection's queue. It is short because repeats can overtake only
/// packets that still wait here.
const IN_CONNECTION: f64 = 0.006;
/// Gain of the loss rate's moving average, which is updated once a second.
const LOSS_GAIN: f64 = 1.0 / 4.0;
/// IP and UDP headers of a packet, in bytes.
const HEADERS: f64 = 28.0;
/// Number of split datagrams after which the user is informed; by then path MTU discovery has finished.
const SPLIT_TOLD: u64 = 250;
/// Minimum interval between reports of dropped packets.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// A pause of this process that explains drops by itself; busy machines have shorter ones.
const LONG_PAUSE: Duration = Duration::from_millis(200);

/// State of the sending end, for programs.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MediaFlowState {
    /// The encoder's target rate in bit/s.
    pub bits_per_second: u64,
    /// The controller's rate on the link, in bit/s; 0 if it is not known.
    pub permitted: u64,
    /// The program's recent rate, in bit/s.
    pub sent: u64,
    /// Whether there is a connection.
    pub connected: bool,
    /// Time that the oldest unsent packet has waited, in ms.
    pub waiting_ms: f64,
    /// Longest wait before a packet is dropped, in ms.
    pub longest_wait_ms: f64,
    /// Smoothed round-trip time, in ms.
    pub rtt_ms: f64,
    /// Packets sent, without repeats.
    pub packets: u64,
    /// Repeats sent.
    pub repeated: u64,
    /// Repair packets sent.
    pub repairs: u64,
    /// Packets dropped because they waited too long at this end.
    pub dropped: u64,
    /// The same packets, by the main cause of their waiting.
    pub dropped_by: DropsByCause,
    /// Messages, including repeats, that waited too long in the connection.
    pub expired: u64,
    /// Packets that did not arrive in time, as the receiver reports.
    pub late: u64,
    /// Number of layers that are sent.
    pub layers: usize,
    /// Number of times that a layer was added or dropped.
    pub quality_switches: u64,
    /// Datagrams received for layers that are not sent.
    pub left_out: u64,
}

/// Callback for the state.
pub type OnState = Box<dyn Fn(&MediaFlowState) + Send + Sync>;

/// The calls of a connection that a flow makes, so that tests can run it in virtual time.
pub trait MessageConnection {
    /// As of [`Connection::now`].
    fn now(&self) -> Time;
    /// As of [`Connection::stats`].
    fn stats(&self) -> Stats;
    /// As of [`Connection::max_message_len`].
    ///
    /// # Errors
    /// The connection is over.
    fn max_message_len(&self) -> Result<usize, NetError>;
    /// As of [`Connection::messages_waiting`].
    ///
    /// # Errors
    /// The connection is over.
    fn messages_waiting(&self) -> Result<usize, NetError>;
    /// As of [`Connection::hold_back`].
    ///
    /// # Errors
    /// The connection is over.
    fn hold_back(&self, bytes: u64) -> Result<(), NetError>;
    /// As of [`Connection::send_message`].
    ///
    /// # Errors
    /// As of [`Connection::send_message`].
    fn send_message(&self, message: &[u8], expiry: Duration) -> Result<(), NetError>;
    /// As of [`Connection::reconfigure`], with hints of this side's user.
    ///
    /// # Errors
    /// The connection is over.
    fn hint(&self, hints: &PathHints) -> Result<(), NetError>;
}

impl MessageConnection for Connection {
    fn now(&self) -> Time {
        self.now()
    }
    fn stats(&self) -> Stats {
        self.stats()
    }
    fn max_message_len(&self) -> Result<usize, NetError> {
        self.max_message_len()
    }
    fn messages_waiting(&self) -> Result<usize, NetError> {
        self.messages_waiting()
    }
    fn hold_back(&self, bytes: u64) -> Result<(), NetError> {
        self.hold_back(bytes)
    }
    fn send_message(&self, message: &[u8], expiry: Duration) -> Result<(), NetError> {
        self.send_message(message, expiry)
    }
    fn hint(&self, hints: &PathHints) -> Result<(), NetError> {
        self.reconfigure(hints, HintSource::User)
    }
}

/// Connection and callbacks of a flow.
pub struct Through<'a, C = Connection> {
    /// Connection to the receiver.
    pub connection: &'a C,
    /// Called with each new target rate for the encoder.
    pub on_rate: &'a (dyn Fn(Rate) + Send + Sync),
    /// Called with log lines for the user.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
    /// Called with the state 20 times a second.
    pub on_state: &'a (dyn Fn(MediaFlowState) + Send + Sync),
}

/// The sending side of one connection.
pub struct MediaFlow<'a, C = Connection> {
    through: Through<'a, C>,
    sender: Layered,
    encoder: EncoderRate,
    demand: Demand,
    next_rate: Time,
    watch: CauseTracker,
    /// The current maximum message size, and the number of datagrams split since it last changed; `None` once the user
    /// is informed.
    longest: usize,
    split: Option<u64>,
    /// Time of the last report of dropped packets.
    reported_at: Time,
    dropped: DropsByCause,
    /// Time and counters of the last update of the statistics below, about a second ago.
    second: (Time, SenderCounters),
    /// Repeats and repair packets per part.
    repeats: f64,
    sent: f64,
    /// Number of layers, including those that are not sent.
    layers: usize,
    /// Packets that the connection had sent and lost at that time; below, the recent loss rate.
    packets: (u64, u64),
    loss: f64,
}

impl MediaFlow<'_> {
    /// Sends the media of these sockets, one for each layer, until the connection ends; returns the reason.
    pub async fn run(&mut self, sockets: &[UdpSocket]) -> NetError {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let due = match self.turn() {
                Ok(due) => due,
                Err(e) => return e,
            };
            let asleep = self.through.connection.now();
            tokio::select! {
                () = readable(sockets) => self.read(sockets, &mut buffer),
                received = message(self.through.connection) => match received {
                    Ok((_, mut message)) => self.on_message(&mut message),
                    Err(e) => return e,
                },
                () = until(self.through.connection, due) => {}
            }
            // A turn is due 20 times a second, so after a longer time this process did not run.
            if self.through.connection.now().since(asleep) >= PAUSED {
                self.read_backlog(sockets, &mut buffer, asleep);
            }
        }
    }

    /// Reads all datagrams that came since `from`.
    fn read_backlog(&mut self, sockets: &[UdpSocket], buffer: &mut [u8], from: Time) {
        for (layer, socket) in sockets.iter().enumerate() {
            let mut backlog = Vec::new();
            let mut bytes = 0;
            while bytes < RECEIVE_BUFFER
                && let Ok(length) = socket.try_recv(buffer)
            {
                backlog.push(buffer.get(..length).unwrap_or_default().to_vec());
                bytes += length;
            }
            self.on_backlog(layer, &backlog, from);
        }
    }

    fn read(&mut self, sockets: &[UdpSocket], buffer: &mut [u8]) {
        for (layer, socket) in sockets.iter().enumerate() {
            // Read a limited number of datagrams, so that due packets can leave. An error may be an ICMP error that
            // concerns an earlier peer of the port.
            for _ in 0..64 {
                let Ok(length) = socket.try_recv(buffer) else { break };
                self.on_datagram(layer, buffer.get(..length).unwrap_or_default());
            }
        }
    }
}

impl<'a, C: MessageConnection> MediaFlow<'a, C> {
    /// A flow that has not sent anything. `link` is the link's rate, if the user gave it.
    pub fn new(
        through: Through<'a, C>,
        latency: Duration,
        encoder: EncoderRates,
        layers: &[Rate],
        link: Option<Rate>,
    ) -> MediaFlow<'a, C> {
        let rates: Vec<f64> = layers.iter().map(|rate| rate.as_bps() as f64).collect();
        let now = through.connection.now();
        MediaFlow {
            through,
            sender: Layered::new(&rates, latency),
            encoder: EncoderRate::new(encoder),
            demand: Demand::new(encoder.max, link),
            next_rate: now,
            watch: CauseTracker::new(now),
            longest: 0,
            split: Some(0),
            reported_at: Time::ZERO,
            dropped: DropsByCause::default(),
            second: (now, SenderCounters::default()),
            repeats: 0.0,
            sent: 0.0,
            layers: layers.len(),
            packets: (0, 0),
            loss: 0.0,
        }
    }

    /// Hands packets that are due to the connection. Call it after each datagram and message, and at the returned time.
    ///
    /// # Errors
    /// The connection is over.
    pub fn turn(&mut self) -> Result<Time, NetError> {
        let now = self.through.connection.now();
        let stats = self.through.connection.stats();
        let look = WaitingSample {
            heard: stats.bytes_received,
            flight: stats.flight,
            window: stats.window,
            srtt: stats.srtt,
        };
        let waited = self.watch.on_look(now, &look, self.sender.is_waiting());
        if let Some((cause, lasted)) = waited {
            self.sender.on_waited(cause, lasted);
        }
        self.sender.end_blocks(now, self.path(&stats));
        let demand = DemandInputs {
            bytes: self.sender.sent().bytes,
            sent: self.sent,
            permitted: stats.permitted,
            packets: PacketCounts {
                sent: stats.counters.sent,
                lost: stats.counters.lost,
                flight: stats.flight,
            },
            packet: 8.0 * (f64::from(stats.datagram) + HEADERS),
            srtt: stats.srtt,
            min_rtt: stats.min_rtt,
            waited: self.sender.oldest_wait(now),
            longest_wait: self.sender.longest_wait(self.path(&stats)),
            is_after_pause: self.watch.paused(now) > Duration::ZERO,
        };
        if let Some(rate) = self.demand.ask(now, &demand) {
            self.through
                .connection
                .hint(&PathHints { rate: Some(rate), ..PathHints::default() })?;
        }
        self.hand_over(now, &stats)?;
        self.watch.on_handed_over(self.sender.is_waiting());
        if self.next_rate <= now {
            self.next_rate = now + RATE_EVERY;
            self.update_rate(now, &stats);
        }
        let look = if self.sender.is_waiting() { now + LOOK } else { Time::NEVER };
        Ok(look.min(self.sender.block_ends()).min(self.next_rate))
    }

    /// Handles a message of the receiver.
    pub fn on_message(&mut self, message: &mut [u8]) {
        self.sender.on_message(message);
    }

    /// Handles a datagram of the program, for this layer.
    pub fn on_datagram(&mut self, layer: usize, datagram: &[u8]) {
        self.take(self.through.connection.now(), layer, datagram);
    }

    /// Handles datagrams that came since `from`, while this process did not run. Their times are not known, so equal
    /// intervals are assumed: what is too old is dropped, and does not delay newer media.
    pub fn on_backlog(&mut self, layer: usize, datagrams: &[Vec<u8>], from: Time) {
        let gone = self.through.connection.now().since(from);
        for (n, datagram) in datagrams.iter().enumerate() {
            let share = (n + 1) as f64 / datagrams.len() as f64;
            self.take(from + gone.mul_f64(share), layer, datagram);
        }
    }

    /// Takes a datagram that came at `at`.
    fn take(&mut self, at: Time, layer: usize, datagram: &[u8]) {
        // If the connection is over, its next call returns the error.
        if let Ok(longest) = self.through.connection.max_message_len() {
            self.sender.on_datagram(at, layer, datagram, longest);
            self.on_length(datagram.len(), longest);
        }
    }

    /// Informs the user once if datagrams are split into several packets.
    fn on_length(&mut self, length: usize, longest: usize) {
        let room = longest.saturating_sub(HEAD);
        // The maximum size grows during path MTU discovery.
        let is_new = std::mem::replace(&mut self.longest, longest) != longest;
        let Some(split) = &mut self.split else { return };
        *split = if is_new { 0 } else { *split + u64::from(length > room) };
        if *split >= SPLIT_TOLD {
            self.split = None;
            (self.through.tell)(&split_line(length, room));
        }
    }

    /// Hands packets to the connection until its queue lasts for [`IN_CONNECTION`].
    fn hand_over(&mut self, now: Time, stats: &Stats) -> Result<(), NetError> {
        let path = self.path(stats);
        let rate = stats.permitted.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let max = (rate * IN_CONNECTION / packet).clamp(2.0, 64.0) as usize;
        while self.sender.is_waiting() && self.through.connection.messages_waiting()? < max {
            let Some(leaving) = self.sender.next(now, path) else { break };
            match self.through.connection.send_message(&leaving.message, leaving.expiry) {
                Ok(()) => {}
                // The path's MTU has become smaller. The packet counts as lost; the receiver requests it if there is
                // time.
                Err(NetError::MessageTooLong { .. } | NetError::MessageTooLongNow { .. }) => {}
                Err(NetError::MessagesFull) => break,
                Err(e) => return Err(e),
            }
        }
        if stats.delay_difference > Duration::ZERO {
            self.through.connection.hold_back(self.sender.bytes_waiting() as u64)?;
        }
        Ok(())
    }

    fn path(&self, stats: &Stats) -> PathMeasurements {
        PathMeasurements { srtt: stats.srtt, min_rtt: stats.min_rtt, loss: self.loss }
    }

    /// Call this once a second with the connection's counts of packets sent and lost.
    fn on_losses(&mut self, sent: u64, lost: u64) {
        let before = std::mem::replace(&mut self.packets, (sent, lost));
        let sent = sent.saturating_sub(before.0);
        let lost = lost.saturating_sub(before.1);
        if sent > 0 {
            let share = (lost as f64 / sent as f64).min(0.5);
            self.loss += LOSS_GAIN * (share - self.loss);
        }
    }

    fn update_rate(&mut self, now: Time, stats: &Stats) {
        let sent = self.sender.sent();
        let gone = now.since(self.second.0);
        if gone >= Duration::from_secs(1) {
            let (_, before) = std::mem::replace(&mut self.second, (now, sent));
            let parts = (sent.parts - before.parts).max(1) as f64;
            let more = sent.repeats + sent.repairs - before.repeats - before.repairs;
            self.repeats = more as f64 / parts;
            self.on_losses(stats.counters.sent, stats.counters.lost);
            self.sent = (sent.bytes - before.bytes) as f64 * 8.0 / gone.as_secs_f64();
            let is_after_pause = self.watch.paused(now) > Duration::ZERO;
            if sent.dropped.by_limits() == before.dropped.by_limits() && !is_after_pause {
                self.demand.on_carried(self.sent);
            }
        }
        let path = self.path(stats);
        let known = EncoderInputs {
            permitted: stats.permitted,
            sent: Rate::from_bps_f64(self.sent),
            repeats: self.repeats,
            waited: self.sender.oldest_wait(now),
            longest_wait: self.sender.longest_wait(path),
        };
        if let Some(rate) = self.encoder.update(now, &known) {
            (self.through.on_rate)(rate);
        }
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let room = self.encoder.room();
        if let Some(change) = self.sender.adapt(now, room, stats.srtt, packet) {
            (self.through.tell)(&self.layer_line(change));
        }
        let quality = self.sender.quality();
        (self.through.on_state)(MediaFlowState {
            layers: quality.active(),
            quality_switches: quality.changes(),
            left_out: self.sender.left_out(),
            bits_per_second: self.encoder.rate().as_bps(),
            permitted: known.permitted.map_or(0, Rate::as_bps),
            sent: self.sent as u64,
            connected: true,
            waiting_ms: known.waited.as_secs_f64() * 1e3,
            longest_wait_ms: known.longest_wait.as_secs_f64() * 1e3,
            rtt_ms: stats.srtt.as_secs_f64() * 1e3,
            packets: sent.parts,
            repeated: sent.repeats,
            repairs: sent.repairs,
            dropped: sent.dropped.all(),
            dropped_by: sent.dropped,
            expired: stats.counters.expired,
            late: 0,
        });
        let all = sent.dropped.all();
        if all > self.dropped.all() && now.since(self.reported_at) >= TELL_EVERY {
            (self.through.tell)(&self.dropped_line(now, &sent.dropped));
            self.dropped = sent.dropped;
            self.reported_at = now;
        }
    }
}

/// A line for the user about datagrams that do not fit into one packet each.
fn split_line(length: usize, room: usize) -> String {
    // For MPEG-TS, a multiple of its 188 bytes; for other media that is only slightly less than the maximum.
    let max = if room < 188 { room } else { room / 188 * 188 };
    format!(
        "datagrams of {length} bytes take {} packets each; with at most {max} bytes they take one (ffmpeg: \
         ?pkt_size={max})",
        length.div_ceil(room.max(1))
    )
}

impl<C: MessageConnection> MediaFlow<'_, C> {
    fn layer_line(&self, change: LayerChange) -> String {
        let quality = self.sender.quality();
        let all = self.layers;
        let what = match change {
            LayerChange::Added => "added",
            LayerChange::Dropped => "dropped",
        };
        let mbit = quality.consumption() * 1e-6;
        format!("a layer is {what}: {} of {all} now, {mbit:.2} Mbit/s", quality.active())
    }

    /// A line about the packets dropped since the last report, with the cause.
    fn dropped_line(&self, now: Time, dropped: &DropsByCause) -> String {
        let stood = |drops: &DropsByCause| drops.silence + drops.suspended;
        let drops = RecentDrops {
            count: dropped.all() - self.dropped.all(),
            stood_still: stood(dropped) - stood(&self.dropped),
            paused: self.watch.paused(now),
        };
        drops.line(self.sent, self.encoder.rate())
    }
}

/// Packets dropped since the last report.
struct RecentDrops {
    count: u64,
    /// Those that waited for a silent path or this process.
    stood_still: u64,
    /// How long this process did not run.
    paused: Duration,
}

impl RecentDrops {
    /// A line for the user; `sent` is the encoder's rate in bit/s, and `target` the one given to it.
    fn line(&self, sent: f64, target: Rate) -> String {
        let dropped = format!("{} packets were dropped before their deadline", self.count);
        if self.paused >= LONG_PAUSE {
            let seconds = self.paused.as_secs_f64();
            return format!("{dropped}: this process did not run for {seconds:.1} s");
        }
        if 2 * self.stood_still > self.count {
            return format!("{dropped}: the path or one of the ends stood still");
        }
        if sent <= target.as_bps() as f64 {
            return format!("{dropped}: the path permitted less than the encoder sends");
        }
        let mbit = |bps: f64| bps * 1e-6;
        format!(
            "the encoder sends {:.2} Mbit/s where {:.2} are told to it: {dropped}",
            mbit(sent),
            mbit(target.as_bps() as f64)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_after_a_pause_do_not_blame_the_encoder() {
        let drops = |paused, stood_still| RecentDrops { count: 10, stood_still, paused };
        let line = |drops: RecentDrops| drops.line(12e6, Rate::from_bps(4_000_000));
        let seconds = Duration::from_secs;
        assert!(line(drops(seconds(2), 0)).ends_with("this process did not run for 2.0 s"));
        assert!(line(drops(seconds(0), 6)).ends_with("stood still"));
        assert!(
            line(drops(seconds(0), 0)).starts_with("the encoder sends 12.00 Mbit/s where 4.00")
        );
    }

    #[test]
    fn drops_of_encoder_below_target_do_not_blame_it() {
        let drops = RecentDrops { count: 10, stood_still: 0, paused: Duration::ZERO };
        let line = drops.line(3e6, Rate::from_bps(4_000_000));
        assert!(line.ends_with("the path permitted less than the encoder sends"), "{line}");
    }
}
