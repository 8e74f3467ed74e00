//! Causes of packets' waiting. Drops are counted by cause. Packets that waited only because the other end was silent
//! are still sent.
//!
//! An encoder that sends too much builds a standing queue: its oldest packets are dropped, so that the others arrive in
//! time. If the path or the other end stands still for a moment (a radio fade, a busy machine), the window fills, and
//! the waiting packets can leave as soon as that ends. They arrive late but complete; dropping them would break the
//! picture until the next key frame.

use narrows_base::{Duration, Time};
use serde::Serialize;

/// While packets wait, this end looks every millisecond. After a longer pause between looks, it was suspended.
const SUSPENDED: Duration = Duration::from_millis(20);
/// Without waiting packets it looks 20 times a second.
pub(crate) const PAUSED: Duration = Duration::from_millis(100);
/// A pause explains drops for this long.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Minimum silence of the other end, with packets in flight, that counts as an outage; below, in round trips.
const SILENT: Duration = Duration::from_millis(40);
const SILENT_ROUND_TRIPS: f64 = 1.25;

/// Cause of packets' waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The controller's pacing rate is lower than the media's.
    Rate,
    /// The controller's window is full.
    Window,
    /// Silence of the other end for longer than a round trip, with packets in flight.
    Silence,
    /// This process was not running.
    Suspended,
}

/// Accumulated waiting time for each cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitingTimes {
    rate: Duration,
    window: Duration,
    silence: Duration,
    suspended: Duration,
}

impl WaitingTimes {
    /// Adds waiting time.
    pub fn add(&mut self, cause: Cause, lasted: Duration) {
        *match cause {
            Cause::Rate => &mut self.rate,
            Cause::Window => &mut self.window,
            Cause::Silence => &mut self.silence,
            Cause::Suspended => &mut self.suspended,
        } += lasted;
    }

    /// Waiting time that neither the rate nor the window caused.
    pub fn stood_still(&self) -> Duration {
        self.silence + self.suspended
    }

    /// The cause of most of the waiting time since `since`.
    pub fn main_cause(&self, since: &WaitingTimes) -> Cause {
        let gone = |now: Duration, then: Duration| now.as_nanos().saturating_sub(then.as_nanos());
        let causes = [
            (gone(self.rate, since.rate), Cause::Rate),
            (gone(self.window, since.window), Cause::Window),
            (gone(self.silence, since.silence), Cause::Silence),
            (gone(self.suspended, since.suspended), Cause::Suspended),
        ];
        let longest = causes.into_iter().max_by_key(|(lasted, _)| *lasted);
        longest.map_or(Cause::Rate, |(_, cause)| cause)
    }
}

/// Packets that were dropped, by the main cause of their waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DropsByCause {
    /// The pacing rate was too low.
    pub rate: u64,
    /// The window was full.
    pub window: u64,
    /// The other end was silent.
    pub silence: u64,
    /// This process was not running.
    pub suspended: u64,
}

impl DropsByCause {
    /// Counts one packet.
    pub fn add(&mut self, cause: Cause) {
        *match cause {
            Cause::Rate => &mut self.rate,
            Cause::Window => &mut self.window,
            Cause::Silence => &mut self.silence,
            Cause::Suspended => &mut self.suspended,
        } += 1;
    }

    /// Sum of two sets of counters.
    pub fn and(self, other: &DropsByCause) -> DropsByCause {
        DropsByCause {
            rate: self.rate + other.rate,
            window: self.window + other.window,
            silence: self.silence + other.silence,
            suspended: self.suspended + other.suspended,
        }
    }

    /// Packets dropped because of the controller's rate or window.
    pub fn by_limits(&self) -> u64 {
        self.rate + self.window
    }

    /// Total number of dropped packets.
    pub fn all(&self) -> u64 {
        self.rate + self.window + self.silence + self.suspended
    }
}

/// State of the connection at a look.
#[derive(Clone, Copy, Debug)]
pub struct WaitingSample {
    /// Bytes received since the beginning.
    pub heard: u64,
    /// Packets in flight.
    pub flight: u64,
    /// The controller's window in packets.
    pub window: f64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

/// Determines the cause of waiting between two looks.
#[derive(Clone, Copy, Debug)]
pub struct CauseTracker {
    last: Time,
    was_waiting: bool,
    heard: (u64, Time),
    is_silent: bool,
    /// The last time at which this process did not run before a look, and how long it had not run until then.
    pause: (Time, Duration),
}

impl CauseTracker {
    /// A watch without waiting packets.
    pub fn new(now: Time) -> CauseTracker {
        CauseTracker {
            last: now,
            was_waiting: false,
            heard: (0, now),
            is_silent: false,
            pause: (now, Duration::ZERO),
        }
    }

    /// How long this process did not run within about the last `REMEMBERED`. Media that came meanwhile is read at
    /// once afterwards, as if its encoder had sent too much.
    pub fn paused(&self, now: Time) -> Duration {
        let (end, length) = self.pause;
        if now.since(end) < REMEMBERED { length } else { Duration::ZERO }
    }

    /// Packets were handed over after a look. If none waits any more, the next look may come late.
    pub fn on_handed_over(&mut self, is_waiting: bool) {
        self.was_waiting = is_waiting;
    }

    /// Call this at each look. If packets waited since the last look, returns the cause and its duration.
    pub fn on_look(
        &mut self,
        now: Time,
        look: &WaitingSample,
        is_waiting: bool,
    ) -> Option<(Cause, Duration)> {
        let gone = now.since(self.last);
        self.last = now;
        let is_suspended = self.was_waiting && gone >= SUSPENDED;
        if is_suspended || gone >= PAUSED {
            self.pause = (now, self.paused(now) + gone);
        }
        // Silence during this end's own suspension is not the other end's.
        if look.heard != self.heard.0 || look.flight == 0 || is_suspended {
            self.heard = (look.heard, now);
        }
        let quiet = now.since(self.heard.1);
        let was_silent = self.is_silent;
        self.is_silent = quiet >= SILENT.max(look.srtt.mul_f64(SILENT_ROUND_TRIPS));
        if !std::mem::replace(&mut self.was_waiting, is_waiting) {
            return None;
        }
        Some(match look.window <= look.flight as f64 {
            _ if is_suspended => (Cause::Suspended, gone),
            // When silence is detected, the time before the detection counts, too.
            _ if self.is_silent => (Cause::Silence, if was_silent { gone } else { quiet }),
            true => (Cause::Window, gone),
            false => (Cause::Rate, gone),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn full_window_and_silent_path_are_distinguished() {
        let mut watch = CauseTracker::new(Time::ZERO);
        let mut waits = WaitingTimes::default();
        let mut look = WaitingSample { heard: 1, flight: 10, window: 10.0, srtt: ms(10) };
        for at in 0..300 {
            // Acknowledgements arrive every 5 ms, except for 150 ms.
            look.heard += u64::from(at % 5 == 0 && !(100..250).contains(&at));
            if let Some((cause, lasted)) = watch.on_look(Time::ZERO + ms(at), &look, true) {
                waits.add(cause, lasted);
            }
        }
        assert!((ms(150)..ms(160)).contains(&waits.stood_still()), "{waits:?}");
        assert!(waits.window >= ms(140) && waits.rate == ms(0), "{waits:?}");
        assert_eq!(waits.main_cause(&WaitingTimes::default()), Cause::Window);
        assert_eq!(
            waits.main_cause(&WaitingTimes { window: ms(100), ..WaitingTimes::default() }),
            Cause::Silence
        );
    }

    #[test]
    fn suspended_end_does_not_count_the_peer_as_silent() {
        let mut watch = CauseTracker::new(Time::ZERO);
        let look = WaitingSample { heard: 1, flight: 10, window: 20.0, srtt: ms(10) };
        assert_eq!(watch.on_look(Time::ZERO + ms(1), &look, true), None);
        let at = |n| Time::ZERO + ms(n);
        assert_eq!(watch.on_look(at(201), &look, true), Some((Cause::Suspended, ms(200))));
        assert_eq!(watch.on_look(at(202), &look, true), Some((Cause::Rate, ms(1))));
    }

    #[test]
    fn pause_without_waiting_packets_is_counted() {
        let mut watch = CauseTracker::new(Time::ZERO);
        let look = WaitingSample { heard: 1, flight: 0, window: 20.0, srtt: ms(10) };
        for at in [50, 100, 150, 2150, 2200] {
            assert_eq!(watch.on_look(Time::ZERO + ms(at), &look, false), None);
        }
        assert_eq!(watch.paused(Time::ZERO + ms(2200)), ms(2000));
        assert_eq!(watch.paused(Time::ZERO + ms(12_200)), ms(0));
    }

    /// The next look comes with the next datagram, so its distance says nothing.
    #[test]
    fn look_after_handing_all_over_is_no_pause() {
        let mut watch = CauseTracker::new(Time::ZERO);
        let look = WaitingSample { heard: 1, flight: 10, window: 20.0, srtt: ms(10) };
        for at in [40, 80, 120, 160] {
            assert_eq!(watch.on_look(Time::ZERO + ms(at), &look, true), None);
            watch.on_handed_over(false);
        }
        assert_eq!(watch.paused(Time::ZERO + ms(160)), ms(0));
    }

    #[test]
    fn idle_sender_without_acks_is_no_silence() {
        let mut watch = CauseTracker::new(Time::ZERO);
        let look = WaitingSample { heard: 1, flight: 0, window: 20.0, srtt: ms(10) };
        for at in 0..500 {
            let found = watch.on_look(Time::ZERO + ms(at), &look, true);
            assert!(found.is_none_or(|(cause, _)| cause == Cause::Rate), "{found:?}");
        }
    }
}
