//! Whether the sender was data-limited over the interval of a report: RFC 5348 section 8.2.1.

use narrows_base::Time;

/// Keeps two times at which the sender was not data-limited: the first after the last report's interval, and the first
/// after the last report's arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Limited {
    first: Option<Time>,
    second: Option<Time>,
    /// End of the last report's interval (a send time), and arrival time of that report.
    end: Option<Time>,
    arrived_at: Option<Time>,
}

impl Limited {
    /// The sender has sent all that its rate permits, and has more data.
    pub fn not_limited(&mut self, now: Time) {
        if self.first.is_none_or(|f| Some(f) <= self.end) {
            self.first = Some(now);
        } else if self.second.is_none_or(|s| Some(s) <= self.arrived_at) {
            self.second = Some(now);
        }
    }
    /// A report arrived at `now` and covers packets sent up to `end`. Returns whether all of the interval was
    /// data-limited.
    pub fn report(&mut self, now: Time, end: Time) -> bool {
        let begin = self.end;
        let end = begin.map_or(end, |b| b.max(end));
        let inside = |t: Option<Time>| t.is_some_and(|t| Some(t) > begin && t <= end);
        let limited = !inside(self.first) && !inside(self.second);
        self.end = Some(end);
        self.arrived_at = Some(now);
        if self.first.is_none_or(|f| f <= end) && self.second.is_some_and(|s| s > end) {
            self.first = self.second;
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn report_is_data_limited_only_if_its_whole_interval_was() {
        let mut l = Limited::default();
        l.not_limited(at(0));
        assert!(!l.report(at(100), at(0)), "the first packet had more behind it");
        assert!(l.report(at(200), at(100)), "nothing but short sends between");
        l.not_limited(at(150));
        l.not_limited(at(250));
        assert!(!l.report(at(300), at(200)));
        // 250 is kept although 150 was the first: it belongs to the next report.
        assert!(!l.report(at(400), at(300)));
        assert!(l.report(at(500), at(400)));
    }
}
