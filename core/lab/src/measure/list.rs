//! The list of measures: it drives JSON, CSV, the table, the report and the documentation.

use super::frames;
use super::inputs::{
    Better, FlowInputs, GroupInputs, Measure, completion, cov, flow_loss_events, limited, mean,
    mean_roughness, one_roughness, ratio,
};
use crate::stats;
use narrows_sim::FlowResult;

/// All measures.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: "goodput_bps",
        title: "Goodput",
        unit: "bit/s",
        doc: "application bytes delivered in order, summed over the flows",
        better: Better::More,
        competition: false,
        of: |v| v.flows().map(|f| f.goodput_bytes as f64).sum::<f64>() * 8.0 / v.run.span_s,
        per_flow: Some(|f, span| f.goodput_bytes as f64 * 8.0 / span),
    },
    Measure {
        name: "goodput_limit_bps",
        title: "Limit of goodput",
        unit: "bit/s",
        doc: "what the bottleneck could serve of what came to the receivers in the measured span: its mean \
              rate as they see it, later by the propagation from it to them",
        better: Better::Neither,
        competition: false,
        of: |v| v.here().arriving_capacity_bits / v.run.span_s,
        per_flow: None,
    },
    Measure {
        name: "throughput_bps",
        title: "Throughput",
        unit: "bit/s",
        doc: "all its data bits served by the bottleneck, headers and copies included",
        better: Better::Neither,
        competition: false,
        of: |v| v.here().served_bits / v.run.span_s,
        per_flow: None,
    },
    Measure {
        name: "utilisation",
        title: "Utilisation",
        unit: "fraction",
        doc: "all bits that the bottleneck served over its capacity",
        better: Better::More,
        competition: false,
        of: |v| ratio(v.link.served_bits, v.link.capacity_bits),
        per_flow: None,
    },
    Measure {
        name: "loss_rate",
        title: "Loss rate",
        unit: "fraction",
        doc: "its queue drops and random losses over the packets that it offered to the bottleneck",
        better: Better::Less,
        competition: false,
        of: |v| ratio((v.here().dropped + v.here().lost) as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "queue_loss_rate",
        title: "Queue drops",
        unit: "fraction",
        doc: "the part of the loss rate that the queue dropped",
        better: Better::Less,
        competition: false,
        of: |v| ratio(v.here().dropped as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "random_loss_rate",
        title: "Random losses",
        unit: "fraction",
        doc: "the part of the loss rate that was lost after transmission",
        better: Better::Neither,
        competition: false,
        of: |v| ratio(v.here().lost as f64, v.here().offered as f64),
        per_flow: None,
    },
    Measure {
        name: "congestion_judged_radio",
        title: "Congestion judged radio",
        unit: "fraction",
        doc: "queue drops that the receiver's loss differentiation took for the radio's, over all that it judged",
        better: Better::Less,
        competition: false,
        of: |v| {
            let judged = |f: &FlowResult| f.classifier_counts.unwrap_or_default();
            let wrong = v.flows().map(|f| judged(f).congestion_judged_radio as f64).sum();
            ratio(wrong, v.flows().map(|f| judged(f).congestion as f64).sum())
        },
        per_flow: None,
    },
    Measure {
        name: "radio_judged_congestion",
        title: "Radio judged congestion",
        unit: "fraction",
        doc: "random losses that it took for congestion, over all that it judged",
        better: Better::Less,
        competition: false,
        of: |v| {
            let judged = |f: &FlowResult| f.classifier_counts.unwrap_or_default();
            let wrong = v.flows().map(|f| judged(f).radio_judged_congestion as f64).sum();
            ratio(wrong, v.flows().map(|f| judged(f).radio as f64).sum())
        },
        per_flow: None,
    },
    Measure {
        name: "offered_over_delivered",
        title: "Offered over delivered",
        unit: "ratio",
        doc: "application bytes sent, copies included, over those delivered in order",
        better: Better::Less,
        competition: false,
        of: |v| {
            let sent: f64 = v.flows().map(|f| f.sent_bytes as f64).sum();
            ratio(sent, v.flows().map(|f| f.goodput_bytes as f64).sum())
        },
        per_flow: Some(|f, _| ratio(f.sent_bytes as f64, f.goodput_bytes as f64)),
    },
    Measure {
        name: "queue_packets_mean",
        title: "Mean queue",
        unit: "packets",
        doc: "packets waiting at the bottleneck, mean over time, the one in service not counted",
        better: Better::Less,
        competition: false,
        of: |v| v.link.queue_mean,
        per_flow: None,
    },
    Measure {
        name: "queue_packets_max",
        title: "Longest queue",
        unit: "packets",
        doc: "most packets waiting at the bottleneck",
        better: Better::Less,
        competition: false,
        of: |v| v.link.queue_max as f64,
        per_flow: None,
    },
    Measure {
        name: "mark_rate",
        title: "Marks",
        unit: "fraction",
        doc: "its packets that a managed queue marked (ECN) over those that it offered",
        better: Better::Neither,
        competition: false,
        of: |v| match v.link.managed {
            true => ratio(v.here().marked as f64, v.here().offered as f64),
            false => f64::NAN,
        },
        per_flow: None,
    },
    Measure {
        name: "red_average_min",
        title: "Smallest average queue",
        unit: "packets",
        doc: "smallest average kept by the queue itself (red, cw) at the bottleneck",
        better: Better::Neither,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.min),
        per_flow: None,
    },
    Measure {
        name: "red_average_mean",
        title: "Mean average queue",
        unit: "packets",
        doc: "mean over all arrivals of the average kept by the queue itself (red, cw)",
        better: Better::Less,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.mean),
        per_flow: None,
    },
    Measure {
        name: "red_average_max",
        title: "Largest average queue",
        unit: "packets",
        doc: "largest average kept by the queue itself (red, cw)",
        better: Better::Less,
        competition: false,
        of: |v| v.link.average.map_or(f64::NAN, |a| a.max),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_min",
        title: "Smallest RTT",
        unit: "s",
        doc: "smallest round-trip time over acknowledged packets",
        better: Better::Neither,
        competition: false,
        of: |v| v.rtt().min().map_or(f64::NAN, |ns| ns as f64 * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_mean",
        title: "Mean RTT",
        unit: "s",
        doc: "mean round-trip time over acknowledged packets",
        better: Better::Less,
        competition: false,
        of: |v| v.rtt().mean().map_or(f64::NAN, |ns| ns * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "rtt_s_p95",
        title: "RTT, 95th percentile",
        unit: "s",
        doc: "round-trip time that 95% of the acknowledged packets stay below",
        better: Better::Less,
        competition: false,
        of: |v| v.rtt().quantile(0.95).map_or(f64::NAN, |ns| ns as f64 * 1e-9),
        per_flow: None,
    },
    Measure {
        name: "sent_packets",
        title: "Packets sent",
        unit: "packets",
        doc: "data packets sent, copies included",
        better: Better::Neither,
        competition: false,
        of: |v| v.flows().map(|f| f.sent_packets as f64).sum(),
        per_flow: Some(|f, _| f.sent_packets as f64),
    },
    Measure {
        name: "retransmissions",
        title: "Retransmissions",
        unit: "packets",
        doc: "data packets sent again",
        better: Better::Less,
        competition: false,
        of: |v| v.flows().map(|f| f.retransmissions as f64).sum(),
        per_flow: Some(|f, _| f.retransmissions as f64),
    },
    Measure {
        name: "timeouts",
        title: "Timeouts",
        unit: "",
        doc: "retransmission timeouts",
        better: Better::Less,
        competition: false,
        of: |v| v.flows().map(|f| f.timeouts as f64).sum(),
        per_flow: Some(|f, _| f.timeouts as f64),
    },
    Measure {
        name: "cov_1s",
        title: "Roughness over 1 s",
        unit: "ratio",
        doc: "coefficient of variation of goodput over 1 s bins, mean over the flows; 0 is smooth",
        better: Better::Less,
        competition: false,
        of: |v| mean(v.flows().map(cov).filter(|c| c.is_finite())),
        per_flow: Some(|f, _| cov(f)),
    },
    Measure {
        name: "jain",
        title: "Jain's fairness",
        unit: "",
        doc: "Jain's index of the flows' goodputs: 1 is equal, 1/n is all for one",
        better: Better::More,
        competition: false,
        of: |v| stats::jain(&v.flows().map(|f| f.goodput_bytes as f64).collect::<Vec<_>>()),
        per_flow: None,
    },
    Measure {
        name: "share",
        title: "Share",
        unit: "fraction",
        doc: "its goodput over its own and the others' goodput",
        better: Better::Neither,
        competition: true,
        of: |v| {
            let own = v.goodput(v.group);
            ratio(own, own + v.others.iter().map(|g| v.goodput(*g)).sum::<f64>())
        },
        per_flow: None,
    },
    Measure {
        name: "theta",
        title: "Theta",
        unit: "fraction",
        doc: "the others' departures from the bottleneck over all departures (S1 eq. 6.1): 0.5 is \
              equal, 0 is that the others starve",
        better: Better::Neither,
        competition: true,
        of: |v| {
            let served = |g: usize| v.link.groups.get(g).map_or(0.0, |x| x.served_bits);
            let others: f64 = v.others.iter().map(|g| served(*g)).sum();
            ratio(others, others + served(v.group))
        },
        per_flow: None,
    },
    Measure {
        name: "completion_s",
        title: "Completion time",
        unit: "s",
        doc: "from a transfer's start to its last byte, mean over those that finished",
        better: Better::Less,
        competition: false,
        of: |v| mean(v.flows().map(completion).filter(|c| c.is_finite())),
        per_flow: Some(|f, _| completion(f)),
    },
    Measure {
        name: "finished",
        title: "Finished transfers",
        unit: "fraction",
        doc: "transfers that were complete before the end over those that began",
        better: Better::More,
        competition: false,
        of: |v| {
            let begun = v.flows().filter(|f| f.wanted_bytes > 0).count();
            let done = v.flows().filter(|f| f.wanted_bytes > 0 && f.done.is_some()).count();
            ratio(done as f64, begun as f64)
        },
        per_flow: None,
    },
    // Variation on the other time scales, and how fast goodput changes.
    roughness(
        ["cov_100ms", "Roughness over 0.1 s", "as cov_1s, over 0.1 s bins"],
        |v| mean_roughness(v, 0, |r| r.cov),
        |f, _| one_roughness(f, 0, |r| r.cov),
    ),
    roughness(
        ["cov_200ms", "Roughness over 0.2 s", "as cov_1s, over 0.2 s bins"],
        |v| mean_roughness(v, 1, |r| r.cov),
        |f, _| one_roughness(f, 1, |r| r.cov),
    ),
    roughness(
        ["cov_500ms", "Roughness over 0.5 s", "as cov_1s, over 0.5 s bins"],
        |v| mean_roughness(v, 2, |r| r.cov),
        |f, _| one_roughness(f, 2, |r| r.cov),
    ),
    roughness(
        ["cov_2s", "Roughness over 2 s", "as cov_1s, over 2 s bins"],
        |v| mean_roughness(v, 4, |r| r.cov),
        |f, _| one_roughness(f, 4, |r| r.cov),
    ),
    roughness(
        ["cov_5s", "Roughness over 5 s", "as cov_1s, over 5 s bins"],
        |v| mean_roughness(v, 5, |r| r.cov),
        |f, _| one_roughness(f, 5, |r| r.cov),
    ),
    roughness(
        ["cov_10s", "Roughness over 10 s", "as cov_1s, over 10 s bins"],
        |v| mean_roughness(v, 6, |r| r.cov),
        |f, _| one_roughness(f, 6, |r| r.cov),
    ),
    roughness(
        [
            "rate_change_100ms",
            "Rate of change over 0.1 s",
            "mean absolute difference between the goodputs of neighbouring 0.1 s bins, over the mean \
             goodput; mean over the flows",
        ],
        |v| mean_roughness(v, 0, |r| r.change),
        |f, _| one_roughness(f, 0, |r| r.change),
    ),
    roughness(
        ["rate_change_1s", "Rate of change over 1 s", "as rate_change_100ms, of 1 s bins"],
        |v| mean_roughness(v, 3, |r| r.change),
        |f, _| one_roughness(f, 3, |r| r.change),
    ),
    roughness(
        ["rate_change_10s", "Rate of change over 10 s", "as rate_change_100ms, of 10 s bins"],
        |v| mean_roughness(v, 6, |r| r.change),
        |f, _| one_roughness(f, 6, |r| r.change),
    ),
    // Losses as the sender counts them.
    Measure {
        name: "loss_event_rate",
        title: "Loss event rate",
        unit: "fraction",
        doc: "loss episodes and timeouts over data packets sent, at most one for each: losses that belong \
              to one reduction count once",
        better: Better::Less,
        competition: false,
        of: |v| {
            let sent = v.flows().map(|f| f.sent_packets as f64).sum();
            ratio(v.flows().map(flow_loss_events).sum(), sent)
        },
        per_flow: Some(|f, _| ratio(flow_loss_events(f), f.sent_packets as f64)),
    },
    Measure {
        name: "sender_loss_rate",
        title: "Losses seen by the sender",
        unit: "fraction",
        doc: "packets that the sender counts as lost over packets sent; for TCP, retransmissions",
        better: Better::Less,
        competition: false,
        of: |v| {
            let sent = v.flows().map(|f| f.sent_packets as f64).sum();
            ratio(v.flows().map(|f| f.lost_packets as f64).sum(), sent)
        },
        per_flow: Some(|f, _| ratio(f.lost_packets as f64, f.sent_packets as f64)),
    },
    // Frames of sources that write them: `frames` defines the measures.
    Measure {
        name: "cwnd_limited",
        title: "Window-limited",
        unit: "fraction",
        doc: "share of a sender's time in which its controller's window kept it from sending more",
        better: Better::Neither,
        competition: false,
        of: |v| limited(v, |t| t.cwnd_s),
        per_flow: Some(|f, _| ratio(f.limited.cwnd_s, f.limited.total_s())),
    },
    Measure {
        name: "pacing_limited",
        title: "Rate-limited",
        unit: "fraction",
        doc: "the same for the controller's rate",
        better: Better::Neither,
        competition: false,
        of: |v| limited(v, |t| t.pacing_s),
        per_flow: Some(|f, _| ratio(f.limited.pacing_s, f.limited.total_s())),
    },
    Measure {
        name: "sndbuf_limited",
        title: "Send buffer-limited",
        unit: "fraction",
        doc: "the same for the send buffer (tcp_info's sndbuf_limited): net.ipv4.tcp_wmem in preset linux",
        better: Better::Neither,
        competition: false,
        of: |v| limited(v, |t| t.sndbuf_s),
        per_flow: Some(|f, _| ratio(f.limited.sndbuf_s, f.limited.total_s())),
    },
    Measure {
        name: "rwnd_limited",
        title: "Receive window-limited",
        unit: "fraction",
        doc: "the same for the receive window (tcp_info's rwnd_limited): net.ipv4.tcp_rmem in preset linux",
        better: Better::Neither,
        competition: false,
        of: |v| limited(v, |t| t.rwnd_s),
        per_flow: Some(|f, _| ratio(f.limited.rwnd_s, f.limited.total_s())),
    },
    Measure {
        name: "app_limited",
        title: "Application-limited",
        unit: "fraction",
        doc: "the same for the application, which had written nothing more",
        better: Better::Neither,
        competition: false,
        of: |v| limited(v, |t| t.app_s),
        per_flow: Some(|f, _| ratio(f.limited.app_s, f.limited.total_s())),
    },
    Measure {
        name: "frame_delay_s_p50",
        title: "Frame delay, median",
        unit: "s",
        doc: "from when a frame's base layer is written to when all of it has arrived, median over the frames \
              that arrived; sources of frames (video, layers) alone, as all measures of frames",
        better: Better::Less,
        competition: false,
        of: |v| frames::delay(&v.run.groups[v.group].frame_delay, 0.5),
        per_flow: Some(|f, _| frames::of_one(f, |r| frames::delay(&r.delay, 0.5))),
    },
    Measure {
        name: "frame_delay_s_p95",
        title: "Frame delay, 95th percentile",
        unit: "s",
        doc: "frame delay that 95% of the frames that arrived stay below",
        better: Better::Less,
        competition: false,
        of: |v| frames::delay(&v.run.groups[v.group].frame_delay, 0.95),
        per_flow: Some(|f, _| frames::of_one(f, |r| frames::delay(&r.delay, 0.95))),
    },
    Measure {
        name: "late_frames",
        title: "Late frames",
        unit: "fraction",
        doc: "frames whose base layer came whole after the time at which they were to be shown, over all that \
              were to be shown",
        better: Better::Less,
        competition: false,
        of: |v| frames::share(v, |r| r.late as f64, |r| r.due as f64),
        per_flow: Some(|f, _| frames::of_one(f, |r| ratio(r.late as f64, r.due as f64))),
    },
    Measure {
        name: "frozen_frames",
        title: "Frozen frames",
        unit: "fraction",
        doc: "frames that could not be shown, because their base layer came late, never whole or was left out, \
              over all that were to be shown",
        better: Better::Less,
        competition: false,
        of: |v| frames::share(v, |r| r.frozen as f64, |r| r.due as f64),
        per_flow: Some(|f, _| frames::of_one(f, |r| ratio(r.frozen as f64, r.due as f64))),
    },
    Measure {
        name: "stalls_per_min",
        title: "Stalls",
        unit: "per minute",
        doc: "times that no new picture was shown for more than three frame intervals and more than one and \
              150 ms (freezes of the W3C's webrtc-stats)",
        better: Better::Less,
        competition: false,
        of: |v| frames::share(v, |r| r.stalls as f64, |r| r.span_s / 60.0),
        per_flow: Some(|f, _| frames::of_one(f, |r| ratio(r.stalls as f64, r.span_s / 60.0))),
    },
    Measure {
        name: "quality_switches_per_min",
        title: "Quality switches",
        unit: "per minute",
        doc: "changes of the number of layers that are sent; sources of several layers alone",
        better: Better::Less,
        competition: false,
        of: |v| frames::share(v, |r| frames::layered(r, r.switches as f64), |r| r.span_s / 60.0),
        per_flow: Some(|f, _| {
            frames::of_one(f, |r| ratio(frames::layered(r, r.switches as f64), r.span_s / 60.0))
        }),
    },
    Measure {
        name: "layers_shown",
        title: "Layers shown",
        unit: "layers",
        doc: "layers that were whole in time without a gap from the base upwards, mean over the frames, none of \
              a frozen one; sources of several layers alone",
        better: Better::More,
        competition: false,
        of: |v| frames::share(v, |r| frames::layered(r, r.layers as f64), |r| r.due as f64),
        per_flow: Some(|f, _| {
            frames::of_one(f, |r| ratio(frames::layered(r, r.layers as f64), r.due as f64))
        }),
    },
    // Responses to change: `response` defines the measures.
    Measure {
        name: "halving_s",
        title: "Time to halve",
        unit: "s",
        doc: "from a step down of its fair share (its bottleneck slows down, other flows start) to the \
              first second over which it offers at most half of before, or 1.2 times its new share if \
              that is more; none if it never does, or no step asks for it",
        better: Better::Less,
        competition: false,
        of: |v| v.response.halving_s,
        per_flow: None,
    },
    Measure {
        name: "takeup_s",
        title: "Time to take up",
        unit: "s",
        doc: "from a step up of its fair share (its bottleneck speeds up, other flows stop) to the \
              first second over which it is served 80% of its new share; none as for halving_s",
        better: Better::Less,
        competition: false,
        of: |v| v.response.takeup_s,
        per_flow: None,
    },
    Measure {
        name: "convergence_s",
        title: "Convergence time",
        unit: "s",
        doc: "from a flow's start to the first 5 s in which its goodput stays within 20% of an equal \
              share over 1 s bins, mean over the flows that come to it",
        better: Better::Less,
        competition: false,
        of: |v| mean(v.response.convergence_s.iter().copied().filter(|c| c.is_finite())),
        per_flow: Some(|f, _| f.convergence_s),
    },
];

/// A measure of variation: name, title, description; for a group and for a flow.
const fn roughness(
    [name, title, doc]: [&'static str; 3],
    of: fn(&GroupInputs<'_>) -> f64,
    one: fn(&FlowInputs<'_>, f64) -> f64,
) -> Measure {
    let better = Better::Less;
    let per_flow = Some(one);
    Measure { name, title, unit: "ratio", doc, better, competition: false, of, per_flow }
}

/// The measure of that name.
pub fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|m| m.name == name)
}
