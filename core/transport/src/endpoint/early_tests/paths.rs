//! Early data over paths that lose, duplicate, reorder and delay packets.

use super::*;

/// Each of the first packets is lost in turn, alone and with the next ones. The response arrives, and the request is
/// read once.
#[test]
fn each_packet_may_get_lost() {
    for lost in 0..12 {
        for count in [1, 2, 3] {
            let mut world = World::acquainted(30 + lost);
            world.answer = vec![3; 3000];
            let handle = world.start();
            let mut sent = 0;
            let answered = world.answered(handle, &mut |now, _| {
                sent += 1;
                let is_lost = (lost..lost + count).contains(&(sent - 1));
                if is_lost { Vec::new() } else { vec![now + Duration::from_millis(20)] }
            });
            let (took, _) = answered.expect("an answer");
            assert!(took < 4.0, "packets {lost} to {}: {took}", lost + count);
            assert_eq!(world.requests.len(), 1, "packets {lost} to {}", lost + count);
        }
    }
}

/// Over paths that lose, duplicate, reorder and delay packets, each request gets its response. The server reads it at
/// most once per attempt of the client.
#[test]
fn over_a_bad_path_every_request_is_answered() {
    let mut taken = 0;
    let mut twice = 0;
    let mut slow = 0.0f64;
    for seed in 0..150 {
        let mut world = World::acquainted(1000 + seed);
        let mut random = RandomKey::from_seed(seed).named("path").stream();
        let handle = world.start();
        let answered = world.answered(handle, &mut |now, _| {
            let mut copies = Vec::new();
            for _ in 0..=u32::from(random.chance(0.3)) {
                if !random.chance(0.2) {
                    copies.push(now + Duration::from_secs_f64(random.uniform(0.005, 0.4)));
                }
            }
            copies
        });
        let (took, is_taken) = answered.expect("an answer");
        taken += u32::from(is_taken);
        slow = slow.max(took);
        let attempts: BTreeSet<Vec<u8>> = world
            .net
            .seen
            .iter()
            .filter(|s| matches!(s.2[0], 0x81 | EARLY_START))
            .map(|s| s.2[s.2.len().min(5 + usize::from(s.2[0] == EARLY_START))..][..16].to_vec())
            .collect();
        assert!((1..=attempts.len()).contains(&world.requests.len()), "seed {seed}");
        twice += u32::from(world.requests.len() > 1);
    }
    println!("of 150: {taken} early, {twice} twice, the slowest in {slow} s");
    assert!(taken > 120 && twice < 5);
}
