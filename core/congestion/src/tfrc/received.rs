//! X_recv: the receive rate (RFC 5348 section 6.2).

use std::collections::VecDeque;

/// Most arrivals that are kept; at higher rates, the rate is computed over these.
const MAX_ARRIVALS: usize = 8192;

/// Arrivals of the last round-trip time, and since the last report. Times in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentArrivals {
    first: Option<u64>,
    recent: VecDeque<(f64, u32)>,
    recent_bytes: u64,
    last_report: f64,
    last_arrival: f64,
    since: u64,
    /// The last two reports' rates.
    rates: [f64; 2],
}

impl RecentArrivals {
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    /// The number of the packet that arrived first.
    pub fn first(&self) -> u64 {
        self.first.unwrap_or(0)
    }
    pub fn last_report(&self) -> f64 {
        self.last_report
    }
    /// Whether a packet has arrived since the last report.
    pub fn since_report(&self) -> bool {
        self.since > 0
    }
    /// The largest rate of the last two reports, in bytes per second.
    pub fn fastest(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }

    /// A packet arrived.
    pub fn take(&mut self, now: f64, seq: u64, bytes: u32, rtt: f64) {
        self.first.get_or_insert(seq);
        self.since = self.since.saturating_add(u64::from(bytes));
        self.last_arrival = now;
        self.recent.push_back((now, bytes));
        self.recent_bytes += u64::from(bytes);
        while let Some((at, bytes)) = self.recent.front() {
            if at + rtt > now && self.recent.len() <= MAX_ARRIVALS {
                break;
            }
            self.recent_bytes -= u64::from(*bytes);
            self.recent.pop_front();
        }
    }

    /// Bytes per second over the last RTT, or since the last report if that is longer ago.
    pub fn rate(&self, now: f64, rtt: f64) -> f64 {
        if rtt <= 0.0 {
            return 0.0;
        }
        let since = now - self.last_report;
        if since >= rtt {
            return self.since as f64 / since;
        }
        let mut span = rtt;
        if self.recent.len() == MAX_ARRIVALS {
            span = self.recent.front().map_or(rtt, |f| now - f.0).max(rtt * 1e-6);
        }
        self.recent_bytes as f64 / span
    }

    /// A report is sent: returns its rate.
    pub fn report(&mut self, now: f64, rtt: f64) -> f64 {
        let rate = self.rate(now, rtt);
        self.rates = [rate, self.rates[0]];
        self.last_report = now;
        self.since = 0;
        rate
    }
}
