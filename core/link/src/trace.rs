//! Mahimahi packet-delivery traces: each line is the millisecond of an opportunity to send 1500
//! bytes.
//!
//! The trace repeats; its last line is also its length. Several equal lines are several opportunities. Bytes that the
//! head packet leaves unused serve further waiting packets at the same moment; without waiting packets they are lost.
//!
//! A line `light AT MS MS ...` is a train under light load, as CellReplay (NSDI 2025) records it: the first packets of a
//! burst that finds the link idle at about AT leave so many milliseconds after it came. Later packets of the burst take
//! the opportunities of the other lines.

use narrows_base::{Duration, SpecError, Time};

/// Bytes that one opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// No trace has a gap of more than a day: such times are those of a clock.
pub const MAX_GAP_MS: u64 = 86_400_000;

/// The command that converts other forms.
const CONVERT: &str = "`narrows trace convert --time ms FILE`";

/// The numbered lines of a trace, trimmed, without blank lines and comments.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}

/// A line in the form that messages may quote. A line with other characters than those of numbers is not quoted: a file
/// that is named by mistake may hold secrets.
pub fn quoted(line: &str) -> String {
    let numeric = |c: char| c.is_ascii_digit() || " \t,;.:+-".contains(c);
    if line.chars().all(numeric) && line.len() <= 40 { format!("'{line}' ") } else { String::new() }
}

/// Why a line is no opportunity, and which command makes one of it.
fn not_millis(line: &str) -> String {
    let columns = line.split([' ', '\t', ',', ';']).filter(|c| !c.is_empty()).count();
    let how = if line.parse::<f64>().is_ok() {
        format!("{CONVERT} rounds up, and takes s, us and ns, too")
    } else if columns > 1 {
        "`narrows trace convert --time s --rate Mbit/s FILE` reads times and rates, and CSV".into()
    } else {
        "a Mahimahi trace is expected; `narrows trace convert` reads other forms".into()
    };
    format!("{}is not a whole number of milliseconds; {how}", quoted(line))
}

/// A trace that has been read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    millis: Vec<u64>,
    period: u64,
    /// In order of their places in the trace.
    light: Vec<LightTrain>,
}

/// Opportunities of a burst that finds the link idle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LightTrain {
    /// Place in the trace, in milliseconds below its period.
    at: u64,
    /// Milliseconds after the burst's first packet; they do not decrease and are not empty.
    millis: Vec<u64>,
}

impl LightTrain {
    /// Reads what follows the word `light`.
    fn parse(text: &str) -> Option<LightTrain> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let (at, millis) = numbers.ok()?.split_first().map(|(at, ms)| (*at, ms.to_vec()))?;
        let is_bounded = at <= MAX_GAP_MS && *millis.last()? <= MAX_GAP_MS;
        (millis.is_sorted() && is_bounded).then_some(LightTrain { at, millis })
    }
}

impl Trace {
    /// Reads the text of a trace file: a whole number of milliseconds a line. A byte order mark, blank lines and
    /// comments that begin with `#` are left out.
    ///
    /// # Errors
    /// An empty trace, a line that is not a whole number of milliseconds, times that run backwards or leave out more
    /// than a day, or a trace that ends at 0. The message names the line, and quotes it only if it has no letters.
    pub fn parse(text: &str) -> Result<Trace, SpecError> {
        let mut millis = Vec::<u64>::new();
        let mut light = Vec::new();
        for (number, line) in lines(text) {
            let at = |why: String| SpecError::new(format!("line {number}: {why}"));
            if let Some(train) = line.strip_prefix("light ") {
                light.push(LightTrain::parse(train).ok_or_else(|| {
                    at("a train is `light AT MS MS ...`, whole milliseconds that do not decrease".into())
                })?);
                continue;
            }
            let ms: u64 = line.parse().map_err(|_| at(not_millis(line)))?;
            let last = millis.last().copied().unwrap_or(0);
            if last > ms {
                return Err(at(format!(
                    "{ms} is before the line above it; times must not run backwards"
                )));
            }
            if ms - last > MAX_GAP_MS {
                let days = (ms - last) / MAX_GAP_MS;
                return Err(at(format!(
                    "{ms} leaves out {days} days; times are milliseconds from the start of the trace, and {CONVERT} \
                     begins at the first"
                )));
            }
            millis.push(ms);
        }
        match millis.last() {
            None => Err(SpecError::new("the trace has no delivery opportunity")),
            Some(0) => Err(SpecError::new("the trace ends at 0 ms, so it cannot repeat")),
            Some(&period) => {
                light.iter_mut().for_each(|train: &mut LightTrain| train.at %= period);
                light.sort_by_key(|train| train.at);
                Ok(Trace { millis, period, light })
            }
        }
    }
    /// A trace of these milliseconds, which do not decrease and are not empty, with this length.
    pub(crate) fn of(millis: Vec<u64>, period: u64) -> Trace {
        Trace { millis, period, light: Vec::new() }
    }
    /// Its length: the time after which it repeats.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period.saturating_mul(1_000_000))
    }
    /// The same repeating trace, started `offset` later (rounded down to whole milliseconds).
    #[must_use]
    pub fn entered_at(&self, offset: Duration) -> Trace {
        let skipped = offset.as_nanos() / 1_000_000 % self.period;
        if skipped == 0 {
            return self.clone();
        }
        // Lines before the offset come at the end of each period.
        let later = self.millis.iter().filter(|m| **m > skipped).map(|m| m - skipped);
        let again = self.millis.iter().filter(|m| **m <= skipped);
        let again = again.map(|m| m + self.period - skipped);
        let mut light = self.light.clone();
        light
            .iter_mut()
            .for_each(|train| train.at = (train.at + self.period - skipped) % self.period);
        light.sort_by_key(|train| train.at);
        Trace { millis: later.chain(again).collect(), period: self.period, light }
    }
    /// The index of the last train before this time; of the last of all before the first.
    fn light_at(&self, now: Time) -> Option<usize> {
        let ms = now.as_nanos() / 1_000_000 % self.period;
        let after = self.light.partition_point(|train| train.at <= ms);
        after.checked_sub(1).or_else(|| self.light.len().checked_sub(1))
    }
    /// Mean rate in bit/s, under load.
    pub fn mean_bps(&self) -> f64 {
        self.millis.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8000.0 / self.period as f64
    }
    /// Bytes that can be sent in `[from, until)`.
    pub fn bytes_between(&self, from: Time, until: Time) -> f64 {
        self.before(until).saturating_sub(self.before(from)) as f64 * f64::from(OPPORTUNITY_BYTES)
    }
    /// Number of opportunities before `t`.
    fn before(&self, t: Time) -> u64 {
        // That is, opportunities up to and including t - 1 ns.
        let Some(ns) = t.as_nanos().checked_sub(1) else { return 0 };
        let ms = ns / 1_000_000;
        // An opportunity at the period's end belongs to that period.
        let whole = ms / self.period;
        let rest = ms % self.period;
        let in_period = |x: u64| self.millis.partition_point(|m| *m <= x) as u64;
        let zeros = in_period(0);
        if whole == 0 {
            return in_period(rest);
        }
        // A line at 0 coincides with the end of the previous repetition; both count.
        whole.saturating_mul(self.millis.len() as u64)
            + if rest == 0 { zeros } else { in_period(rest) }
    }
}

/// A position in a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceCursor {
    round: u64,
    index: usize,
    /// Unused bytes of the last opportunity, and its time.
    left: u32,
    at: Time,
    /// The burst that is served by a train: that train, the next of its opportunities, and the burst's beginning.
    light: Option<(usize, usize, Time)>,
    /// When the last packet left; `None` before the first.
    last: Option<Time>,
}

impl TraceCursor {
    /// When a packet of `size` bytes that reached the head of the queue at `now` has been sent.
    pub(crate) fn serve(&mut self, trace: &Trace, now: Time, size: u32) -> Time {
        if self.last.is_none_or(|last| last < now) {
            self.light = trace.light_at(now).map(|train| (train, 0, now));
        }
        let sent = self.sent(trace, now, size);
        self.last = Some(sent);
        sent
    }
    fn sent(&mut self, trace: &Trace, now: Time, size: u32) -> Time {
        let mut need = size;
        if self.at == now {
            let used = need.min(self.left);
            need -= used;
            self.left -= used;
        } else {
            self.left = 0;
        }
        if need == 0 {
            return now;
        }
        let mut from = now;
        loop {
            self.at = match self.next_light(trace) {
                Some(at) => at.max(now),
                None => self.next_heavy(trace, from),
            };
            from = self.at;
            if need <= OPPORTUNITY_BYTES {
                self.left = OPPORTUNITY_BYTES - need;
                return self.at.max(now);
            }
            need -= OPPORTUNITY_BYTES;
        }
    }
    /// The next opportunity of the burst's train.
    fn next_light(&mut self, trace: &Trace) -> Option<Time> {
        let (train, index, begun) = self.light?;
        let ms = trace.light.get(train).and_then(|train| train.millis.get(index));
        self.light = ms.map(|_| (train, index + 1, begun));
        ms.map(|ms| begun + Duration::from_millis(*ms))
    }
    /// The next opportunity under load, from this time on.
    fn next_heavy(&mut self, trace: &Trace, from: Time) -> Time {
        self.skip_to(trace, from);
        let ms = self.round.saturating_mul(trace.period).saturating_add(trace.millis[self.index]);
        self.index += 1;
        if self.index == trace.millis.len() {
            self.index = 0;
            self.round += 1;
        }
        Time::from_nanos(ms.saturating_mul(1_000_000))
    }
    /// Skips opportunities that passed unused.
    fn skip_to(&mut self, trace: &Trace, now: Time) {
        let ns = now.as_nanos();
        let ms = ns.div_ceil(1_000_000);
        let target = (ms / trace.period).saturating_sub(1);
        if self.round < target {
            self.round = target;
            self.index = 0;
        }
        while self.round.saturating_mul(trace.period).saturating_add(trace.millis[self.index]) < ms
        {
            self.index += 1;
            if self.index == trace.millis.len() {
                self.index = 0;
                self.round += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_served_and_repeat() {
        let t = Trace::parse("1\n1\n5\n10\n").unwrap();
        let mut c = TraceCursor::default();
        let ms = |m: u64| Time::from_nanos(m * 1_000_000);
        assert_eq!(c.serve(&t, ms(0), 1500), ms(1));
        assert_eq!(c.serve(&t, ms(1), 1000), ms(1));
        // 500 bytes of the second opportunity are left at 1 ms; the rest follows at 5 ms.
        assert_eq!(c.serve(&t, ms(1), 1000), ms(5));
        assert_eq!(c.serve(&t, ms(6), 1500), ms(10));
        assert_eq!(c.serve(&t, ms(10), 1500), ms(11));
        assert_eq!(c.serve(&t, ms(1000), 3000), ms(1001));
        assert_eq!(t.mean_bps(), 4.0 * 12_000.0 / 0.01);
        assert_eq!(t.bytes_between(ms(0), ms(10)), 4500.0);
        assert_eq!(
            t.bytes_between(ms(0), ms(20) + narrows_base::Duration::from_nanos(1)),
            12_000.0
        );
    }

    #[test]
    fn a_burst_takes_a_train_and_then_the_load() {
        let t = Trace::parse("light 0 2 2\nlight 50 7\n10\n11\n100\n").unwrap();
        let ms = |m: u64| Time::from_nanos(m * 1_000_000);
        let mut c = TraceCursor::default();
        let burst = |c: &mut TraceCursor, at: u64, n: usize| {
            let mut head = ms(at);
            (0..n).for_each(|_| head = c.serve(&t, head, 1500));
            head
        };
        assert_eq!(burst(&mut c, 4, 2), ms(6), "two packets of the first train");
        // In the middle of a burst, and after it.
        assert_eq!(c.serve(&t, ms(6), 1500), ms(10));
        assert_eq!(burst(&mut c, 60, 1), ms(67), "the second train");
        assert_eq!(burst(&mut c, 70, 2), ms(100));
        assert_eq!(burst(&mut c, 130, 4), ms(210), "the trace repeats");
        // A packet of two opportunities.
        assert_eq!(c.serve(&t, ms(320), 3000), ms(322));
        assert_eq!(c.serve(&t, ms(360), 3000), ms(400));
        let later = t.entered_at(Duration::from_millis(50));
        assert_eq!(TraceCursor::default().serve(&later, ms(10), 1500), ms(17));
        for bad in ["light 1 2", "light x 1\n5", "light 1\n5", "light 1 3 2\n5", "light\n5"] {
            assert!(Trace::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn entered_later_it_goes_on_as_it_would_have() {
        let t = Trace::parse("0\n1\n1\n5\n10\n").unwrap();
        let ms = |m: u64| Time::from_nanos(m * 1_000_000);
        for skipped in 0..25 {
            let later = t.entered_at(Duration::from_millis(skipped));
            // From 1 ms on: at 0 the first pass serves the trace's first line once, its repetitions twice.
            for (from, until) in [(1, 4), (2, 13), (1, 31)] {
                assert_eq!(
                    later.bytes_between(ms(from), ms(until)),
                    t.bytes_between(ms(from + skipped), ms(until + skipped)),
                    "{skipped}: {from} to {until}"
                );
            }
        }
    }

    #[test]
    fn other_editors_marks_and_comments_are_left_out() {
        let plain = Trace::parse("1\n2\n5\n").unwrap();
        for same in ["\u{feff}1\n2\n5", "1\r\n2\r\n\r\n5\r\n", "# by me\n1\n 2 # two\n\t5\n"] {
            assert_eq!(Trace::parse(same).unwrap(), plain, "{same:?}");
        }
    }

    #[test]
    fn bad_traces_are_refused_with_the_line() {
        let day = MAX_GAP_MS;
        assert!(Trace::parse(&day.to_string()).is_ok(), "an outage of a day");
        for (bad, hint) in [
            ("", "no delivery"),
            ("1\nx\n", "line 2: is not a whole number"),
            ("5\n3\n", "line 2"),
            ("0\n0\n", "repeat"),
            ("-1", "line 1"),
            (
                "0.5\n1",
                "line 1: '0.5' is not a whole number of milliseconds; `narrows trace convert --time ms FILE`",
            ),
            (
                "1\n1.5e3",
                "line 2: is not a whole number of milliseconds; `narrows trace convert --time ms FILE`",
            ),
            (
                "0 1.2",
                "line 1: '0 1.2' is not a whole number of milliseconds; `narrows trace convert --time s --rate",
            ),
            ("0,1.2", "--rate Mbit/s FILE`"),
            ("time_ms,mbps\n0,1", "line 1: is not"),
            ("1448000000000\n1448000000012", "line 1: 1448000000000 leaves out 16759 days"),
            ("1\n1448000000000", "line 2: 1448000000000 leaves out"),
            ("18446744073709551615", "leaves out"),
        ] {
            let e = Trace::parse(bad).unwrap_err().to_string();
            assert!(e.contains(hint) && e.lines().count() == 1, "{bad:?}: {e}");
        }
    }

    /// A file in another format may hold secrets.
    #[test]
    fn a_line_with_anything_but_numbers_is_not_quoted() {
        for secret in
            ["root:$y$j9T$salt$hash:19000:0:99999:7:::", "hunter2", "1,hunter2", "\u{1b}[2J"]
        {
            let e = Trace::parse(&format!("1\n{secret}\n")).unwrap_err().to_string();
            let parts = secret.split(|c: char| !c.is_alphanumeric()).filter(|p| p.len() > 3);
            assert!(
                e.starts_with("line 2: is not") && parts.clone().all(|p| !e.contains(p)),
                "{e}"
            );
        }
    }
}
