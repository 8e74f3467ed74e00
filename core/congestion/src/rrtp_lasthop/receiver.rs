//! The receiver side: the RRTP thesis, section 3.4.1, figure 3.4, gaps averaged over 50 and over 10 packets.
//!
//! Ten packets of a fast link may arrive while a host delays them. So an epoch is ten packets *and* a time that is
//! large compared with such delays, and the averages are those of one epoch and of the last five. Below 400 packets per
//! second this is the thesis's algorithm. If the two differ for five epochs, the thesis replaces the long one by the
//! short one; a mean of the last five is the short one by then.

use crate::{Arrival, Feedback, ReceiverSide};
use narrows_base::{Duration, Time};

/// Packets of an epoch at least, and its time.
const EPOCH: u64 = 10;
const EPOCH_LASTS: Duration = Duration::from_millis(25);
/// Epochs of the long average.
const LONG: usize = 5;
/// Difference above which the averages differ significantly. The RRTP thesis does not define it.
const SIGNIFICANT: f64 = 0.2;

/// Seconds between packets, of an epoch or averaged: arrivals and departures.
#[derive(Clone, Copy, Debug, Default)]
struct EpochGaps {
    came: f64,
    left: f64,
}

/// Gaps of departures and arrivals.
#[derive(Clone, Debug, Default)]
pub struct LasthopReceiver {
    /// The packet with which the epoch began: number, departure, arrival.
    began: Option<(u64, Time, Time)>,
    highest: u64,
    arrived: u64,
    /// Of the last epochs, the newest first, and how many there are.
    epochs: [EpochGaps; LONG],
    count: usize,
}

impl LasthopReceiver {
    fn long(&self) -> EpochGaps {
        let mean = |of: fn(&EpochGaps) -> f64| {
            self.epochs.iter().take(self.count).map(of).sum::<f64>() / self.count.max(1) as f64
        };
        EpochGaps { came: mean(|g| g.came), left: mean(|g| g.left) }
    }
}

impl ReceiverSide for LasthopReceiver {
    fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        let here = (arrival.seq, arrival.sent, arrival.now);
        let Some((seq, sent, now)) = self.began else {
            (self.began, self.highest) = (Some(here), arrival.seq);
            return false;
        };
        if arrival.seq <= self.highest {
            return false;
        }
        self.highest = arrival.seq;
        self.arrived += 1;
        let lasted = arrival.now.since(now);
        if self.arrived < EPOCH || lasted < EPOCH_LASTS {
            return false;
        }
        // Lost packets used the channel, too: both gaps are divided by their number.
        let packets = (arrival.seq - seq) as f64;
        self.epochs.rotate_right(1);
        self.epochs[0] = EpochGaps {
            came: lasted.as_secs_f64() / packets,
            left: arrival.sent.since(sent).as_secs_f64() / packets,
        };
        self.count = (self.count + 1).min(LONG);
        (self.began, self.arrived) = (Some(here), 0);
        true
    }

    fn feedback(&mut self, _now: Time) -> Feedback {
        let (short, long) = (self.epochs[0], self.long());
        let differ = (short.came - long.came).abs() > SIGNIFICANT * long.came;
        let gaps = if differ { short } else { long };
        Feedback::of(&[gaps.came, gaps.left])
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("arrival_spacing_s", self.epochs[0].came);
        put("arrival_spacing_long_s", self.long().came);
    }
}
