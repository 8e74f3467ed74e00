//! Every number of the algorithm, with its unit and source.

/// Packets of the first flight (RFC 6928).
pub const FIRST_FLIGHT: f64 = 10.0;
/// Packets in flight at least (RFC 9002 has 2, BBR 4: a lost packet is found by three behind it).
pub const MIN_WINDOW: f64 = 3.0;
/// Rounds over which the largest delivery rate counts (BBR: 10): a cycle and two.
pub const RATE_ROUNDS: usize = 10;
/// Seconds for which a smallest delay counts at least (BBR: 10).
pub const BASE_SECONDS: f64 = 10.0;
/// Seconds of queue that are aimed at.
pub const TARGET: f64 = 0.004;
/// Deviations of delay by which it is above the mean of its noise.
pub const DEVIATIONS: f64 = 2.0;
/// Gain of the usual moving averages (RFC 6298: 1/8).
pub const SMOOTH: f64 = 0.125;
/// Standard errors that are significant.
pub const SIGNIFICANT: f64 = 2.5;
/// Packets after which a loss account forgets half.
pub const MEMORY: f64 = 1000.0;
/// No link is believed to lose more.
pub const MOST_LOSS: f64 = 0.4;
/// Rounds of a cycle (BBR: 8).
pub const CYCLE: u32 = 8;
/// Gains of a probe and of the round that drains it (BBR).
pub const UP: f64 = 1.25;
pub const DOWN: f64 = 0.75;
/// Longest cycle where probes are dropped.
pub const MAX_CYCLE: u32 = 64;
/// Part of what was sent more that must arrive.
pub const FOLLOWS: f64 = 0.5;
/// Of a round's growth in the startup.
pub const PLATEAU: f64 = 1.25;
pub const PLATEAU_ROUNDS: u32 = 3;
pub const TRAIN_GROWTH: f64 = 4.0;
/// Multiplicative decrease and scale of CUBIC (RFC 9438).
pub const BETA: f64 = 0.7;
pub const CUBIC: f64 = 0.4;
/// Window of an experiment in competitive mode.
pub const HELD: f64 = 0.8;
pub const WAIT: u32 = 8;
pub const MAX_WAIT: u32 = 32;
/// Log-likelihoods.
pub const DECIDES: f64 = 2.5;
pub const MOST_EACH: f64 = 1.5;
pub const RATE_NOISE: f64 = 0.05;
/// Packets of a queue that is no queue.
pub const PACKETS: f64 = 2.0;
/// A round's losses leave this of the bandwidth at least.
pub const GIVES_WAY: f64 = 0.85;
/// Losses after which burst lengths are forgotten.
pub const RUN_MEMORY: f64 = 50.0;
pub const MOST_UP: f64 = 2.0;
/// Least difference of a round's packets that is an experiment, in logarithms.
pub const LEAST_DIFFERENCE: f64 = 0.1;
/// Log-likelihood of a round without a queue.
pub const UNQUEUED: f64 = 0.1;
/// Packets that say something of a loss.
pub const ENOUGH: f64 = 24.0;
/// Loss that is believed untested.
pub const UNTESTED: f64 = 0.1;
/// Packets that tell a rate by their spacing.
pub const TRAIN: f64 = 4.0;
/// Part of the longest queue of late above which a loss may be its.
pub const LEVEL: f64 = 0.4;
/// … and below which it is empty.
pub const EMPTY: f64 = 0.2;
/// Part of the base RTT below which the longest queue tells nothing.
pub const TELLS: f64 = 0.02;
/// Scatter of a queue.
pub const LEAPS: f64 = 0.1;
/// Multiple of it above which delays jitter.
pub const JITTERS: f64 = 0.9;
/// Growth per round where no queue was met for so many rounds.
pub const REFILL: f64 = 0.1;
pub const REFILL_AFTER: u32 = 8;
/// Noise in base round trips at most.
pub const MOST_NOISE: f64 = 1.0;
/// Part of the way that learnt noise falls per round.
pub const NOISE_FALLS: f64 = 0.25;
