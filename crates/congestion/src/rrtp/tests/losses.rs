//! Which losses are the link's.

use super::{Bottleneck, told};
use crate::PathHints;

/// The link's own loss is repaired and neither a brake nor a queue, and it is said how much it is.
#[test]
fn a_link_that_loses_much_is_filled_all_the_same() {
    for radio in [10, 5, 3] {
        let mut b = Bottleneck { radio, ..Bottleneck::new(PathHints::default()) };
        b.run(5.0);
        let rate = b.run(15.0);
        let loss = 1.0 / radio as f64;
        assert!(rate > 0.95 * (1.0 - loss) * 1000.0, "1/{radio}: {rate}");
        assert!(b.mean_delay() < 0.008, "1/{radio}: {}", b.mean_delay());
        let believed = b.watch("link_loss");
        assert!((believed - loss).abs() < 0.05, "1/{radio}: {believed}");
    }
}

/// What a buffer drops follows the rate: believing it the link's would raise the rate by what is dropped.
#[test]
fn what_a_short_buffer_drops_is_not_taken_for_the_links_loss() {
    for room in [1, 3] {
        let mut b = Bottleneck { room, ..Bottleneck::new(PathHints::default()) };
        b.run(5.0);
        let (sent, arrived) = (b.next, b.delivered);
        let rate = b.run(15.0);
        let lost = 1.0 - (b.delivered - arrived) as f64 / (b.next - sent) as f64;
        assert!(rate > 700.0 && lost < 0.1, "{room}: {rate} {lost}");
        assert!(b.watch("link_loss") < 0.05, "{room}: {}", b.watch("link_loss"));
    }
}

/// Losses in bursts are the link's just as well: a round that loses more than the mean is no full queue.
#[test]
fn bursts_of_losses_are_the_links_too() {
    for radio in [10, 7] {
        // One draw in a few meets a burst that ends the startup early.
        let mut runs: Vec<(f64, f64)> = (0..5)
            .map(|stream| {
                let hints = PathHints::default();
                let mut b =
                    Bottleneck { radio, burst: 4, random: true, stream, ..Bottleneck::new(hints) };
                b.run(5.0);
                (b.run(15.0), b.mean_delay())
            })
            .collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let loss = 1.0 / radio as f64;
        assert!(runs[2].0 > 0.94 * (1.0 - loss) * 1000.0, "1/{radio}: {runs:?}");
        assert!(runs.iter().all(|r| r.1 < 0.01), "1/{radio}: {runs:?}");
    }
}

/// Whoever comes to a queue that others keep full loses packets and sees round trips that do not vary, as on a long
/// link that loses, and if it sends more, more arrives, as others yield. It must not take the link by that.
#[test]
fn a_queue_that_others_keep_full_is_not_a_link_that_loses() {
    for begins in [5.0, 5.3, 6.1, 7.7] {
        let hints = PathHints::default();
        let mut b = Bottleneck { other: 20, renos: true, begins, ..Bottleneck::new(hints) };
        b.run(10.0);
        let (sent, arrived) = (b.next, b.delivered);
        let rate = b.run(30.0);
        let lost = 1.0 - (b.delivered - arrived) as f64 / (b.next - sent) as f64;
        assert!(rate < 400.0 && lost < 0.2, "{begins}: {rate} {lost}");
    }
}

/// A link that begins to lose much is first taken for a full one. The queue, which had shown before, is empty then: so
/// the losses are the link's, and the rate comes back.
#[test]
fn a_link_that_begins_to_lose_is_filled_again() {
    for radio in [6, 4] {
        let mut b = Bottleneck::new(PathHints::default());
        b.run(5.0);
        b.radio = radio;
        b.run(9.0);
        let rate = b.run(19.0);
        assert!(rate > 0.85 * (1.0 - 1.0 / radio as f64) * 1000.0, "1/{radio}: {rate}");
    }
}

/// Told the rate, a third of all packets lost is believed from the first round on.
#[test]
fn what_was_told_is_kept_up_on_a_link_that_loses_much() {
    let mut b = Bottleneck { radio: 3, ..Bottleneck::new(told(8_000_000)) };
    let rate = b.run(5.0);
    assert!(rate > 0.85 * 667.0, "{rate}");
}

/// A queue of a fiftieth of the product overflows before a delay shows. What a probe adds neither arrives nor waits
/// there: it is dropped, and making up for it would only drop more.
#[test]
fn a_queue_too_short_to_show_is_not_a_link_that_loses() {
    for per_second in [4000.0, 10_000.0] {
        let hints = told(8000 * per_second as u64);
        let mut b = Bottleneck { per_second, room: 4, turns: 0.2e-3, ..Bottleneck::new(hints) };
        b.run(3.0);
        let (sent, arrived) = (b.next, b.delivered);
        let rate = b.run(13.0);
        let lost = 1.0 - (b.delivered - arrived) as f64 / (b.next - sent) as f64;
        assert!(lost < 0.1 && rate > 0.6 * per_second, "{per_second}: {lost} {rate}");
    }
}

/// After a silence nothing is believed on credit, and a startup may end before anything showed: then losses that go on
/// without a queue, however small the rate, are asked about by another climb.
#[test]
fn a_link_that_loses_is_climbed_again_where_the_startup_proved_nothing() {
    for radio in [5, 4, 3] {
        let mut b = Bottleneck { radio, random: true, ..Bottleneck::new(PathHints::default()) };
        b.run(3.0);
        b.silence(100);
        b.run(14.0);
        let rate = b.run(20.0);
        assert!(rate > 0.9 * (1.0 - 1.0 / radio as f64) * 1000.0, "1/{radio}: {rate}");
    }
}

/// After an outage the link loses what it lost before: who forgot that would take it for a full queue's, and keep a
/// window of one or two packets.
#[test]
fn what_a_link_was_known_to_lose_is_believed_after_an_outage() {
    for radio in [6, 4, 3] {
        let mut b = Bottleneck { radio, random: true, ..Bottleneck::new(PathHints::default()) };
        b.run(6.0);
        assert!(b.default_mode(), "1/{radio}");
        b.silence(100);
        b.run(8.0);
        let rate = b.run(14.0);
        assert!(rate > 0.9 * (1.0 - 1.0 / radio as f64) * 1000.0, "1/{radio}: {rate}");
    }
}

/// Who asks and is answered sends less than it may. What it loses then and what does not arrive says nothing of the
/// bottleneck: no probe was dropped by it, no cut judged, and what the link is known to carry stays known.
#[test]
fn an_application_that_sends_little_over_a_link_that_loses_keeps_what_is_known() {
    for radio in [20, 10, 5] {
        let mut b = Bottleneck { radio, random: true, ..Bottleneck::new(PathHints::default()) };
        b.run(5.0);
        for (packets, every) in [(9, 0.35), (40, 0.4), (300, 1.0)] {
            b.writes = Some((packets, every));
            b.run(b.now + 15.0);
            let (known, loss) = (b.watch("bandwidth_bps"), b.watch("link_loss"));
            assert!(b.default_mode() && known > 7.6e6, "1/{radio} {packets}: {known} {loss}");
            assert!(loss > 0.4 / radio as f64, "1/{radio} {packets}: {loss}");
        }
    }
}

/// Three packets in a row are lost every few minutes where each fifth is, and where little is sent nothing else leaves
/// meanwhile: that is no outage. Thirty are one.
#[test]
fn a_silence_that_the_links_loss_explains_is_not_another_path() {
    for (lost, starts_anew) in [(3, false), (30, true)] {
        let mut b = Bottleneck { radio: 5, random: true, ..Bottleneck::new(PathHints::default()) };
        b.run(5.0);
        assert!(b.default_mode());
        b.silence(lost);
        assert_eq!(b.watch("rrtp_state") == 0.0, starts_anew, "{lost}");
    }
}

/// The question whose the queue is takes two rounds in which the window is the limit. Where the application pauses between,
/// less arrives for that, and not for others; it is asked again.
#[test]
fn an_application_that_pauses_is_not_others() {
    let writes = Some((300, 0.45));
    let mut b = Bottleneck { writes, ..Bottleneck::new(PathHints::default()) };
    b.run(20.0);
    assert!(b.default_mode() && b.watch("queue_owner") == 1.0);
}

/// Bursts of a link look like a policer where chance ends them with a cut. But a policer drops nothing of what is sent at
/// much less than its rate.
#[test]
fn bursts_that_a_cut_seemed_to_end_are_the_links_after_all() {
    for (burst, radio) in [(8, 20), (12, 12), (12, 14), (12, 23)] {
        let hints = PathHints::default();
        let mut b = Bottleneck { radio, burst, random: true, ..Bottleneck::new(hints) };
        b.run(5.0);
        let rate = b.run(45.0);
        assert!(rate > 0.85 * (1.0 - 1.0 / radio as f64) * 1000.0, "{burst} 1/{radio}: {rate}");
    }
}

/// A link becomes twenty times slower, and its queue drops most of what is in flight: what arrived shows what there is
/// room for. Halves would drop half as much again.
#[test]
fn a_queue_that_takes_most_of_a_round_is_not_filled_for_many_more() {
    let hints = PathHints::default();
    let (per_second, room) = (20_000.0, 1000);
    let mut b = Bottleneck { per_second, room, other: 50, renos: true, ..Bottleneck::new(hints) };
    b.run(6.0);
    assert!(b.competitive());
    (b.per_second, b.room, b.other) = (1000.0, 50, 0);
    let (sent, arrived) = (b.next, b.delivered);
    b.run(7.0);
    let lost = (b.next - sent).saturating_sub(b.delivered - arrived);
    assert!(lost < 550, "{lost}");
}
