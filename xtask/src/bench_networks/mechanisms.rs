//! The mechanisms of rrtp's controller, each with the change of its source that removes it.

/// A text of one file of the controller, and the text in its place.
pub type Edit = (&'static str, &'static str, &'static str);

/// A part of the algorithm that can be removed.
pub struct Mechanism {
    pub name: &'static str,
    /// Its effect.
    pub does: &'static str,
    /// Constants and lines of code that only it needs.
    pub constants: u32,
    pub lines: u32,
    pub edits: &'static [Edit],
}

const fn one(
    name: &'static str,
    does: &'static str,
    (constants, lines): (u32, u32),
    edits: &'static [Edit],
) -> Mechanism {
    Mechanism { name, does, constants, lines, edits }
}

/// All mechanisms, in the order of the specification.
pub const MECHANISMS: &[Mechanism] = &[
    one(
        "base-periods",
        "the base RTT expires",
        (2, 6),
        &[(
            "estimate.rs",
            "now - self.period_began > BASE_SECONDS.max(BASE_ROUNDS * rtt)",
            "self.period_began > now",
        )],
    ),
    one(
        "largest-sample",
        "the rate of a round is its largest rate sample, not its mean",
        (0, 2),
        &[("estimate/round.rs", "self.rate.max(mean_rate) /", "mean_rate /")],
    ),
    one(
        "lost-in-rate",
        "the rate of a round includes packets that the link lost",
        (0, 1),
        &[(
            "estimate/round.rs",
            "self.rate.max(mean_rate) / (1.0 - link_loss)",
            "self.rate.max(mean_rate) + 0.0 * link_loss",
        )],
    ),
    one(
        "deviation",
        "noise includes the standard deviation of delays",
        (0, 9),
        &[
            ("estimate.rs", "self.deviation.value\n        };", "0.0\n        };"),
            (
                "estimate.rs",
                "2.0 * (self.deviation.value + self.wander.value)",
                "2.0 * self.wander.value",
            ),
        ],
    ),
    one(
        "wander",
        "noise includes the change of the least delay where delays jitter",
        (0, 3),
        &[(
            "estimate.rs",
            "2.0 * (self.deviation.value + self.wander.value)",
            "2.0 * self.deviation.value",
        )],
    ),
    one(
        "steady-rounds",
        "variation is measured only while the sending rate is steady",
        (0, 4),
        &[("estimate.rs", "sent.abs() < MIN_CHANGE || sent * longer < 0.0", "sent.is_finite()")],
    ),
    one(
        "two-packets",
        "the target delay is at least two packets' time",
        (0, 5),
        &[("estimate.rs", "TARGET.max(two_packets)", "TARGET + 0.0 * two_packets")],
    ),
    one(
        "jitter",
        "delays that scatter more than a queue count as noise",
        (1, 30),
        &[("estimate.rs", "self.jitter_ratio.value > 1.0", "false")],
    ),
    one(
        "learned-noise",
        "evidence of a shared queue counts as noise where delays jitter",
        (0, 11),
        &[("mod.rs", "self.evidence.refutes() && self.path.jitters()", "false")],
    ),
    one(
        "one-packet-scatter",
        "the expected scatter is at least one packet's time",
        (0, 1),
        &[("estimate/round.rs", ".max(one_packet)", ".max(0.0 * one_packet)")],
    ),
    one(
        "loss-discount",
        "losses of the link are no congestion",
        (5, 50),
        &[(
            "estimate/loss.rs",
            "share.min(most).max(self.hinted).min(MAX_LOSS)",
            "0.0 * share.min(most).min(MAX_LOSS)",
        )],
    ),
    one(
        "burst-length",
        "a burst of losses is as significant as one loss",
        (0, 8),
        &[(
            "estimate/loss.rs",
            "((self.runs.lost + 1.0) / (self.runs.packets + 1.0)).max(1.0)",
            "1.0",
        )],
    ),
    one(
        "reduced-test",
        "the link's loss share is at most that at a lower rate",
        (2, 12),
        &[("estimate/loss.rs", "share.min(most)", "share.min(1.0 + 0.0 * most)")],
    ),
    one(
        "outside-probes",
        "losses of probes do not count as the link's",
        (0, 10),
        &[("estimate.rs", "sent < self.probe_begin || sent > self.probe_end", "sent >= 0.0")],
    ),
    one(
        "long-queue",
        "losses in long queues do not count as the link's",
        (1, 14),
        &[(
            "estimate.rs",
            "!self.jitters() && self.queue > LONG_QUEUE * self.longest_queue()",
            "false",
        )],
    ),
    one(
        "unexplained",
        "unexplained losses in long queues reduce the bandwidth and are evidence",
        (0, 18),
        &[(
            "estimate/loss.rs",
            "let unexplained = self.exceeds(self.long.packets, self.long.lost);",
            "let unexplained = self.long.packets < 0.0;",
        )],
    ),
    one(
        "app-limited",
        "rounds that the application limited do not lower the bandwidth",
        (0, 3),
        &[(
            "estimate.rs",
            "view.round.app_limited && !view.saturated() && rate <= before",
            "false",
        )],
    ),
    one(
        "queued-rate",
        "the rate of a round with a queue replaces the bandwidth",
        (0, 2),
        &[("estimate.rs", "if view.queued {", "if view.queued && rate < 0.0 {")],
    ),
    one(
        "dropped-rate",
        "a round with losses sets the bandwidth",
        (0, 3),
        &[("estimate.rs", "} else if view.dropped {", "} else if view.dropped && rate < 0.0 {")],
    ),
    one(
        "train",
        "the spacing of the first packets speeds the startup up",
        (1, 22),
        &[
            ("startup.rs", "self.train = self.count / (now - began);", "self.train = 0.0;"),
            ("startup.rs", "self.train = rate;", "self.train = 0.0;"),
        ],
    ),
    one(
        "dispersion",
        "the handshake's dispersion sets the first window and rate",
        (0, 12),
        &[(
            "mod.rs",
            "startup.on_dispersion(rate, crate::positive(dispersion.rtt));",
            "let _ = (startup, rate);",
        )],
    ),
    one(
        "within-round",
        "a queue ends the startup within a round",
        (1, 18),
        &[(
            "mod.rs",
            "startup.within_round(&self.path)",
            "startup.within_round(&self.path).filter(|_| false)",
        )],
    ),
    one(
        "not-in-jitter",
        "where delays jitter, a queue does not end the startup within a round",
        (0, 1),
        &[("startup.rs", "if self.best == 0.0 || path.jitters() {", "if self.best == 0.0 {")],
    ),
    one(
        "resumed-startup",
        "the startup goes on if its last flight arrived at a higher rate than the one that was set",
        (0, 22),
        &[("mod.rs", "&& view.follows()", "&& view.follows() && view.bandwidth < 0.0")],
    ),
    one(
        "startup-queue",
        "a queue ends the startup",
        (2, 22),
        &[(
            "startup.rs",
            "path.noise().max(STARTUP_QUEUE * path.base().unwrap_or(0.0))",
            "f64::INFINITY + 0.0 * path.noise()",
        )],
    ),
    one(
        "startup-pacing",
        "the startup paces after the first flight",
        (0, 4),
        &[(
            "startup.rs",
            "path.base().filter(|_| !self.is_first)",
            "path.base().filter(|_| false)",
        )],
    ),
    one(
        "stale-if-limited",
        "only rounds at the window's limit count towards the plateau",
        (0, 1),
        &[(
            "startup.rs",
            "u32::from(ack.window_limited)",
            "u32::from(ack.window_limited || self.window > 0.0)",
        )],
    ),
    one(
        "restart-limit",
        "the window begins anew after persistent congestion",
        (0, 4),
        &[("mod.rs", "self.restart_limit = FIRST_FLIGHT;", "self.restart_limit = f64::INFINITY;")],
    ),
    one(
        "probes",
        "alone, one round in eight has a higher rate",
        (1, 6),
        &[("alone.rs", "follows || recalls || self.phase >= self.cycle", "follows || recalls")],
    ),
    one(
        "probe-again",
        "a probe whose packets arrive is followed by another one",
        (1, 5),
        &[("alone.rs", "follows || recalls", "recalls")],
    ),
    one(
        "recall",
        "if the queue is empty, a probe paces at the largest recent mean rate",
        (0, 12),
        &[
            ("alone.rs", "view.empty && path.recalled()", "path.recalled() < 0.0 && UP"),
            ("alone.rs", "path.recalled().min(2.0 * bandwidth)", "bandwidth"),
        ],
    ),
    one(
        "rarer-probes",
        "the cycle doubles if probes cause losses",
        (1, 6),
        &[("alone.rs", "self.cycle = (2 * self.cycle).min(CYCLE * CYCLE);", "self.cycle = CYCLE;")],
    ),
    one(
        "drain-after-probe",
        "a round with a lower rate follows each probe",
        (0, 2),
        &[("alone.rs", "self.gain > 1.0 || saturated", "saturated")],
    ),
    one(
        "drain-when-saturated",
        "every second round has a lower rate while a queue or losses remain",
        (0, 2),
        &[(
            "alone.rs",
            "self.gain > 1.0 || saturated && !probed && self.gain >= 1.0",
            "self.gain > 1.0",
        )],
    ),
    one(
        "drain-at-begin",
        "the policy alone begins with a lower rate",
        (0, 1),
        &[("alone.rs", "cycle: CYCLE, gain: DOWN", "cycle: CYCLE, gain: 1.0")],
    ),
    one(
        "window-in-drain",
        "a lower gain leaves the window",
        (0, 1),
        &[("alone.rs", "self.gain.max(1.0) * path.target()", "self.gain * path.target()")],
    ),
    one(
        "competitive",
        "a shared queue is recognised, and CUBIC's window is used there",
        (6, 130),
        &[(
            "mod.rs",
            "} else if self.evidence.refutes() {",
            "} else if self.evidence.refutes() && ack.outstanding > ack.outstanding {",
        )],
    ),
    one(
        "unexplained-term",
        "unexplained losses in long queues are evidence of a shared queue",
        (0, 3),
        &[(
            "experiment.rs",
            "if view.unexplained {",
            "if view.unexplained && view.bandwidth < 0.0 {",
        )],
    ),
    one(
        "empty-term",
        "an empty queue is evidence of being alone",
        (2, 6),
        &[(
            "experiment.rs",
            "self.add(-EMPTY_TERM, view.bandwidth);",
            "self.add(-0.0 * EMPTY_TERM, view.bandwidth);",
        )],
    ),
    one(
        "comparison-term",
        "the response of the rate to the packets sent is evidence",
        (2, 20),
        &[(
            "experiment.rs",
            "self.compare(&last.round, view);",
            "if last.bandwidth < 0.0 { self.compare(&last.round, view) }",
        )],
    ),
    one(
        "bandwidth-before",
        "competitive begins with the bandwidth before the evidence",
        (0, 5),
        &[(
            "mod.rs",
            "before.max(ack.outstanding as f64)",
            "(0.0 * before).max(ack.outstanding as f64)",
        )],
    ),
    one(
        "cubic-growth",
        "the window grows as CUBIC's, not as Reno's",
        (1, 7),
        &[("competitive.rs", "if self.from > 0.0 {", "if self.from < 0.0 {")],
    ),
    one(
        "competitive-drain",
        "two of ten competitive rounds have a lower rate",
        (0, 5),
        &[("competitive.rs", "if self.rounds % (CYCLE + 2) >= CYCLE { DOWN } else { 1.0 }", "1.0")],
    ),
    one(
        "competitive-pacing",
        "the competitive policy paces",
        (0, 1),
        &[(
            "competitive.rs",
            "Some(UP * window / path.rtt.max(f64::MIN_POSITIVE))",
            "Some(4.0 * window / path.rtt.max(f64::MIN_POSITIVE))",
        )],
    ),
];
