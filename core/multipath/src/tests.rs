//! Properties of every listed scheduler.

use crate::*;
use narrows_base::list::Listed as _;
use narrows_base::{Duration, Time};
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn path(rtt: u64, mbps: f64) -> PathState {
    PathState {
        srtt: ms(rtt),
        min_rtt: ms(rtt),
        rate: mbps * 125_000.0,
        cwnd: 1 << 20,
        ..PathState::default()
    }
}

fn bulk(backlog: u64) -> Piece {
    Piece {
        length: 1200,
        backlog,
        class: TrafficClass::Bulk,
        deadline: Time::NEVER,
        is_lost: false,
    }
}

fn scheduler(name: &str) -> Box<dyn Scheduler> {
    (SCHEDULERS.find(name).unwrap().build)()
}

#[test]
fn list_of_schedulers_has_the_listed_names() {
    let names: Vec<_> = SCHEDULERS.built_in().iter().map(|e| e.name()).collect();
    assert_eq!(names, SCHEDULER_NAMES);
}

#[test]
fn earliest_waits_for_fast_path_at_end_of_data() {
    let now = Time::ZERO + ms(1000);
    let fast = PathState { sendable: now + ms(1), ..path(20, 50.0) };
    let paths = [fast, path(320, 50.0)];
    let mut earliest = scheduler("earliest");
    assert_eq!(earliest.choose(now, &paths, &bulk(1200)), Choice::Wait(fast.sendable));
    assert_eq!(earliest.choose(now, &paths, &bulk(100 << 20)), Choice::Send(1));
    assert_eq!(earliest.choose(now, &paths, &bulk(u64::MAX)), Choice::Send(1));
    let call = Piece { class: TrafficClass::Interactive, ..bulk(u64::MAX) };
    assert_eq!(earliest.choose(now, &paths, &call), Choice::Wait(fast.sendable));
}

/// The sender's own data make the queue, so a packet waits in all of it, and not in half.
#[test]
fn earliest_counts_the_whole_queue_of_a_path() {
    let queued = PathState { min_rtt: ms(40), ..path(200, 50.0) };
    let long = PathState { min_rtt: ms(300), ..path(300, 50.0) };
    let mut earliest = scheduler("earliest");
    assert_eq!(earliest.choose(Time::ZERO, &[queued, long], &bulk(1200)), Choice::Send(1));
    let unknown = PathState { min_rtt: Duration::ZERO, ..queued };
    assert_eq!(earliest.choose(Time::ZERO, &[unknown, long], &bulk(1200)), Choice::Send(0));
}

/// The stream waits for the last of all that a path loses in a round trip.
#[test]
fn earliest_repeats_lost_data_where_fewer_are_lost_again() {
    let lossy = PathState { loss: 0.02, ..path(400, 80.0) };
    let paths = [lossy, path(450, 5.0)];
    let mut earliest = scheduler("earliest");
    assert_eq!(earliest.choose(Time::ZERO, &paths, &bulk(1200)), Choice::Send(0));
    let lost = Piece { is_lost: true, ..bulk(1200) };
    assert_eq!(earliest.choose(Time::ZERO, &paths, &lost), Choice::Send(1));
}

#[test]
fn earliest_repeats_overdue_piece_on_faster_path() {
    let now = Time::ZERO + ms(1000);
    let paths = [path(20, 50.0), path(100, 50.0)];
    let mut earliest = scheduler("earliest");
    let sent =
        |age: u64| InFlightPiece { path: 1, sent: Time::ZERO + ms(1000 - age), length: 1200 };
    assert!(!earliest.repeats(now, &paths, 0, &sent(45)), "it arrives in 5 ms");
    assert!(earliest.repeats(now, &paths, 0, &sent(120)), "its report is overdue");
}

#[test]
fn weighted_shares_follow_weights() {
    let paths = [PathState { weight: 3.0, ..path(20, 50.0) }, path(20, 50.0)];
    let mut weighted = scheduler("weighted");
    let first = |_| weighted.choose(Time::ZERO, &paths, &bulk(u64::MAX)) == Choice::Send(0);
    assert_eq!((0..400).map(first).filter(|f| *f).count(), 300);
}

#[test]
fn ecf_waits_for_fast_path_with_little_data() {
    let now = Time::ZERO + ms(1000);
    let fast = PathState { sendable: now + ms(1), cwnd: 12_000, ..path(10, 100.0) };
    let paths = [fast, PathState { cwnd: 12_000, ..path(500, 1.0) }];
    let mut ecf = scheduler("ecf");
    assert_eq!(ecf.choose(now, &paths, &bulk(24_000)), Choice::Wait(fast.sendable));
    assert_eq!(ecf.choose(now, &paths, &bulk(u64::MAX)), Choice::Send(1));
}

fn any_path() -> impl Strategy<Value = PathState> {
    let status = prop_oneof![
        4 => Just(PathStatus::Available),
        1 => Just(PathStatus::Standby),
        1 => Just(PathStatus::Unusable)
    ];
    let number = prop_oneof![
        3 => 0.0..1e9,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300])
    ];
    let time = prop_oneof![3 => 0u64..2_000_000_000, 1 => Just(u64::MAX)];
    let times = (time.clone(), time.clone(), time.clone(), time);
    (status, times, number.clone(), number.clone(), number, any::<u64>(), any::<u64>()).prop_map(
        |(status, times, rate, loss, weight, cwnd, bytes_in_flight)| PathState {
            status,
            sendable: Time::from_nanos(times.0),
            srtt: Duration::from_nanos(times.1),
            min_rtt: Duration::from_nanos(times.2),
            rttvar: Duration::from_nanos(times.3),
            rate,
            cwnd,
            bytes_in_flight,
            loss,
            weight,
        },
    )
}

proptest! {
    /// With any numbers no scheduler panics or chooses a path that is unusable, on standby beside an
    /// available one, or not permitted to send.
    #[test]
    fn schedulers_choose_only_usable_paths(
        rounds in prop::collection::vec(
            (prop::collection::vec(any_path(), 0..5), any::<u32>(), any::<u64>(), any::<bool>()),
            1..20,
        ),
    ) {
        for entry in SCHEDULERS.built_in() {
            let mut scheduler = (entry.build)();
            for (paths, length, backlog, interactive) in &rounds {
                let now = Time::from_nanos(1_000_000_000);
                let class =
                    if *interactive { TrafficClass::Interactive } else { TrafficClass::Bulk };
                let piece = Piece { length: *length, class, ..bulk(*backlog) };
                let has_available = paths.iter().any(|p| p.status == PathStatus::Available);
                let may_carry = |p: &PathState| match p.status {
                    PathStatus::Available => true,
                    PathStatus::Standby => !has_available,
                    PathStatus::Unusable => false,
                };
                match scheduler.choose(now, paths, &piece) {
                    Choice::Send(path) => {
                        prop_assert!(may_carry(&paths[path]), "{}", entry.name());
                        prop_assert!(paths[path].is_sendable(now), "{}", entry.name());
                        scheduler.on_sent(path, piece.length, false);
                    }
                    Choice::Wait(until) => prop_assert!(until > now, "{}", entry.name()),
                }
                for on in 0..paths.len() {
                    let copy = InFlightPiece { path: 0, sent: now, length: *length };
                    if scheduler.repeats(now, paths, on, &copy) {
                        prop_assert!(may_carry(&paths[on]), "{}", entry.name());
                    }
                }
            }
        }
    }

    /// The default's copies stay within their share, whatever is offered.
    #[test]
    fn earliest_copies_stay_within_their_share(
        sends in prop::collection::vec((1u32..60_000, any::<bool>()), 1..200),
    ) {
        let now = Time::ZERO + ms(1000);
        let paths = [path(20, 50.0), path(300, 1.0)];
        let mut earliest = scheduler("earliest");
        let mut sent = 0.0;
        let mut copied = 0.0;
        for (length, is_new) in sends {
            let piece = InFlightPiece { path: 1, sent: Time::ZERO, length };
            if !is_new && !earliest.repeats(now, &paths, 0, &piece) {
                continue;
            }
            earliest.on_sent(0, length, !is_new);
            sent += f64::from(length);
            copied += if is_new { 0.0 } else { f64::from(length) };
            prop_assert!(copied <= 0.03 * sent + 14_600.0);
        }
    }
}
