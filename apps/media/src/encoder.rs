//! The rate target for the encoder: the controller's rate minus repeats and headers, smoothed so that an encoder can
//! follow.

use narrows_base::{Duration, Rate, Time};

/// Share of the controller's rate that is given to the encoder, since encoders overshoot briefly.
pub(crate) const SHARE: f64 = 0.92;
/// Share of media in a packet with 1316 bytes of media; the rest is IP, UDP, rrtp and media headers.
pub(crate) const HEADERS: f64 = 1316.0 / (1316.0 + 28.0 + 54.0 + 18.0);
/// Maximum rise per second as a share of the rate. It is three times that if the controller permits twice the rate. The
/// rate falls at once.
const RISE: f64 = 0.15;
/// The rate does not rise while the encoder uses less than this share.
const USED: f64 = 0.5;
/// Shares of the longest wait above which the rate falls, and the fall per second: slow for a standing queue, fast if
/// packets are about to be dropped.
const QUEUE: f64 = 0.25;
const SLOW_FALL: f64 = 0.1;
const LONG_QUEUE: f64 = 0.5;
const FAST_FALL: f64 = 0.5;
/// Minimum changes, as factors, that are reported to the encoder: upwards, downwards.
const UP: f64 = 1.04;
const DOWN: f64 = 0.97;
/// Minimum interval between upward changes.
const PAUSE: Duration = Duration::from_millis(500);
/// Time constant, in seconds, of the mean of the permitted rate: of a controller with a sawtooth, the average counts.
const SMOOTHING: f64 = 0.25;

/// Limits of the encoder's rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncoderRates {
    /// Minimum rate.
    pub min: Rate,
    /// Maximum rate.
    pub max: Rate,
}

/// Inputs of an update.
#[derive(Clone, Copy, Debug)]
pub struct EncoderInputs {
    /// The controller's rate on the link, including IP and UDP headers; `None` if it is unlimited.
    pub permitted: Option<Rate>,
    /// The encoder's recent rate.
    pub sent: Rate,
    /// Recent number of repeats and repair packets per part sent.
    pub repeats: f64,
    /// Time that the oldest unsent part has waited.
    pub waited: Duration,
    /// Longest wait before a part is dropped.
    pub longest_wait: Duration,
}

/// Computes the rate target of an encoder.
#[derive(Debug)]
pub struct EncoderRate {
    range: EncoderRates,
    rate: f64,
    permitted: Option<f64>,
    /// Rate available for media in bit/s, whether the encoder uses it or not.
    room: f64,
    updated: Option<Time>,
    changed: Time,
    /// The target that was reported last.
    said: Option<Rate>,
}

impl EncoderRate {
    /// Begins at a third of this range.
    pub fn new(range: EncoderRates) -> EncoderRate {
        let min = range.min.as_bps() as f64;
        let max = range.max.as_bps() as f64;
        let rate = (min + (max - min) / 3.0).max(min).min(max.max(min));
        let changed = Time::ZERO;
        EncoderRate { range, rate, permitted: None, room: 0.0, updated: None, changed, said: None }
    }

    /// The rate available for all media of the connection, in bit/s: the controller's rate minus headers and repeats.
    /// Zero before the first update.
    pub fn room(&self) -> f64 {
        self.room
    }

    /// The current target, or the initial one before the first update.
    pub fn rate(&self) -> Rate {
        self.said.unwrap_or(Rate::from_bps_f64(self.rate))
    }

    /// Call this several times a second. Returns the target if it has changed.
    pub fn update(&mut self, now: Time, known: &EncoderInputs) -> Option<Rate> {
        let gone = self.updated.map_or(Duration::ZERO, |at| now.since(at)).as_secs_f64().min(1.0);
        self.updated = Some(now);
        if let Some(permitted) = known.permitted {
            let permitted = permitted.as_bps() as f64;
            // A mean over a fraction of a second, so that short dips of the controller's rate do not count.
            let share = (gone / SMOOTHING).min(1.0);
            let mean = self.permitted.map_or(permitted, |mean| mean + share * (permitted - mean));
            self.permitted = Some(mean);
        }
        let max = self.range.max.as_bps() as f64;
        let room = self.permitted.map_or(max, |permitted| {
            permitted * SHARE * HEADERS / (1.0 + known.repeats.clamp(0.0, 0.5))
        });
        self.room = room;
        // A queue before the controller: the encoder sends more than the controller permits.
        let waited = known.waited.as_secs_f64() / known.longest_wait.as_secs_f64().max(1e-3);
        let fall = if waited > LONG_QUEUE {
            FAST_FALL
        } else if waited > QUEUE {
            SLOW_FALL
        } else {
            0.0
        };
        let room = if fall > 0.0 { room.min(self.rate * (1.0 - fall * gone)) } else { room };
        // A rate that the encoder does not use is not validated by the path, so it is not raised (RFC 7661).
        let is_used = known.sent.as_bps() as f64 > USED * self.rate;
        // Rise faster if much of the available rate is unused.
        let much = (room / self.rate - 1.0).clamp(0.0, 1.0);
        let rise = RISE * (1.0 + 2.0 * much) * gone;
        let rising = self.rate * if is_used { 1.0 + rise } else { 1.0 };
        let min = self.range.min.as_bps() as f64;
        self.rate = room.min(rising).min(max).max(min);
        let said = self.said.map_or(0.0, |said| said.as_bps() as f64);
        let is_up = self.rate > said * UP || (self.rate >= max && said < max);
        let changes = self.said.is_none()
            || self.rate < said * DOWN
            || (self.rate <= min && said > min)
            || is_up && now.since(self.changed) >= PAUSE;
        changes.then(|| {
            let rate = Rate::from_bps_f64(self.rate);
            self.said = Some(rate);
            self.changed = now;
            rate
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: EncoderRates =
        EncoderRates { min: Rate::from_bps(500_000), max: Rate::from_bps(8_000_000) };

    fn requested_rates(
        seconds: u64,
        permitted: impl Fn(u64) -> f64,
        waited: Duration,
    ) -> Vec<(u64, f64)> {
        told_to(0.9, seconds, permitted, waited)
    }
    /// Targets reported to an encoder that uses this share of its rate.
    fn told_to(
        used: f64,
        seconds: u64,
        permitted: impl Fn(u64) -> f64,
        waited: Duration,
    ) -> Vec<(u64, f64)> {
        let mut encoder = EncoderRate::new(RANGE);
        let mut all = Vec::new();
        for ms in (0..seconds * 1000).step_by(50) {
            let known = EncoderInputs {
                permitted: Some(Rate::from_bps_f64(permitted(ms) * 1e6)),
                sent: Rate::from_bps_f64(used * encoder.rate().as_bps() as f64),
                repeats: 0.05,
                waited,
                longest_wait: Duration::from_millis(200),
            };
            let now = Time::ZERO + Duration::from_millis(ms);
            let rate = encoder.update(now, &known);
            all.extend(rate.map(|rate| (ms, rate.as_bps() as f64 * 1e-6)));
        }
        all
    }

    #[test]
    fn encoder_rate_is_permitted_rate_less_headers_and_repeats() {
        let all = requested_rates(60, |_| 5.0, Duration::ZERO);
        let last = all.last().unwrap().1;
        assert!((5.0 * 0.92 * 0.9 / 1.05..5.0 * 0.92 * 0.95 / 1.05).contains(&last), "{last}");
        let all = requested_rates(60, |_| 50.0, Duration::ZERO);
        assert_eq!(all.last().unwrap().1, 8.0);
        assert_eq!(requested_rates(60, |_| 0.1, Duration::ZERO).last().unwrap().1, 0.5);
    }

    #[test]
    fn it_falls_at_once_and_rises_slowly_in_few_steps() {
        let all = requested_rates(60, |ms| if ms < 30_000 { 8.0 } else { 2.0 }, Duration::ZERO);
        let fallen = all.iter().find(|(ms, rate)| *ms >= 30_000 && *rate < 2.0).unwrap().0;
        assert!(fallen < 30_700, "{fallen}");
        let rising: Vec<_> = all.iter().filter(|(ms, _)| *ms < 30_000).collect();
        assert!(rising.len() < 40, "{}", rising.len());
        assert!(rising.windows(2).all(|w| w[1].1 / w[0].1 < 1.3));
    }

    #[test]
    fn a_permission_that_jitters_changes_little() {
        let all = requested_rates(
            60,
            |ms| 4.0 + 0.4 * ((ms / 50 % 7) as f64 / 3.0 - 1.0),
            Duration::ZERO,
        );
        assert!(all.iter().filter(|(ms, _)| *ms > 20_000).count() < 10, "{all:?}");
    }

    #[test]
    fn an_encoder_that_uses_little_is_told_no_more() {
        let all = told_to(0.3, 60, |_| 50.0, Duration::ZERO);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_queue_before_the_controller_takes_the_rate_down() {
        let all = requested_rates(20, |_| 5.0, Duration::from_millis(150));
        assert_eq!(all.last().unwrap().1, 0.5);
        // A standing queue, which is not yet about to be dropped, lowers the rate slowly.
        let all = requested_rates(5, |_| 5.0, Duration::from_millis(60));
        assert!((1.6..2.1).contains(&all.last().unwrap().1), "{all:?}");
    }
}
