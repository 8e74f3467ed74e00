//! Why packets wait to leave: what was dropped is counted by it, and what waited only because nothing was heard of the
//! other end still leaves.
//!
//! An encoder that sends too much makes a queue that stands: its oldest packets are dropped, so that the others come in
//! time. Where the path or the other end stands still for a moment (a radio that fades, a machine that is busy), the
//! window fills, and what waits can leave as soon as that is over: it comes after its time, but complete, where dropping
//! it would break a picture until the next key frame.

use narrows_base::{Duration, Time};
use serde::Serialize;

/// This end looks every millisecond while something waits: so long without a look, and it did not run.
const SUSPENDED: Duration = Duration::from_millis(20);
/// Nothing is heard, although packets are in flight, for at least so long, and for so many round trips.
const SILENT: Duration = Duration::from_millis(40);
const SILENT_ROUND_TRIPS: f64 = 1.25;

/// Why packets wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The controller's pacing rate is lower than the media's.
    Rate,
    /// As much is in flight as the controller's window permits.
    Window,
    /// The same, but nothing has come from the other end for longer than a round trip.
    Silence,
    /// This end did not run.
    Suspended,
}

/// How long something has waited for each cause, since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    rate: Duration,
    window: Duration,
    silence: Duration,
    suspended: Duration,
}

impl Waits {
    /// Something has waited so long.
    pub fn add(&mut self, cause: Cause, lasted: Duration) {
        *match cause {
            Cause::Rate => &mut self.rate,
            Cause::Window => &mut self.window,
            Cause::Silence => &mut self.silence,
            Cause::Suspended => &mut self.suspended,
        } += lasted;
    }

    /// How long it was for neither rate nor window.
    pub fn stood_still(&self) -> Duration {
        self.silence + self.suspended
    }

    /// The cause of most of it since then.
    pub fn main_cause(&self, since: &Waits) -> Cause {
        let gone = |now: Duration, then: Duration| now.as_nanos().saturating_sub(then.as_nanos());
        let causes = [
            (gone(self.rate, since.rate), Cause::Rate),
            (gone(self.window, since.window), Cause::Window),
            (gone(self.silence, since.silence), Cause::Silence),
            (gone(self.suspended, since.suspended), Cause::Suspended),
        ];
        let most = causes.into_iter().max_by_key(|(lasted, _)| *lasted);
        most.map_or(Cause::Rate, |(_, cause)| cause)
    }
}

/// Packets that were dropped, by the main cause of their waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dropped {
    /// The controller's pacing rate did not suffice.
    pub rate: u64,
    /// The controller's window did not.
    pub window: u64,
    /// Nothing came from the other end.
    pub silence: u64,
    /// This end did not run.
    pub suspended: u64,
}

impl Dropped {
    /// One more.
    pub fn add(&mut self, cause: Cause) {
        *match cause {
            Cause::Rate => &mut self.rate,
            Cause::Window => &mut self.window,
            Cause::Silence => &mut self.silence,
            Cause::Suspended => &mut self.suspended,
        } += 1;
    }

    /// Both.
    pub fn and(self, other: &Dropped) -> Dropped {
        Dropped {
            rate: self.rate + other.rate,
            window: self.window + other.window,
            silence: self.silence + other.silence,
            suspended: self.suspended + other.suspended,
        }
    }

    /// Those for which the controller did not permit enough, where nothing stood still.
    pub fn by_limits(&self) -> u64 {
        self.rate + self.window
    }

    /// All.
    pub fn all(&self) -> u64 {
        self.rate + self.window + self.silence + self.suspended
    }
}

/// What a look at the connection shows.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Bytes that have come from the other end since the beginning.
    pub heard: u64,
    /// Packets in flight.
    pub flight: u64,
    /// The controller's window in packets.
    pub window: f64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

/// Tells from one look to the next why something waited.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    last: Time,
    was_waiting: bool,
    heard: (u64, Time),
    is_silent: bool,
}

impl Watch {
    /// Nothing waits yet.
    pub fn new(now: Time) -> Watch {
        Watch { last: now, was_waiting: false, heard: (0, now), is_silent: false }
    }

    /// At a look, when something waits or not; what the time since the last one was spent on, if something waited.
    pub fn on_look(
        &mut self,
        now: Time,
        look: &Look,
        is_waiting: bool,
    ) -> Option<(Cause, Duration)> {
        let gone = now.since(self.last);
        self.last = now;
        let is_suspended = self.was_waiting && gone >= SUSPENDED;
        // What this end did not hear while it did not run says nothing of the other end.
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
            // What went before it was noticed is a part of it.
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
    fn a_window_that_is_full_and_a_path_that_says_nothing_are_told_apart() {
        let (mut watch, mut waits) = (Watch::new(Time::ZERO), Waits::default());
        let mut look = Look { heard: 1, flight: 10, window: 10.0, srtt: ms(10) };
        for at in 0..300 {
            // Acknowledgements come every 5 ms, but for 150.
            look.heard += u64::from(at % 5 == 0 && !(100..250).contains(&at));
            if let Some((cause, lasted)) = watch.on_look(Time::ZERO + ms(at), &look, true) {
                waits.add(cause, lasted);
            }
        }
        assert!((ms(150)..ms(160)).contains(&waits.stood_still()), "{waits:?}");
        assert!(waits.window >= ms(140) && waits.rate == ms(0), "{waits:?}");
        assert_eq!(waits.main_cause(&Waits::default()), Cause::Window);
        assert_eq!(
            waits.main_cause(&Waits { window: ms(100), ..Waits::default() }),
            Cause::Silence
        );
    }

    #[test]
    fn an_end_that_did_not_run_does_not_take_the_other_for_silent() {
        let mut watch = Watch::new(Time::ZERO);
        let look = Look { heard: 1, flight: 10, window: 20.0, srtt: ms(10) };
        assert_eq!(watch.on_look(Time::ZERO + ms(1), &look, true), None);
        let at = |n| Time::ZERO + ms(n);
        assert_eq!(watch.on_look(at(201), &look, true), Some((Cause::Suspended, ms(200))));
        assert_eq!(watch.on_look(at(202), &look, true), Some((Cause::Rate, ms(1))));
    }

    #[test]
    fn a_sender_with_nothing_in_flight_hears_nothing_and_that_is_no_silence() {
        let mut watch = Watch::new(Time::ZERO);
        let look = Look { heard: 1, flight: 0, window: 20.0, srtt: ms(10) };
        for at in 0..500 {
            let found = watch.on_look(Time::ZERO + ms(at), &look, true);
            assert!(found.is_none_or(|(cause, _)| cause == Cause::Rate), "{found:?}");
        }
    }
}
