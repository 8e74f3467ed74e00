//! Finds BBR by its probes of the smallest round trip. It lets the queue run empty for 200 ms each time that it has not
//! met the smallest round trip for ten seconds (Cardwell et al. 2016, `PROBE_RTT`; Linux `tcp_bbr.c`). Several of them do so
//! together, as each probe shows the others the smallest round trip. Where queues are emptied by those who brake at
//! losses, either this end lost and braked, too, or they fill it again slowly, or do not do so ten seconds later.

use super::path_model::PathModel;
use crate::Ack;
use narrows_base::Time;

/// Part of the band of round trips above which a queue is long, and below which it is gone.
const LONG: f64 = 0.5;
const GONE: f64 = 0.1;
/// … and to which it must come back at once.
const BACK: f64 = 0.25;
/// Base round trips within which it goes, and comes back.
const TURNS: f64 = 4.0;
/// Seconds for which it is gone: BBR holds back for 0.2 and a round trip or two, longer where it repairs losses.
const MIN_GONE: f64 = 0.06;
const MAX_GONE: f64 = 1.0;
/// Seconds without the smallest round trip after which BBR probes, and how much later it may have done so: 0.2 for the
/// probe before, and base round trips.
const PERIOD: f64 = 10.0;
const LATER: f64 = 0.2;
const LATER_TURNS: f64 = 6.0;
/// Longest round trips before it that a cut of one's own may have emptied the queue.
const OWN: f64 = 1.5;
/// So many probes within half a period are none.
const MANY: usize = 4;

/// A queue that was long and is gone.
#[derive(Clone, Copy, Debug)]
struct Dip {
    first: Time,
    last: Time,
    /// This end had not braked.
    unforced: bool,
}

/// What round trips showed.
#[derive(Clone, Debug, Default)]
pub struct ProbeRtt {
    /// When the queue was long last.
    long: Option<Time>,
    dip: Option<Dip>,
    /// The last dips that ended as a probe does, the newest first.
    probes: [Option<Dip>; MANY],
}

impl ProbeRtt {
    /// Takes an acknowledgement in, the own window having been cut last at `cut`; true if two probes have come one after
    /// the other as BBR's do.
    pub fn on_ack(&mut self, ack: &Ack, path: &PathModel, cut: Option<Time>) -> bool {
        let Some((base, band, level)) = path.level() else { return false };
        let since = |t: Time| ack.now.since(t).as_secs_f64();
        let turns = TURNS * base;
        if level <= GONE {
            match &mut self.dip {
                Some(dip) => dip.last = ack.now,
                None if self.long.take().is_some_and(|l| since(l) <= turns) => {
                    let unforced = cut.is_none_or(|c| since(c) > OWN * (base + band));
                    self.dip = Some(Dip { first: ack.now, last: ack.now, unforced });
                }
                None => {}
            }
        }
        if level >= LONG {
            self.long = Some(ack.now);
        }
        let Some(dip) = self.dip.take_if(|_| level >= BACK) else { return false };
        let gone = dip.last.since(dip.first).as_secs_f64();
        if !(MIN_GONE..=MAX_GONE + turns).contains(&gone) || since(dip.last) > turns {
            return false;
        }
        self.probes.rotate_right(1);
        self.probes[0] = Some(dip);
        let [_, Some(before), ..] = self.probes else { return false };
        let apart = dip.first.since(before.first).as_secs_f64();
        let latest = PERIOD + LATER + LATER_TURNS * base;
        dip.unforced && before.unforced && (PERIOD..=latest).contains(&apart)
    }

    /// Whether BBR must be gone: no probe for two periods, or a queue that comes and goes all the time.
    pub fn is_over(&self, now: Time, base: f64) -> bool {
        let [Some(newest), .., oldest] = self.probes else { return true };
        let often =
            oldest.is_some_and(|o| newest.first.since(o.first).as_secs_f64() < 0.5 * PERIOD);
        let most = 2.0 * (PERIOD + LATER + LATER_TURNS * base);
        often || (self.dip.is_none() && now.since(newest.first).as_secs_f64() > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// Round trips of 50 ms and up to 100 over so many seconds, by a queue that is full but for dips of 0.3 s at the given
    /// times, after which it comes back within `back` seconds; whether two of them look like BBR's, the own window being cut
    /// so many seconds before each.
    fn found(dips: &[f64], back: f64, cut: Option<f64>) -> bool {
        let mut path = PathModel::default();
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let mut ack = scenario.ack(1, false);
        let mut probes = ProbeRtt::default();
        (0..4000).any(|i| {
            let now = 0.01 * f64::from(i);
            ack.now = Time::from_secs_f64(now);
            let last = dips.iter().copied().rfind(|d| *d <= now);
            let filled = last.map_or(1.0, |d| ((now - d - 0.3) / back).clamp(0.0, 1.0));
            ack.rtt = Duration::from_secs_f64(if now < 0.1 { 0.05 } else { 0.05 + 0.05 * filled });
            path.on_ack(&ack);
            let cut = last.zip(cut).map(|(d, before)| Time::from_secs_f64(d - before));
            probes.on_ack(&ack, &path, cut)
        })
    }

    #[test]
    fn bbr_is_found_by_two_probes_ten_seconds_apart() {
        assert!(found(&[5.0, 15.3], 0.2, None));
        assert!(found(&[5.0, 15.3], 0.2, Some(1.0)));
        // Not by one, by others' times, by a queue that comes back slowly, or by one's own cuts.
        assert!(!found(&[5.0], 0.2, None));
        assert!(!found(&[5.0, 12.0, 19.0], 0.2, None));
        assert!(!found(&[5.0, 15.3], 3.0, None));
        assert!(!found(&[5.0, 15.3], 0.2, Some(0.1)));
    }

    #[test]
    fn it_is_gone_after_two_periods_without_a_probe_or_where_the_queue_comes_and_goes() {
        let at = |s: f64| Time::from_secs_f64(s);
        let dip = |s: f64| Some(Dip { first: at(s), last: at(s), unforced: true });
        let seen = |times: [Option<f64>; MANY]| ProbeRtt {
            probes: times.map(|t| t.and_then(dip)),
            ..ProbeRtt::default()
        };
        let two = seen([Some(30.0), Some(20.0), None, None]);
        assert!(!two.is_over(at(50.0), 0.05) && two.is_over(at(51.5), 0.05));
        assert!(seen([Some(30.0), Some(29.0), Some(28.0), Some(27.0)]).is_over(at(31.0), 0.05));
        assert!(ProbeRtt::default().is_over(at(1.0), 0.05));
    }
}
