//! The media of one connection: from the local socket into the connection, as fast as the controller permits.

use crate::connection::{MAX_DATAGRAM, message, readable, until};
use crate::encoder::{EncoderRate, Known, Range};
use crate::layered::Layered;
use crate::packet::HEAD;
use crate::sender::{Path, Sent};
use crate::waiting::{Dropped, Look, Watch};
use narrows_base::{Duration, Rate, Time};
use narrows_net::{Connection, Error as NetError};
use narrows_transport::connection::Stats;
use narrows_transport::layers::LayerChange;
use serde::Serialize;
use tokio::net::UdpSocket;

/// How often the encoder's rate is computed.
const RATE_EVERY: Duration = Duration::from_millis(50);
/// While something waits to leave, it is looked so often whether there is room: as often as timers can.
const LOOK: Duration = Duration::from_millis(1);
/// What waits in the connection is to leave within about so long: what waits here can still be overtaken by repeats.
const IN_CONNECTION: f64 = 0.006;
/// The share of lost packets is a mean over so many seconds.
const LOSS_GAIN: f64 = 1.0 / 4.0;
/// IP and UDP headers of a packet.
const HEADERS: f64 = 28.0;
/// After so many datagrams in several packets each people are told: by then the path's packet size is known.
const SPLIT_TOLD: u64 = 250;
/// People are told of dropped packets so often.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What programs may ask.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct State {
    /// What the encoder is to send, in bit/s.
    pub bits_per_second: u64,
    /// What the controller permits on the link, in bit/s; 0 if that is not known.
    pub permitted: u64,
    /// What the program sent lately, in bit/s.
    pub sent: u64,
    /// Whether there is a connection.
    pub connected: bool,
    /// How long the oldest packet waits to leave, in ms.
    pub waiting_ms: f64,
    /// How long one may wait before it is dropped, in ms.
    pub longest_wait_ms: f64,
    /// Round-trip time, in ms.
    pub rtt_ms: f64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that left again.
    pub repeated: u64,
    /// Packets of repair.
    pub repairs: u64,
    /// Packets that waited too long here, and were dropped.
    pub dropped: u64,
    /// The same by the main cause of their waiting.
    pub dropped_by: Dropped,
    /// Messages (packets, repeats among them) that waited too long in the connection.
    pub expired: u64,
    /// Packets that were not there in time, as the receiver says.
    pub late: u64,
    /// Layers that are sent.
    pub layers: usize,
    /// How often a layer was added or dropped.
    pub quality_switches: u64,
    /// Datagrams that came for layers that were not sent.
    pub left_out: u64,
}

/// Told what is known.
pub type OnState = Box<dyn Fn(&State) + Send + Sync>;

/// What a flow goes through, and who is told of it.
pub struct Through<'a> {
    /// Where programs send the media of each layer to, the base layer first.
    pub sockets: &'a [UdpSocket],
    /// To the receiver.
    pub connection: &'a Connection,
    /// Told each rate for the encoder.
    pub on_rate: &'a (dyn Fn(Rate) + Send + Sync),
    /// Told a line when something happens that people should know.
    pub tell: &'a (dyn Fn(&str) + Send + Sync),
    /// Told what is known, some times a second.
    pub on_state: &'a (dyn Fn(State) + Send + Sync),
}

/// The media of one connection.
pub struct Flow<'a> {
    through: Through<'a>,
    sender: Layered,
    encoder: EncoderRate,
    next_rate: Time,
    watch: Watch,
    /// The longest message, and datagrams that took several packets since it has been that; `None` once people know.
    longest: usize,
    split: Option<u64>,
    /// At the last report of dropped packets.
    told: Time,
    dropped: Dropped,
    /// Counters a second ago, and the shares since.
    second: (Time, Sent),
    /// Repeats and repairs for each part.
    repeats: f64,
    sent: f64,
    /// Packets that the connection had sent, and found lost; and the share of lost ones lately.
    packets: (u64, u64),
    loss: f64,
}

impl<'a> Flow<'a> {
    /// With nothing sent.
    pub fn new(
        through: Through<'a>,
        latency: Duration,
        encoder: Range,
        layers: &[Rate],
    ) -> Flow<'a> {
        let rates: Vec<f64> = layers.iter().map(|rate| rate.as_bps() as f64).collect();
        let now = through.connection.now();
        Flow {
            through,
            sender: Layered::new(&rates, latency),
            encoder: EncoderRate::new(encoder),
            next_rate: now,
            watch: Watch::new(now),
            longest: 0,
            split: Some(0),
            told: Time::ZERO,
            dropped: Dropped::default(),
            second: (now, Sent::default()),
            repeats: 0.0,
            sent: 0.0,
            packets: (0, 0),
            loss: 0.0,
        }
    }

    /// Sends until the connection is over; returns why it is.
    pub async fn run(&mut self) -> NetError {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let now = self.through.connection.now();
            let stats = self.through.connection.stats();
            let look = Look {
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
            if let Err(e) = self.hand_over(now, &stats) {
                return e;
            }
            if self.next_rate <= now {
                self.next_rate = now + RATE_EVERY;
                self.update_rate(now, &stats);
            }
            let look = if self.sender.is_waiting() { now + LOOK } else { Time::NEVER };
            let look = look.min(self.sender.block_ends());
            tokio::select! {
                () = readable(self.through.sockets) => self.on_datagrams(&mut buffer),
                came = message(self.through.connection) => match came {
                    Ok((_, mut message)) => self.sender.on_message(&mut message),
                    Err(e) => return e,
                },
                () = until(self.through.connection, look.min(self.next_rate)) => {}
            }
        }
    }

    fn on_datagrams(&mut self, buffer: &mut [u8]) {
        let longest = self.through.connection.max_message_len();
        let now = self.through.connection.now();
        for (layer, socket) in self.through.sockets.iter().enumerate() {
            // What is there, but no more than so many, since something may have to leave. An error is the ICMP error of
            // an earlier peer of that port, say.
            for _ in 0..64 {
                let Ok(length) = socket.try_recv(buffer) else { break };
                let datagram = buffer.get(..length).unwrap_or_default();
                // A connection that is over says so to the next that asks it.
                if let Ok(longest) = longest {
                    self.sender.on_datagram(now, layer, datagram, longest);
                    self.on_length(length, longest);
                }
            }
        }
    }

    /// Tells people once if datagrams take several packets each.
    fn on_length(&mut self, length: usize, longest: usize) {
        let room = longest.saturating_sub(HEAD);
        // Packets become longer while the path is found to take them.
        let is_new = std::mem::replace(&mut self.longest, longest) != longest;
        let Some(split) = &mut self.split else { return };
        *split = if is_new { 0 } else { *split + u64::from(length > room) };
        if *split >= SPLIT_TOLD {
            self.split = None;
            (self.through.tell)(&split_line(length, room));
        }
    }

    /// Hands to the connection what can leave soon.
    fn hand_over(&mut self, now: Time, stats: &Stats) -> Result<(), NetError> {
        let path = self.path(stats);
        let rate = permitted(stats).map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let most = (rate * IN_CONNECTION / packet).clamp(2.0, 64.0) as usize;
        while self.sender.is_waiting() && self.through.connection.messages_waiting()? < most {
            let Some(leaving) = self.sender.next(now, path) else { break };
            match self.through.connection.send_message(&leaving.message, leaving.expiry) {
                Ok(()) => {}
                // The path takes shorter ones now: it is asked for, if there is time, and lost otherwise.
                Err(NetError::MessageTooLong { .. } | NetError::MessageTooLongNow { .. }) => {}
                Err(NetError::MessagesFull) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn path(&self, stats: &Stats) -> Path {
        Path { srtt: stats.srtt, min_rtt: stats.min_rtt, loss: self.loss }
    }

    /// Once a second: packets that the connection has sent, and found lost.
    fn on_losses(&mut self, sent: u64, lost: u64) {
        let before = std::mem::replace(&mut self.packets, (sent, lost));
        let (sent, lost) = (sent.saturating_sub(before.0), lost.saturating_sub(before.1));
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
        }
        let path = self.path(stats);
        let known = Known {
            permitted: permitted(stats),
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
        (self.through.on_state)(State {
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
        if all > self.dropped.all() && now.since(self.told) >= TELL_EVERY {
            (self.through.tell)(&self.dropped_line(&sent.dropped));
            (self.dropped, self.told) = (sent.dropped, now);
        }
    }
}

/// Datagrams that are too long for a packet each.
fn split_line(length: usize, room: usize) -> String {
    // Whole packets of MPEG-TS, which have 188 bytes, and for other media not much less than there could be.
    let most = if room < 188 { room } else { room / 188 * 188 };
    format!(
        "datagrams of {length} bytes take {} packets each; with at most {most} bytes they take one (ffmpeg: \
         ?pkt_size={most})",
        length.div_ceil(room.max(1))
    )
}

impl Flow<'_> {
    fn layer_line(&self, change: LayerChange) -> String {
        let (quality, all) = (self.sender.quality(), self.through.sockets.len());
        let what = match change {
            LayerChange::Added => "added",
            LayerChange::Dropped => "dropped",
        };
        let mbit = quality.consumption() * 1e-6;
        format!("a layer is {what}: {} of {all} now, {mbit:.2} Mbit/s", quality.active())
    }

    /// What has been dropped since the last report, and why.
    fn dropped_line(&self, dropped: &Dropped) -> String {
        let count = dropped.all() - self.dropped.all();
        let stood =
            dropped.silence + dropped.suspended - self.dropped.silence - self.dropped.suspended;
        if 2 * stood > count {
            return format!(
                "{count} packets were dropped before their deadline: the path or one of the ends stood still"
            );
        }
        let mbit = |bps: f64| bps * 1e-6;
        format!(
            "the encoder sends {:.2} Mbit/s where {:.2} are told to it: {count} packets were dropped before their \
             deadline",
            mbit(self.sent),
            mbit(self.encoder.rate().as_bps() as f64)
        )
    }
}

/// What the controller permits on the link: its pacing rate, and its window in a round trip.
fn permitted(stats: &Stats) -> Option<Rate> {
    let rtt = stats.srtt.as_secs_f64();
    let by_window = stats.window * (f64::from(stats.datagram) + HEADERS) * 8.0 / rtt;
    let by_window = Some(by_window).filter(|rate| rate.is_finite()).map(Rate::from_bps_f64);
    match (stats.rate, by_window) {
        (Some(paced), Some(window)) => Some(paced.min(window)),
        (paced, window) => paced.or(window),
    }
}
