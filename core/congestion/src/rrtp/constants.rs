//! Every number of the algorithm other than 0, 1 and 2, with unit and source (docs/rrtp-congestion-control.md section 6).
//!
//! A comparison with another value was measured on 200 networks and 90 traffic mixes.

/// Least packets in flight while alone: a lost packet is detected by the packets behind it (RFC 9002 section 6.1.1).
pub const MIN_WINDOW: f64 = 3.0;
/// Packets of a train that measures a rate by its spacing; also the first flight while the handshake's dispersion is
/// expected, and the largest factor by which the next flight grows.
pub const TRAIN: f64 = 4.0;
/// Queueing delay of a whole round that ends the startup, as a part of the base RTT (as MIN_RTT_DIVISOR of RFC 9406).
pub const STARTUP_QUEUE: f64 = 0.125;
/// Acknowledgements of a round that show a queue (RFC 9406 section 4.3, N_RTT_SAMPLE). Without this end of the startup
/// the median queue is 1.6 +- 1.4 ms longer.
pub const DELAY_SAMPLES: f64 = 8.0;
/// Rounds without [`UP`] times the rate that end the startup (BBR, `bbr_full_bw_cnt`).
pub const PLATEAU_ROUNDS: u32 = 3;

/// Least length of a period in seconds and in round trips. A smallest delay counts for one to two periods. BBR takes
/// 10 s, and then empties the queue to measure the base RTT again; this controller does not. With 10 s and 40 round
/// trips the Jain index of thirty flows on 11 Mbit/s falls from 0.95 to 0.45, because full queues count as the path's
/// delay.
pub const BASE_SECONDS: f64 = 30.0;
pub const BASE_ROUNDS: f64 = 120.0;
/// Gain of moving averages (RFC 6298).
pub const SMOOTH: f64 = 0.125;
/// Queueing delay in seconds that is allowed while alone: too short to disturb an application.
pub const TARGET: f64 = 0.004;
/// Expected difference of neighbouring queueing delays in a queue, as a part of the delay, if one packet arrives within
/// twice that delay. It falls with the square root of their number. A larger difference counts as jitter. Measured ratios
/// to it: jitter 0.9 to 2, queues of TCP 0.2 to 0.9.
pub const SCATTER: f64 = 0.1;

/// Standard errors that are significant.
pub const SIGNIFICANT: f64 = 2.5;
/// Packets after which a loss account halves its counts.
pub const MEMORY: f64 = 1000.0;
/// Least packets for an estimate of a loss share.
pub const ENOUGH: f64 = 24.0;
/// Largest loss share that is attributed to the link before packets left at a gain below 1.
pub const UNTESTED_LOSS: f64 = 0.1;
/// Largest loss share that is attributed to the link in any case.
pub const MAX_LOSS: f64 = 0.4;
/// Part of the longest recent queueing delay above which a loss may come from a full queue.
pub const LONG_QUEUE: f64 = 0.4;
/// Part of the longest recent queueing delay below which the queue counts as empty.
pub const EMPTY_QUEUE: f64 = 0.2;

/// Rounds between two probes, and between two phases of a lower rate while competitive (BBR).
pub const CYCLE: u32 = 8;
/// Gain of a probe (BBR).
pub const UP: f64 = 1.25;
/// Gain of a round that drains the queue (BBR), and part of the bandwidth that remains after a round that lost more than
/// the link does (CUBIC and BBR keep 0.7 of a window).
pub const DOWN: f64 = 0.75;
/// Part of the additional traffic that must arrive if there is capacity left: the middle between 0 and 1.
pub const FOLLOWS: f64 = 0.5;

/// Sum of log-likelihood ratios at which the hypothesis changes. At half of it, the share is fair in 0.14 +- 0.09 fewer
/// mixes (docs/rrtp-congestion-control.md section 7).
pub const THRESHOLD: f64 = 2.5;
/// Largest log-likelihood ratio of one term, so that two are needed.
pub const MAX_TERM: f64 = 1.5;
/// Log-likelihood ratio of a round with an empty queue, so that eleven are needed. With 0.1, goodput alone is 0.006
/// lower.
pub const EMPTY_TERM: f64 = 0.25;
/// Least difference of the packets of two rounds that is compared, as a natural logarithm; twice the standard error of
/// a difference of two rates.
pub const MIN_CHANGE: f64 = 0.1;

/// Part of the window that a back-off leaves (RFC 9438).
pub const BETA: f64 = 0.7;
/// Scale of the growth, packets per s³ (RFC 9438, C).
pub const CUBIC_C: f64 = 0.4;
