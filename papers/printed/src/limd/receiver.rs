//! The receiver side: the RRTP thesis, figure 3.4 as printed, and the notification of section 3.6.
//!
//! The gaps between packets, at departure and at arrival, go into a long average and a short one. The long one is the
//! mean of the first 50, then takes 0.02 of each new gap; the short one has 10 and 0.1. Each epoch of ten packets
//! reports one of the two to the sender: the long one, or the short one if they differ significantly. After five
//! consecutive epochs with a difference the short one replaces the long one. A rise of the one-way trip times (the
//! thesis's Spike scheme) is reported at once.

use narrows_base::Time;
use narrows_congestion::{Arrival, Feedback, ReceiverSide};

const EPOCH: u64 = 10;
const LONG: u64 = 50;
const SHORT: u64 = 10;
/// Epochs in which the averages differ until the short one replaces the long one.
const PERMANENT: u32 = 5;
/// Difference above which the averages differ significantly. The RRTP thesis does not define it.
const SIGNIFICANT: f64 = 0.2;
/// Trip times above the smallest by the first share of their range begin a spike; below the second, it ends.
const SPIKE_BEGINS: f64 = 1.0 / 2.0;
const SPIKE_ENDS: f64 = 1.0 / 3.0;
/// Smallest range of trip times in seconds: less may be delay in hosts rather than a queue.
const MIN_RANGE: f64 = 0.02;

/// The mean of the first `n` values, then a moving average with the weight 1/n.
#[derive(Clone, Copy, Debug, Default)]
struct SmoothedAverage {
    mean: f64,
    count: u64,
}

impl SmoothedAverage {
    fn take(&mut self, value: f64, first: u64) {
        self.count = (self.count + 1).min(first);
        self.mean += (value - self.mean) / self.count as f64;
    }
}

/// Averages of the gaps in one direction, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct MeanGaps {
    short: SmoothedAverage,
    long: SmoothedAverage,
}

impl MeanGaps {
    fn take(&mut self, gap: f64) {
        self.short.take(gap, SHORT);
        self.long.take(gap, LONG);
    }
    fn differ(&self) -> bool {
        (self.short.mean - self.long.mean).abs() > SIGNIFICANT * self.long.mean
    }
}

/// One-way trip times, of which only differences count.
#[derive(Clone, Copy, Debug)]
struct Trips {
    min: f64,
    max: f64,
    spike: bool,
}

/// Averages, epochs and trip times.
#[derive(Clone, Debug)]
pub struct LimdReceiver {
    notifies: bool,
    last: Option<(u64, Time, Time)>,
    /// Where trip times are counted from.
    first: Option<(Time, Time)>,
    left: MeanGaps,
    arrivals: MeanGaps,
    arrived: u64,
    differed: u32,
    trips: Option<Trips>,
    /// A spike has begun in this epoch.
    notified: bool,
    /// Values of the last report, and the number of epochs.
    reported: (f64, f64),
    epochs: u64,
}

impl LimdReceiver {
    /// With or without the notification.
    pub fn new(notifies: bool) -> LimdReceiver {
        LimdReceiver {
            notifies,
            last: None,
            first: None,
            left: MeanGaps::default(),
            arrivals: MeanGaps::default(),
            arrived: 0,
            differed: 0,
            trips: None,
            notified: false,
            reported: (0.0, 0.0),
            epochs: 0,
        }
    }

    #[cfg(test)]
    pub fn long_gap(&self) -> f64 {
        self.arrivals.long.mean
    }

    /// Takes in a trip time. Returns whether a spike begins.
    fn spike_begins(&mut self, sent: Time, now: Time) -> bool {
        let (first_sent, first_now) = *self.first.get_or_insert((sent, now));
        let trip = now.since(first_now).as_secs_f64() - sent.since(first_sent).as_secs_f64();
        let trips = self.trips.get_or_insert(Trips { min: trip, max: trip, spike: false });
        trips.min = trips.min.min(trip);
        trips.max = trips.max.max(trip);
        let share = (trip - trips.min) / (trips.max - trips.min).max(MIN_RANGE);
        let before = trips.spike;
        if share > SPIKE_BEGINS {
            trips.spike = true;
        } else if share < SPIKE_ENDS {
            trips.spike = false;
        }
        trips.spike && !before
    }

    fn end_epoch(&mut self) {
        self.arrived = 0;
        self.epochs += 1;
        self.differed = if self.arrivals.differ() { self.differed + 1 } else { 0 };
        if self.differed >= PERMANENT {
            self.arrivals.long.mean = self.arrivals.short.mean;
            self.left.long.mean = self.left.short.mean;
            self.differed = 0;
        }
        let of = |g: &MeanGaps| if self.differed > 0 { g.short.mean } else { g.long.mean };
        self.reported = (of(&self.arrivals), of(&self.left));
    }
}

impl ReceiverSide for LimdReceiver {
    fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        let seq = arrival.seq;
        let sent = arrival.sent;
        let now = arrival.now;
        let Some((last, last_sent, last_now)) = self.last else {
            self.last = Some((seq, sent, now));
            return false;
        };
        if seq <= last {
            return false;
        }
        self.last = Some((seq, sent, now));
        // Lost packets were sent, too: the gap is divided by their number.
        let packets = (seq - last) as f64;
        self.left.take(sent.since(last_sent).as_secs_f64() / packets);
        self.arrivals.take(now.since(last_now).as_secs_f64() / packets);
        let spike = self.spike_begins(sent, now) && self.notifies;
        self.notified |= spike;
        self.arrived += 1;
        let ends = self.arrived >= EPOCH || spike;
        if ends {
            self.end_epoch();
        }
        ends
    }

    /// Gaps of arrivals and of departures, whether a spike has begun, and the number of the epoch. Reports that are
    /// sent for other reasons repeat it.
    fn feedback(&mut self, _now: Time) -> Feedback {
        let notified = std::mem::take(&mut self.notified);
        let (arrivals, left) = self.reported;
        Feedback::of(&[arrivals, left, f64::from(u8::from(notified)), self.epochs as f64])
    }
}
