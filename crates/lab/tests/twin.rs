//! A simulation and real sockets agree about the same transfer: one link of `cargo xtask truth`.

use narrows_lab::real::Twin;

/// A relay that is later than this on one packet in a hundred says more about the machine than about
/// the protocol.
const LATE_S: f64 = 5e-3;

#[test]
fn real_sockets_do_what_the_simulation_says() {
    let twin = Twin {
        protocol: "rrtp+bbr".into(),
        link: "10Mbit/s,20ms,queue=50kB".into(),
        packet: 1500,
        seconds: 4.0,
    };
    let sim = twin.simulated(1).unwrap();
    for _ in 0..3 {
        let (real, late) = twin.real(1).unwrap();
        if late.p99_s > LATE_S {
            eprintln!("the relay was late by {:.1} ms: this machine has no time", late.p99_s * 1e3);
            continue;
        }
        let ratio = real.goodput_bps / sim.goodput_bps;
        assert!((0.95..=1.05).contains(&ratio), "goodput: {sim:?}, {real:?}");
        // 5%, or a millisecond, and as late as the relay was at either end.
        let off = (real.rtt_s - sim.rtt_s).abs();
        assert!(off <= (0.05 * sim.rtt_s).max(1e-3) + 2.0 * late.p99_s, "RTT: {sim:?}, {real:?}");
        return;
    }
    eprintln!("skipped: the relay was late each time, so nothing can be judged");
}
