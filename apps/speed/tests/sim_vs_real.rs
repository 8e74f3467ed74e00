//! A simulation and real sockets agree about the same transfer: one link of `cargo xtask sim-vs-real`.
//!
//! A busy machine wakes the relay and the endpoints late, and then the results describe the machine rather than the
//! protocol. So an attempt counts only if both the relay and an otherwise idle thread were on time. Since either may
//! have missed a stall of the other, the test fails only after several consecutive valid attempts that disagree.

use narrows_speed::{MeasuredRun, SimVsReal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lateness in one case of a hundred above which an attempt does not count.
const LATE_S: f64 = 5e-3;
/// The same for the worst case: 10 Mbit/s fill a quarter of the queue in that time, and rrtp+bbr keeps a higher rate.
const STALL_S: f64 = 10e-3;
/// The test fails after this many consecutive valid attempts that disagree.
const DISAGREE: u32 = 6;
const ATTEMPTS: u32 = 12;

/// A thread that wakes up every millisecond and notes how late it was, s.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl Watch {
    fn start() -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut late = Vec::new();
            let pause = Duration::from_millis(1);
            while !stopped.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(pause);
                late.push((before.elapsed() - pause).as_secs_f64());
            }
            late
        });
        Watch { stop, thread }
    }

    /// Lateness in one case of a hundred and in the worst, in seconds.
    fn late_s(self) -> (f64, f64) {
        self.stop.store(true, Ordering::Relaxed);
        let mut late = self.thread.join().unwrap();
        late.sort_unstable_by(f64::total_cmp);
        let at = |place: Option<&f64>| place.copied().unwrap_or(f64::INFINITY);
        (at(late.get(late.len() * 99 / 100)), at(late.last()))
    }
}

/// Differences of more than 5%. For the RTT, a millisecond and the relay's lateness at either end are allowed, too.
fn differs(sim: &MeasuredRun, real: &MeasuredRun, late_s: f64) -> Option<String> {
    let ratio = real.goodput_bps / sim.goodput_bps;
    let off = (real.rtt_s - sim.rtt_s).abs();
    if !(0.95..=1.05).contains(&ratio) {
        return Some(format!("goodput {ratio:.3} times the simulated one: {sim:?}, {real:?}"));
    }
    let max = (0.05 * sim.rtt_s).max(1e-3) + 2.0 * late_s;
    (off > max).then(|| format!("RTT off by {:.1} ms: {sim:?}, {real:?}", off * 1e3))
}

#[test]
fn real_sockets_agree_with_the_simulation() {
    let transfer = SimVsReal {
        protocol: "rrtp+bbr".into(),
        link: "10Mbit/s,20ms,queue=50kB".into(),
        packet: 1500,
        seconds: 4.0,
    };
    let sim = transfer.simulated(1).unwrap();
    let mut disagreed = Vec::new();
    for _ in 0..ATTEMPTS {
        let watch = Watch::start();
        let (real, late) = transfer.real(1).unwrap();
        let (often, stall) = watch.late_s();
        if often.max(late.p99_s) > LATE_S || stall > STALL_S {
            let often = 1e3 * often.max(late.p99_s);
            let stall = 1e3 * stall;
            eprintln!("not counted: late by {often:.1} ms in 1%, by {stall:.1} ms once");
            continue;
        }
        match differs(&sim, &real, late.p99_s) {
            None => return,
            Some(how) => disagreed.push(how),
        }
        assert!((disagreed.len() as u32) < DISAGREE, "they disagree each time: {disagreed:#?}");
    }
    eprintln!("skipped: the machine had too little time to judge by ({disagreed:#?})");
}

/// A difference of a tenth, either way, is found.
#[test]
fn difference_is_reported() {
    let sim = MeasuredRun { goodput_bps: 9e6, rtt_s: 0.05, wait_s: 0.01, offered: 1.0 };
    assert_eq!(differs(&sim, &sim, 0.0), None);
    for goodput in [0.9, 1.1] {
        let real = MeasuredRun { goodput_bps: 9e6 * goodput, ..sim };
        assert!(differs(&sim, &real, 0.001).is_some_and(|how| how.contains("goodput")));
    }
    for rtt in [0.9, 1.1] {
        let real = MeasuredRun { rtt_s: 0.05 * rtt, ..sim };
        assert!(differs(&sim, &real, 0.001).is_some_and(|how| how.contains("RTT")));
    }
}
