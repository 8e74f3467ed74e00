//! The erasure code, its limits, and hostile repair packets.

use super::*;
use narrows_base::RandomKey;
use proptest::prelude::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}
const LATENCY: Duration = Duration::from_millis(90);

/// Messages of different lengths, and their repair packets at this loss rate.
fn block(parts: usize, loss: f64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let messages: Vec<Vec<u8>> =
        (0..parts).map(|n| vec![n as u8 + 1; 100 + 37 * n % 200]).collect();
    let mut protector = Protector::default();
    let mut repairs = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        repairs.extend(protector.on_part(7 + n as u64, message, at(0), LATENCY, loss));
    }
    repairs.extend(protector.close(loss));
    (messages, repairs)
}

#[test]
fn each_repair_packet_restores_one_loss() {
    let mut random = RandomKey::from_seed(1).stream();
    for parts in 1..=MAX_PARTS {
        let (messages, repairs) = block(parts, 0.08);
        assert!(!repairs.is_empty() && repairs.len() <= parts.div_ceil(3));
        for lost in 1..=(repairs.len() + 1).min(parts) {
            let mut restorer = Restorer::default();
            let mut gone = Vec::new();
            while gone.len() < lost {
                let n = (random.unit() * parts as f64) as usize;
                if !gone.contains(&n) {
                    gone.push(n);
                }
            }
            let mut found = Vec::new();
            // The restorer keeps parts once it has a repair packet, here of the block before.
            restorer.on_repair(0, &read(&block(1, 0.08).1[0]).unwrap());
            for (n, message) in messages.iter().enumerate().filter(|(n, _)| !gone.contains(n)) {
                found.extend(restorer.on_part(7 + n as u64, message));
            }
            for repair in &repairs {
                let repair = read(repair).unwrap();
                assert_eq!((repair.first, usize::from(repair.parts)), (7, parts));
                found.extend(restorer.on_repair(7, &repair));
            }
            gone.sort_unstable();
            let expected: Vec<_> =
                gone.iter().map(|n| (7 + *n as u64, messages[*n].clone())).collect();
            assert_eq!(found, if lost <= repairs.len() { expected } else { Vec::new() });
        }
    }
}

#[test]
fn block_closes_by_size_age_or_gap() {
    let mut protector = Protector::default();
    let mut count = |n: u64, ms: u64| protector.on_part(n, b"part", at(ms), LATENCY, 0.01).len();
    let full: usize = (0..MAX_PARTS as u64).map(|n| count(n, 0)).sum();
    assert_eq!(full, 1);
    assert_eq!((count(20, 40), count(22, 41)), (0, 1));
    assert_eq!(protector.closes(), at(41 + 30));
    assert_eq!((protector.close(0.01).len(), protector.closes()), (1, Time::NEVER));
    assert!(protector.close(0.01).is_empty());
}

#[test]
fn as_few_repairs_as_suffice() {
    assert_eq!((wanted(16, 0.001), wanted(12, 0.01), wanted(12, 0.05)), (1, 1, 3));
    // At most a third, however high the loss rate is.
    assert_eq!((wanted(12, 0.3), wanted(1, 0.5)), (4, 1));
    let exact = 0.1f64.powi(2) * 1.0;
    assert!((residual(1, 1, 0.1) - exact).abs() < 1e-12);
    let rtt = Duration::from_millis(80);
    assert!(pays(rtt, rtt, 0.01) && !pays(rtt, rtt, 0.0) && !pays(rtt + rtt, rtt, 0.01));
}

#[test]
fn longer_messages_are_left_out_and_memory_is_bounded() {
    let mut protector = Protector::default();
    assert!(protector.on_part(0, &[1; 3000], at(0), LATENCY, 0.01).is_empty());
    assert!(protector.closes().is_never());
    let mut restorer = Restorer::default();
    for n in 0..10_000u32 {
        let mut bytes = vec![REPAIR, (n % 16) as u8];
        bytes.extend(n.wrapping_mul(0x9e37_79b9).to_be_bytes());
        bytes.extend([16, 16]);
        bytes.extend([n as u8; MAX_SHARD]);
        let repair = read(&bytes).unwrap();
        restorer.on_repair(repair.first.into(), &repair);
        restorer.on_part(n.into(), &[n as u8; 2000]);
        restorer.on_part(u64::from(n) << 20, &[n as u8; 3000]);
    }
    assert!(restorer.blocks.len() <= KEPT_BLOCKS && restorer.parts.len() <= KEPT_PARTS);
    assert!(restorer.parts.values().all(|part| part.len() <= MAX_SHARD));
}

proptest! {
    /// Arbitrary repair packets do not cause a panic, and no restored message is longer than the received ones.
    #[test]
    fn any_repairs_are_taken(all: Vec<(u8, u8, u8, u8, Vec<u8>)>) {
        let mut restorer = Restorer::default();
        let mut longest = 0;
        for (which, first, parts, repairs, shard) in &all {
            let mut bytes = vec![REPAIR, *which % 4, 0, 0, 0, *first % 8, *parts % 5, *repairs % 5];
            bytes.extend(shard);
            if let Some(repair) = read(&bytes) {
                longest = longest.max(repair.shard.len());
                let restored = restorer.on_repair(u64::from(*first % 8), &repair);
                prop_assert!(restored.iter().all(|(_, m)| m.len() <= longest));
            }
            let restored = restorer.on_part(u64::from(*which % 8), shard);
            prop_assert!(restored.iter().all(|(_, m)| m.len() <= longest));
        }
    }
}
