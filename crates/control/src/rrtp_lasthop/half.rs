//! The receiver half: S3 section 3.4.1, figure 3.4, gaps averaged over 50 and over 10 packets.

use crate::{Advice, Arrival, ReceiverHalf};
use narrows_base::Time;

/// Packets of an epoch and of the long average.
const EPOCH: u64 = 10;
const LONG: u64 = 50;
/// The averages differ significantly beyond this share. S3 does not say what is significant.
const SIGNIFICANT: f64 = 0.2;
/// So many such epochs in a row make the short average the long one.
const LASTING: u32 = 5;

/// A mean until `of` gaps are in, then exponential with gain 1/`of`.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    count: u64,
    value: f64,
}

impl Average {
    fn add(&mut self, gap: f64, of: u64) {
        self.count = (self.count + 1).min(of);
        self.value += (gap - self.value) / self.count as f64;
    }
}

/// Gaps of departures and arrivals.
#[derive(Debug, Default)]
pub struct Half {
    last: Option<(u64, Time, Time)>,
    /// Short, long; of arrivals and of departures, in seconds.
    came: [Average; 2],
    left: [Average; 2],
    epoch: u64,
    significant: u32,
}

impl Half {
    fn differs(&self) -> bool {
        let [short, long] = self.came.map(|a| a.value);
        (short - long).abs() > SIGNIFICANT * long
    }
}

impl ReceiverHalf for Half {
    fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        let Some((seq, sent, now)) = self.last else {
            self.last = Some((arrival.seq, arrival.sent, arrival.now));
            return false;
        };
        if arrival.seq <= seq {
            return false;
        }
        self.last = Some((arrival.seq, arrival.sent, arrival.now));
        // Lost packets took their time on the channel: both gaps are shared among all.
        let packets = (arrival.seq - seq) as f64;
        let came = arrival.now.since(now).as_secs_f64() / packets;
        let left = arrival.sent.since(sent).as_secs_f64() / packets;
        for (i, of) in [EPOCH, LONG].into_iter().enumerate() {
            self.came[i].add(came, of);
            self.left[i].add(left, of);
        }
        self.epoch += 1;
        if self.epoch < EPOCH {
            return false;
        }
        self.epoch = 0;
        self.significant = if self.differs() { self.significant + 1 } else { 0 };
        if self.significant >= LASTING {
            (self.came[1].value, self.left[1].value) = (self.came[0].value, self.left[0].value);
            self.significant = 0;
        }
        true
    }

    fn advice(&mut self, _now: Time) -> Advice {
        let i = usize::from(!self.differs());
        Advice::of(&[self.came[i].value, self.left[i].value])
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("gap_short", self.came[0].value);
        put("gap_long", self.came[1].value);
    }
}
