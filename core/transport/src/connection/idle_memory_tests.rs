//! Memory of an idle connection.

use super::pair_tests::{Net, Pair, config};
use crate::streams::{Read, Side};
use narrows_base::{Duration, Rate};

/// Bytes on the heap of each end, for streams, messages and packets.
fn held(pair: &Pair) -> [usize; 2] {
    [pair.client.memory(), pair.server.memory()]
}

/// A server has many idle connections. Memory that a fast transfer and many requests needed for packets in flight,
/// streams and lists must be released.
#[test]
fn idle_connection_releases_memory_of_busy_times() {
    let net = Net { rate: Rate::from_bps(200_000_000), queue: 1_000_000, ..Net::good() };
    let mut pair = Pair::new(&config("rrtp"), net, 1);
    pair.transfer(Side::Client, 10_000_000, 20.0).unwrap();
    let requests: Vec<u64> = (0..10).map(|_| pair.client.open(false).unwrap()).collect();
    for id in &requests {
        pair.client.write(*id, &[1; 200]).unwrap();
        pair.client.finish(*id).unwrap();
    }
    let until = pair.now + Duration::from_secs(10);
    let mut answered = 0;
    pair.run(until, |pair| {
        while pair.server.accept().is_some() {}
        for id in &requests {
            while let Ok(Read::Bytes(_)) = pair.server.read(*id, &mut [0; 500]) {}
            if pair.server.finish(*id).is_ok() {
                answered += 1;
            }
            while let Ok(Read::Bytes(_)) = pair.client.read(*id, &mut [0; 500]) {}
        }
        answered == requests.len()
    });
    assert_eq!(answered, requests.len());
    let busy = held(&pair);
    pair.run_for(1.0);
    for id in &requests {
        assert_eq!(pair.client.read(*id, &mut [0; 500]), Ok(Read::End));
    }
    pair.run_for(1.0);
    let silent = held(&pair);
    assert!(busy[0] > 50_000, "no test of anything: {busy:?}");
    assert!(silent.iter().all(|bytes| *bytes <= 2_000), "{silent:?} of {busy:?}");
    // The connection still works.
    pair.transfer(Side::Server, 1_000_000, 20.0).unwrap();
}
