use super::*;
use crate::Environment;
use crate::rrtp::round::Round;

/// In competitive mode with a window of 100 packets, on a path whose round trips were 50 ms and up to 100, and are `rtt` now.
fn with_queue(rtt: f64) -> (Rrtp, Ack) {
    let mut rrtp = Rrtp::new(&Environment::default());
    (rrtp.mode, rrtp.window) = (Mode::Competitive, 100.0);
    let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
    let mut ack = Ack { window_limited: true, newly_delivered: 10, ..scenario.ack(10, false) };
    for rtt in [0.05, 0.1, rtt] {
        ack.rtt = narrows_base::Duration::from_secs_f64(rtt);
        rrtp.path.on_ack(&ack);
    }
    (rrtp, ack)
}

/// A packet that left at `sent` is found lost at `now`, both in seconds.
fn lost(sent: f64, now: f64) -> PacketOutcome {
    let (seq, bytes, lost, marked, radio) = (0, 1000, true, false, false);
    let [now, sent] = [now, sent].map(Time::from_secs_f64);
    PacketOutcome { now, seq, sent, bytes, lost, marked, radio }
}

/// A cut that left the path full may leave more the next time, and grows by as much less: by less than AIMD of the same
/// mean window where a queue shows, since pacing spares us the drops that bursts have.
#[test]
fn behind_a_shallow_queue_cuts_and_growth_are_gentle() {
    let cut = |rtt, emptied| {
        let (mut rrtp, _) = with_queue(rtt);
        rrtp.path.round.max_rtt = 0.0625;
        rrtp.competitive.last_cut.emptied = emptied;
        if rtt < 0.06 {
            rrtp.competitive.policed = true;
        }
        rrtp.congestion_loss(&lost(1.0, 1.0));
        (rrtp.window, rrtp.competitive.growth)
    };
    let (window, growth) = cut(0.1, false);
    assert!(window == 50.0 && (growth - GENTLE).abs() < 1e-9, "{window} {growth}");
    let (window, growth) = cut(0.1, true);
    assert!((50.0..80.0).contains(&window), "{window}");
    let left = window / 100.0;
    let same_mean = 3.0 * (1.0 - left) / (1.0 + left);
    assert!(growth < 0.9 * same_mean && growth > 0.6 * same_mean, "{growth} {same_mean}");
    assert_eq!(cut(0.05, false).0, 100.0 * POLICED_LEFT);
}

/// As in RFC 6582 and RFC 9002 section 7.3.2: a flow that grew at once would take from those who repair first.
#[test]
fn the_window_grows_only_by_what_left_after_the_cut() {
    let (mut rrtp, mut ack) = with_queue(0.1);
    rrtp.congestion_loss(&lost(0.95, 1.0));
    let cut = rrtp.window;
    for (now, grows) in [(1.05, false), (1.2, true)] {
        ack.now = Time::from_secs_f64(now);
        rrtp.competitive_ack(&ack, false);
        assert_eq!(rrtp.window > cut, grows, "{now}");
    }
}

/// Between requests little arrives. A cut made then proves nothing by what arrives after it: neither a policer nor, if
/// as much is lost as before, anything else.
#[test]
fn a_cut_while_the_application_was_the_limit_is_not_judged() {
    let policed = |app_limited| {
        let mut rrtp = Rrtp::new(&Environment::default());
        (rrtp.mode, rrtp.window) = (Mode::Competitive, 100.0);
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let mut ack = scenario.ack(1, false);
        for rtt in [0.05, 0.1, 0.05] {
            ack.rtt = narrows_base::Duration::from_secs_f64(rtt);
            rrtp.path.on_ack(&ack);
        }
        rrtp.path.round =
            Round { delivered: 20.0, lost: 30.0, span: 0.05, app_limited, ..Round::default() };
        let now = Time::from_secs_f64(1.0);
        let (seq, bytes, lost, marked, radio) = (0, 1000, true, false, false);
        let outcome = PacketOutcome { now, seq, sent: now, bytes, lost, marked, radio };
        rrtp.congestion_loss(&outcome);
        rrtp.path.round = Round { delivered: 40.0, span: 0.05, ..Round::default() };
        rrtp.competitive.since_cut = JUDGED;
        rrtp.judge_cut();
        rrtp.competitive.policed
    };
    assert!(policed(false) && !policed(true));
}
/// Of many that begin at once each expects the whole link: halves would drop most of four rounds more. Where no queue
/// shows, a burst may have taken as much of a lossy link's round.
#[test]
fn a_full_queue_that_drops_most_of_a_round_leaves_what_arrived() {
    let left = |rtt| {
        let mut rrtp = Rrtp::new(&Environment::default());
        (rrtp.mode, rrtp.window) = (Mode::Competitive, 600.0);
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let mut ack = scenario.ack(1, false);
        for rtt in [0.05, 0.1, rtt] {
            ack.rtt = narrows_base::Duration::from_secs_f64(rtt);
            rrtp.path.on_ack(&ack);
        }
        rrtp.path.round = Round { delivered: 75.0, lost: 300.0, ..Round::default() };
        rrtp.leave_what_arrived();
        rrtp.window
    };
    assert_eq!((left(0.1), left(0.05)), (75.0, 600.0));
}

/// A link that loses and holds no queue is climbed again. The full queue of many others loses as much, and to a flow
/// that never saw it empty it looks like a longer path: but its round trips vary, so nothing more is sent into it.
#[test]
fn losses_are_climbed_for_only_where_no_round_trip_meets_a_queue() {
    let climbs = |max_rtt| {
        let mut rrtp = Rrtp::new(&Environment::default());
        rrtp.mode = Mode::Competitive;
        rrtp.path.set_base(0.05);
        let (delivered, lost) = (8.0, 2.0);
        rrtp.path.round = Round { max_rtt, delivered, lost, ..Round::default() };
        (0..100).any(|_| rrtp.loses_without_a_queue(0.05))
    };
    assert!(climbs(0.0505) && !climbs(0.053));
}

/// On a path of microseconds, where only drops show a queue, a packet per round trip would be a drop in every few:
/// the window grows slowly, and a cut leaves what the path holds.
#[test]
fn on_a_short_path_growth_is_slow_and_a_cut_leaves_what_the_path_holds() {
    let mut rrtp = Rrtp::new(&Environment::default());
    (rrtp.mode, rrtp.window) = (Mode::Competitive, 8.0);
    rrtp.competitive.growth = 1.0;
    rrtp.path.set_base(200e-6);
    rrtp.path.round.max_rtt = 250e-6;
    let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
    let ack = Ack { window_limited: true, newly_delivered: 1, ..scenario.ack(1, false) };
    for _ in 0..8 {
        rrtp.competitive_ack(&ack, false);
    }
    assert!(rrtp.window > 8.2 && rrtp.window < 8.3, "{}", rrtp.window);
    let now = Time::from_secs_f64(1.0);
    let (seq, bytes, marked, radio) = (0, 1000, false, false);
    let before = rrtp.window;
    rrtp.congestion_loss(&PacketOutcome { now, seq, sent: now, bytes, lost: true, marked, radio });
    assert!((rrtp.window / before - 0.8).abs() < 1e-9, "{}", rrtp.window);
}

/// Where a policer's losses began at a small window its empty queue acquits them; then the window grows, more is lost
/// and no more arrives. Such runs lost up to two fifths of their packets to the end.
#[test]
fn what_only_a_larger_window_loses_is_not_the_links() {
    let believed = |grown: f64| {
        let mut rrtp = Rrtp::new(&Environment::default());
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let mut ack = scenario.ack(1, false);
        (rrtp.mode, rrtp.window) = (Mode::Competitive, 40.0);
        for rtt in [0.05, 0.1, 0.05] {
            ack.rtt = narrows_base::Duration::from_secs_f64(rtt);
            rrtp.path.on_ack(&ack);
        }
        rrtp.path.round.max_rtt = 0.05;
        rrtp.count_empty(0.05);
        for (window, every) in [(40.0, 20), (grown, 3)] {
            rrtp.window = window;
            for seq in 0..300 {
                let sent = Time::from_secs_f64(1.0);
                let (now, bytes, lost) = (sent, 1000, seq % every == 0);
                let (marked, radio) = (false, false);
                let outcome = PacketOutcome { now, seq, sent, bytes, lost, marked, radio };
                crate::Controller::on_packet_outcome(&mut rrtp, &outcome);
                rrtp.path.on_ack(&ack);
                rrtp.window = window;
            }
        }
        rrtp.path.crediting = true;
        rrtp.path.link_loss()
    };
    // At the same window the link began to lose more.
    assert!(believed(40.0) > 0.15, "{}", believed(40.0));
    assert!(believed(80.0) < 0.05, "{}", believed(80.0));
}

/// Where a policer is known, four of 45 packets are its drops although the receiver takes them for the radio's, as no queue
/// shows; one is not, which a link may lose that was taken for a policer.
#[test]
fn a_policers_drops_brake_whatever_the_receiver_takes_them_for() {
    let window = |policed, drops| {
        let (mut rrtp, _) = with_queue(0.05);
        (rrtp.window, rrtp.competitive.policed) = (45.0, policed);
        (0..drops).for_each(|_| {
            crate::Controller::on_packet_outcome(
                &mut rrtp,
                &PacketOutcome { radio: true, ..lost(1.0, 1.05) },
            );
        });
        rrtp.window
    };
    assert_eq!((window(true, 4), window(true, 1)), (45.0 * POLICED_LEFT, 45.0));
    assert_eq!(window(false, 4), 45.0);
}

/// A startup's window may be twice what a policer lets pass. It drops what is above that all the same, and no link is
/// told from it there; what is lost below is a link's.
#[test]
fn a_policer_drops_nothing_of_what_it_was_seen_to_pass() {
    let stays_policed = |window| {
        let (mut rrtp, _) = with_queue(0.05);
        let round = |delivered, lost| Round { delivered, lost, span: 0.05, ..Round::default() };
        rrtp.path.round = round(50.0, 50.0);
        rrtp.congestion_loss(&lost(1.0, 1.0));
        rrtp.path.round = round(50.0, 0.0);
        rrtp.competitive.since_cut = JUDGED;
        rrtp.judge_cut();
        assert!(rrtp.competitive.policed);
        rrtp.window = window;
        rrtp.competitive.since_cut = JUDGED + 1;
        rrtp.path.round = round(50.0, 8.0);
        rrtp.judge_cut();
        rrtp.competitive.policed
    };
    assert!(stays_policed(58.0) && !stays_policed(40.0));
}

/// Others whom the link's losses keep small gain nothing from a queue; but this end keeps what a Reno would reach, where
/// nothing is lost the queue may be theirs, and so is one that stays.
#[test]
fn a_queue_is_drained_where_losses_keep_others_small() {
    let window = |every: usize, packets: f64| {
        let (mut rrtp, _) = with_queue(0.1);
        let losses = rrtp.path.losses.iter_mut();
        losses.for_each(|l| (0..1000).for_each(|i| l.on_outcome(i % every == 0, true)));
        rrtp.path.round = Round {
            min_rtt: 0.1,
            max_rtt: 0.1,
            mean_rtt: 0.1,
            delivered: packets,
            span: 0.1,
            ..Round::default()
        };
        rrtp.leave_room(0.05);
        let window = rrtp.window;
        let stays = (0..3).map(|_| {
            rrtp.window = 100.0;
            rrtp.leave_room(0.05);
            rrtp.window
        });
        assert_eq!(stays.last(), Some(100.0));
        window
    };
    assert_eq!(window(100, 90.0), 45.0);
    let reno = window(100, 20.0);
    assert!((15.0..18.0).contains(&reno), "{reno}");
    assert_eq!(window(1000, 90.0), 100.0);
}
