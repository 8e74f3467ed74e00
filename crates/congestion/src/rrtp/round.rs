//! What a round trip's worth of acknowledgements showed.

use narrows_base::Time;

/// A round that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Round trips, seconds.
    pub min_rtt: f64,
    pub max_rtt: f64,
    pub mean_rtt: f64,
    /// Their standard deviation, and the root mean square difference of neighbours.
    pub deviation: f64,
    pub scatter: f64,
    /// Packets that arrived and that were lost, and of these the ones that the link may have lost.
    pub delivered: f64,
    pub lost: f64,
    pub credit: f64,
    /// Seconds.
    pub span: f64,
    /// The application sent less than it might have: what arrived says nothing of the path.
    pub app_limited: bool,
}

impl Default for Round {
    fn default() -> Round {
        Round {
            min_rtt: f64::INFINITY,
            max_rtt: 0.0,
            mean_rtt: 0.0,
            deviation: 0.0,
            scatter: 0.0,
            delivered: 0.0,
            lost: 0.0,
            credit: 0.0,
            span: f64::INFINITY,
            app_limited: false,
        }
    }
}

impl Round {
    /// Packets per second that the bottleneck sent: what arrived, and what the link lost of it.
    pub fn rate(&self) -> f64 {
        (self.delivered + self.credit) / self.span
    }
    /// Packets per second that arrived.
    pub fn delivered_rate(&self) -> f64 {
        self.delivered / self.span
    }
    /// Share of packets that were lost.
    pub fn lost_share(&self) -> f64 {
        self.lost / (self.delivered + self.lost).max(1.0)
    }
    /// Packets per second of which the fate became known.
    pub fn sent_rate(&self) -> f64 {
        (self.delivered + self.lost) / self.span
    }
}

/// A round that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting {
    began: Option<Time>,
    pub delivered: f64,
    pub lost: u64,
    pub min_rtt: f64,
    pub max_rtt: f64,
    /// The round trip before the first, and the last.
    first: f64,
    last: f64,
    /// Whether a delivery rate was sampled that is the path's, and one that is the application's.
    pub sampled: [bool; 2],
    /// Acknowledgements; sums of round trips, of their squares and of the squares of their differences.
    sums: [f64; 4],
}

impl Counting {
    /// Begins anew; the round that it was, if one was.
    pub fn turn(&mut self, now: Time, rtt: f64) -> Option<Round> {
        let ended = self.began.map(|began| {
            let [n, sum, squares, steps] = self.sums;
            let n = n.max(1.0);
            let mean = sum / n;
            // Without what they rise or fall by evenly, as a queue does.
            let even = (self.last - self.first) / n;
            Round {
                min_rtt: self.min_rtt,
                max_rtt: self.max_rtt,
                mean_rtt: mean,
                deviation: (squares / n - mean * mean).max(0.0).sqrt(),
                scatter: (steps / n - even * even).max(0.0).sqrt(),
                delivered: self.delivered,
                lost: self.lost as f64,
                credit: 0.0,
                span: crate::positive(now.since(began)),
                app_limited: self.sampled == [false, true],
            }
        });
        *self = Counting {
            began: Some(now),
            min_rtt: rtt,
            max_rtt: rtt,
            first: self.last,
            last: self.last,
            ..Counting::default()
        };
        ended
    }

    /// An acknowledgement of so many packets.
    pub fn add(&mut self, rtt: f64, delivered: f64) {
        let step = if self.last > 0.0 { rtt - self.last } else { 0.0 };
        self.last = rtt;
        for (sum, x) in self.sums.iter_mut().zip([1.0, rtt, rtt * rtt, step * step]) {
            *sum += x;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.delivered += delivered;
    }
}
