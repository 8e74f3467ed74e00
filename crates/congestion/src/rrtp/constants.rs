//! Every number of the algorithm other than 0, 1 and 2: value, unit, source.
//!
//! Halving and doubling was measured for those that say so, on 200 networks and 90 mixes.

/// Packets of the first flight (RFC 6928).
pub const FIRST_FLIGHT: f64 = 10.0;
/// Packets in flight at least while alone: one that is lost is found by those behind it (RFC 9002 section 6.1.1).
pub const MIN_WINDOW: f64 = 3.0;
/// Packets that tell a rate by their spacing, and times as many that the next flight may have then.
pub const TRAIN: f64 = 4.0;
/// Part of the base RTT by which the delay of a whole round must be longer to end the startup.
pub const STARTUP_QUEUE: f64 = 0.125;
/// Acknowledgements of a round that show a queue (RFC 9406 section 4.3, N_RTT_SAMPLE). Without this end of the startup
/// the median queue is 1.6 +- 1.4 ms longer.
pub const DELAY_SAMPLES: f64 = 8.0;
/// Rounds without [`UP`] times the rate that end the startup (BBR, `bbr_full_bw_cnt`).
pub const PLATEAU_ROUNDS: u32 = 3;

/// Rounds over which the largest delivery rate counts (BBR): a cycle and two more.
pub const RATE_ROUNDS: usize = 10;
/// Seconds, and round trips, for which a smallest delay counts at least, and at most for twice as long. BBR takes 10 s,
/// and then empties the queue to measure the base RTT anew; this controller does not. With 10 s and 40 round trips the
/// Jain index of thirty flows on 11 Mbit/s falls from 0.95 to 0.45: full queues count as the path's.
pub const BASE_SECONDS: f64 = 30.0;
pub const BASE_ROUNDS: f64 = 120.0;
/// Gain of moving averages (RFC 6298).
pub const SMOOTH: f64 = 0.125;
/// Seconds of queue that are allowed while alone: below what applications notice.
pub const TARGET: f64 = 0.004;
/// Part of a queueing delay by which neighbouring packets differ in queues, where one packet comes within twice that
/// delay; it falls with the root of their number. Measured: jitter has 0.9 to 2 times as much, queues of TCP 0.2 to 0.9.
pub const LEAPS: f64 = 0.1;
/// … and the multiple of it above which delays are jitter.
pub const JITTERS: f64 = 0.9;
/// Part of the way by which learnt noise falls in a round that shows less.
pub const NOISE_FALLS: f64 = 0.25;

/// Standard errors that are significant.
pub const SIGNIFICANT: f64 = 2.5;
/// Packets after which a loss account forgets half of what it has.
pub const MEMORY: f64 = 1000.0;
/// Packets that say something of a loss; twice as many losses tell the length of bursts.
pub const ENOUGH: f64 = 24.0;
/// Loss that is believed to be the link's before anything left more slowly, and in any case.
pub const UNTESTED: f64 = 0.1;
pub const MOST_LOSS: f64 = 0.4;
/// A link that loses more is known to lose: single losses without a queue are no congestion.
pub const KNOWN_LOSS: f64 = 0.005;
/// Part of the longest delay of late above which a loss may be a queue's, and below which the queue is empty.
pub const LONG: f64 = 0.4;
pub const EMPTY: f64 = 0.2;

/// Rounds from a probe to the next, and from a cut of the window to the next (BBR).
pub const CYCLE: u32 = 8;
/// … at most, where probes are dropped: as rare as a Reno of as many packets grows by a quarter.
pub const MAX_CYCLE: u32 = 64;
/// Gains of a probe and of holding back (BBR).
pub const UP: f64 = 1.25;
pub const DOWN: f64 = 0.75;
/// Part of what is sent more that must arrive if there is room: the middle between all and none.
pub const FOLLOWS: f64 = 0.5;
/// Part of the bandwidth that is left by a round that lost more than the link does (CUBIC and BBR leave 0.7 of a window).
pub const GIVES_WAY: f64 = 0.85;

/// Log-likelihood ratio that decides, and that one experiment adds at most: two are needed. At 1.4 nothing gains or
/// loses more than its interval.
pub const DECIDES: f64 = 2.5;
pub const MOST_EACH: f64 = 1.5;
/// … and that a round with an empty queue adds. At half of it, or 2.5 times, likewise.
pub const UNQUEUED: f64 = 0.1;
/// Least difference in a round's packets that is an experiment, and least standard error of a rate, in logarithms.
pub const LEAST_DIFFERENCE: f64 = 0.1;
pub const RATE_NOISE: f64 = 0.05;

/// Part of the window that a cut leaves, and scale of the growth, packets per s³ (RFC 9438).
pub const BETA: f64 = 0.7;
pub const CUBIC: f64 = 0.4;
/// Growth per round where the queue was empty for a [`CYCLE`]: at 0.25 after 4 rounds 16% of others' flows starve instead of
/// 9%, and goodput is 0.002 larger.
pub const REFILL: f64 = 0.1;
