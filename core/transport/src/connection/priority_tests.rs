//! Effect of stream priorities over a whole connection.

use super::pair_tests::{Net, Pair, config};
use crate::streams::Read;
use narrows_base::{Duration, Rate, Time};

/// A terminal and an upload share a slow link. With a priority, typed bytes leave with the next packet, in any order of
/// opening the streams. Without one they wait for their turn in a packet.
#[test]
fn a_terminal_does_not_wait_for_the_upload_beside_it() {
    let net = Net { rate: Rate::from_bps(1_000_000), ..Net::good() };
    let longest = |priority: i32, uploads: usize| {
        let mut pair = Pair::new(&config("rrtp"), net, 3);
        let uploads: Vec<u64> = (0..uploads).map(|_| pair.client.open(true).unwrap()).collect();
        let terminal = pair.client.open(true).unwrap();
        pair.client.set_priority(terminal, priority).unwrap();
        let mut typed = 0;
        let mut read = 0;
        let mut longest = Duration::ZERO;
        let mut next = pair.now + Duration::from_secs(5);
        let mut buffer = [0; 4096];
        let mut at = Time::ZERO;
        let until = pair.now + Duration::from_secs(25);
        pair.run(until, |pair| {
            for id in &uploads {
                while pair.client.write(*id, &[7; 2000]).unwrap() > 0 {}
            }
            if pair.now >= next && typed == read {
                typed += pair.client.write(terminal, b"x").unwrap();
                at = pair.now;
                next = pair.now + Duration::from_millis(300);
            }
            while pair.server.accept().is_some() {}
            while let Ok(Read::Bytes(n)) = pair.server.read(terminal, &mut buffer) {
                read += n;
                longest = longest.max(pair.now.since(at));
            }
            for id in &uploads {
                while let Ok(Read::Bytes(_)) = pair.server.read(*id, &mut buffer) {}
            }
            false
        });
        assert!(read > 30, "{read} of {typed} bytes typed");
        longest
    };
    let first = longest(1, 12);
    let equal = longest(0, 12);
    // Without a priority, twelve packets of 12 ms each leave before it.
    assert!(first + Duration::from_millis(100) < equal, "{first:?} with, {equal:?} without");
}
