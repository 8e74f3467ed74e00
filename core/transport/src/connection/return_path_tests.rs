//! Slow return paths: reports take a small part of their rate, and their queueing does not slow the sender.

use super::pair_tests::{Net, Pair, config};
use crate::streams::{Read, Side};
use narrows_base::{Duration, Rate};

/// Goodput of an upload of `seconds`, and rate of the server's bytes on the wire, without the first 2 s. Both in bit/s.
fn upload(pair: &mut Pair, seconds: f64) -> (f64, f64) {
    let id = pair.client.open(true).unwrap();
    let mut came = 0;
    let mut buffer = vec![0; 1 << 16];
    let from = pair.now + Duration::from_secs(2);
    pair.run(pair.now + Duration::from_secs_f64(2.0 + seconds), |pair| {
        while pair.client.write(id, &[7; 4096]).unwrap() > 0 {}
        while pair.server.accept().is_some() {}
        while let Ok(Read::Bytes(n)) = pair.server.read(id, &mut buffer) {
            came += if pair.now >= from { n } else { 0 };
        }
        false
    });
    let reports = pair.log.iter().filter(|l| l.1 == Side::Server && l.0 >= from);
    let bytes: usize = reports.map(|l| l.2 + 28).sum();
    (8.0 * came as f64 / seconds, 8.0 * bytes as f64 / seconds)
}

/// For every 16 gaps one more report is permitted: without it, packets that arrived would count as lost.
#[test]
fn reports_take_a_tenth_of_a_slow_return_path() {
    const MAX_REPORT_BYTES: f64 = 128.0;
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr"] {
        let net = Net { back: Some(Rate::from_bps(200_000)), queue: 50_000, ..Net::good() };
        let mut pair = Pair::new(&config(protocol), net, 1);
        let (goodput, reports) = upload(&mut pair, 6.0);
        let gaps = pair.client.path.sender.counters().lost as f64;
        let more = gaps / 16.0 * MAX_REPORT_BYTES * 8.0 / 6.0;
        assert!(reports < 20_000.0 + more, "{protocol}: {reports}, {more}");
        assert!(goodput > 0.85 * 20e6, "{protocol}: {goodput}");
    }
}

/// On an ordinary path the report rate does not change.
#[test]
fn a_wide_return_path_carries_many_reports() {
    let mut pair = Pair::new(&config("rrtp"), Net::good(), 1);
    let (_, reports) = upload(&mut pair, 2.0);
    // 32 reports per round trip of 40 ms.
    assert!(reports > 16.0 / 0.04 * 68.0 * 8.0, "{reports}");
    assert_eq!(pair.client.path.sender.report_spacing(), (Duration::ZERO, false));
}
