//! An invented outcome for tests of the reports: a crude window model, not the simulator.

use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome, Recommendation};
use narrows_sim::SeriesTable;

/// The protocols of the sample.
pub(crate) const NAMES: [&str; 11] = [
    "tahoe",
    "reno-1990",
    "newreno",
    "reno",
    "vegas",
    "veno",
    "westwood",
    "westwood+",
    "stpd",
    "cubic",
    "bbr",
];

/// Plausible results of these protocols with `flows` flows each on 1.5 Mbit/s, 160 ms and 30 packets.
pub(crate) fn outcome(names: &[&str], flows: usize, seconds: f64, step: f64) -> Outcome {
    Outcome {
        command: "compare",
        command_line: "narrows compare --link '1.5Mbps,80ms,queue=30p,loss=1%' --seeds 10".into(),
        seed: 1,
        link: "1.5Mbps,80ms,queue=30p,loss=1%".into(),
        path: "1.5 Mbit/s, 160.4 ms base RTT, BDP 31 packets, buffer 30 packets, 1% random loss"
            .into(),
        duration_s: seconds,
        warmup_s: 0.0,
        capacity_bps: 1.5e6,
        results: (0..names.len()).map(|i| protocol(names[i], i, flows, seconds, step)).collect(),
        recommendation: Recommendation {
            protocol: "stpd".into(),
            command: Some("narrows kernel run 'stpd' -- COMMAND".into()),
            sentences: vec![
                "Use stpd: it delivers 1.32 Mbit/s, 2.1 times what reno does, and keeps the queue at \
                 4 packets."
                    .into(),
                "cubic comes next with 1.05 Mbit/s.".into(),
            ],
        },
        notes: vec!["vegas matches no published number yet: not validated.".into()],
        variables: Vec::new(),
    }
}

fn protocol(name: &str, place: usize, flows: usize, seconds: f64, step: f64) -> ProtocolOutcome {
    let mut random = Random(place as u64 * 7919 + 17);
    let n = (seconds / step) as usize;
    let share = 1.0 / flows as f64;
    let growth = 0.6 + 0.25 * place as f64;
    let cut = 0.5 + 0.035 * place as f64;
    let time: Vec<f64> = (1..=n).map(|i| i as f64 * step).collect();
    let mut queue = vec![0.0; n];
    let mut drops = vec![0.0; n];
    let mut losses = vec![0.0; n];
    let mut all = vec![0.0; n];
    let mut series = Vec::new();
    let mut window: Vec<f64> = vec![4.0 * share; flows];
    let mut threshold = vec![f64::NAN; flows];
    let mut columns = vec![[(); 5].map(|()| Vec::with_capacity(n)); flows];
    for i in 0..n {
        let total: f64 = window.iter().sum();
        queue[i] = (total - 31.0).clamp(0.0, 30.0);
        let rtt = 0.1604 + queue[i] * 8000.0 / 1.5e6;
        for f in 0..flows {
            let rate = window[f] * 8000.0 / rtt.max(total * 8000.0 / 1.5e6);
            let lost = random.next() < 0.01 * rate / 8000.0 * step;
            let full = total > 61.0 && random.next() < 0.5;
            if lost || full {
                threshold[f] = (window[f] * cut).max(2.0);
                window[f] = if name == "tahoe" { 1.0 } else { threshold[f] };
                losses[i] += f64::from(lost);
                drops[i] += f64::from(full) * (1.0 + (random.next() * 3.0).floor());
            } else if threshold[f].is_nan() || window[f] < threshold[f] {
                window[f] *= 1.0 + step / rtt;
            } else {
                window[f] += growth * step / rtt;
            }
            all[i] += rate;
            let again = f64::from(lost) + f64::from(full);
            for (column, value) in
                columns[f].iter_mut().zip([window[f], threshold[f], rtt, rate, again])
            {
                column.push(value);
            }
        }
    }
    let goodput = all.iter().sum::<f64>() / n.max(1) as f64;
    let mean_queue = queue.iter().sum::<f64>() / n.max(1) as f64;
    for (f, column) in columns.into_iter().enumerate() {
        let names = ["cwnd", "ssthresh", "rtt_s", "throughput_bps", "retransmissions"];
        series.push(SeriesTable {
            kind: "flow",
            name: format!("{name}-{f}"),
            group: name.into(),
            time_s: time.clone(),
            columns: names.into_iter().zip(column).collect(),
        });
    }
    series.push(SeriesTable {
        kind: "link",
        name: "bottleneck".into(),
        group: String::new(),
        time_s: time,
        columns: vec![
            ("queue_max", queue.iter().map(|q| f64::min(q + 2.0, 30.0)).collect()),
            ("queue", queue),
            ("throughput_bps", all),
            ("drops", drops),
            ("losses", losses),
        ],
    });
    let estimate =
        |mean: f64| Estimate::symmetric(mean, Some(mean * (0.01 + 0.03 * random.next())));
    let measures = measures(goodput, mean_queue, estimate);
    let per_flow =
        (0..flows).map(|f| (format!("{name}-{f}"), vec![measures[0], measures[3]])).collect();
    let status = match name {
        "vegas" => "not validated",
        _ => "validated against ns-2",
    };
    ProtocolOutcome {
        protocol: name.into(),
        group: name.into(),
        digest: 0,
        flows,
        seeds: 10,
        rivals: 0,
        one_trajectory: false,
        by_seed: Vec::new(),
        status: status.into(),
        measures,
        per_flow,
        series,
    }
}

fn measures(
    goodput: f64,
    queue: f64,
    mut estimate: impl FnMut(f64) -> Estimate,
) -> Vec<(&'static str, Estimate)> {
    let rtt = 0.1604 + queue * 8000.0 / 1.5e6;
    [
        ("goodput_bps", goodput),
        ("throughput_bps", goodput * 1.02),
        ("utilisation", goodput / 1.5e6),
        ("rtt_s_mean", rtt),
        ("rtt_s_p95", rtt * 1.4),
        ("loss_rate", 0.012),
        ("queue_loss_rate", 0.002),
        ("random_loss_rate", 0.01),
        ("offered_over_delivered", 1.013),
        ("queue_packets_mean", queue),
        ("retransmissions", 120.0),
        ("timeouts", 1.3),
        ("cov_1s", 0.21),
        ("jain", 0.98),
        ("share", f64::NAN),
    ]
    .into_iter()
    .map(|(name, mean)| (name, estimate(mean)))
    .collect()
}

/// Enough randomness for a picture.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
