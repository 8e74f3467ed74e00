//! The order in which streams send.

use super::tests::{LIMITS, deliver, packet, pair};
use super::*;

/// Two ends with large limits.
fn ends() -> (Streams, Streams) {
    pair(FlowControlLimits { data: 1 << 20, stream: 1 << 18, both: 8, one_way: 8 }, 1 << 20)
}

fn open(streams: &mut Streams, priority: i32, bytes: usize) -> u64 {
    let id = streams.open(true).unwrap();
    streams.set_priority(id, priority).unwrap();
    assert_eq!(streams.write(id, &vec![7; bytes]), Ok(bytes));
    id
}

/// Bytes of each stream in the next packets, in order, with neighbours of one stream joined. All packets are
/// acknowledged.
fn order(from: &mut Streams, packets: usize) -> Vec<(u64, u32)> {
    let mut all: Vec<(u64, u32)> = Vec::new();
    for _ in 0..packets {
        let Some((_, sent)) = packet(from, 1000) else { break };
        for frame in sent {
            from.arrived(&frame);
            let SentFrame::Stream { id, length, .. } = frame else { continue };
            match all.last_mut() {
                Some(last) if last.0 == id => last.1 += length,
                _ => all.push((id, length)),
            }
        }
    }
    all
}

#[test]
fn higher_priorities_go_first_whatever_the_order_of_writing() {
    let (mut client, _) = ends();
    let low = open(&mut client, -5, 3_000);
    let usual = open(&mut client, 0, 3_000);
    let high = open(&mut client, i32::MAX, 3_000);
    assert_eq!(order(&mut client, 100), [(high, 3_000), (usual, 3_000), (low, 3_000)]);
    assert_eq!(client.priority(low), Ok(-5));
    assert_eq!(client.set_priority(400, 1), Err(StreamError::Unknown));
}

/// Streams of equal priority share: they alternate packet by packet, and stay within two packets of each other.
#[test]
fn equal_priorities_take_turns_undisturbed_by_lower_ones() {
    let (mut client, _) = ends();
    let below = open(&mut client, 1, 10_000);
    let equals = [0; 4].map(|_| open(&mut client, 9, 12_000));
    let sent = order(&mut client, 200);
    let mut bytes = [0; 4];
    for (id, length) in sent.iter().take_while(|sent| sent.0 != below) {
        bytes[equals.iter().position(|e| e == id).unwrap()] += length;
        let most = *bytes.iter().max().unwrap();
        let least = *bytes.iter().min().unwrap();
        assert!(most - least < 2000 || most == 12_000, "{bytes:?}");
    }
    assert_eq!(bytes, [12_000; 4], "who is below waits for all of them");
}

/// A terminal beside an upload: typed bytes are in the next packet, before the upload's lost data.
#[test]
fn later_higher_priority_data_overtakes_lost_data() {
    let (mut client, _) = ends();
    let upload = open(&mut client, 0, 50_000);
    let lost: Vec<SentFrame> = (0..3).flat_map(|_| packet(&mut client, 1000).unwrap().1).collect();
    let terminal = open(&mut client, 1, 80);
    lost.iter().for_each(|frame| _ = client.lost(frame));
    let sent = order(&mut client, 100);
    assert_eq!(sent[0], (terminal, 80));
    assert_eq!(sent[1].0, upload);
    // Within a priority, lost data go first.
    let again: Vec<_> = packet(&mut client, 1000).into_iter().collect();
    assert!(again.is_empty());
    let other = open(&mut client, 0, 500);
    let (_, frames) = packet(&mut client, 1000).unwrap();
    frames.iter().for_each(|frame| _ = client.lost(frame));
    let newer = open(&mut client, 0, 500);
    assert_eq!(order(&mut client, 2), [(other, 500), (newer, 500)]);
}

#[test]
fn a_priority_counts_from_its_change_on_and_survives_waiting() {
    let (mut client, _) = ends();
    let first = open(&mut client, 0, 20_000);
    let second = open(&mut client, 0, 20_000);
    order(&mut client, 4);
    client.set_priority(second, 2).unwrap();
    assert!(order(&mut client, 10).iter().all(|sent| sent.0 == second));
    client.set_priority(second, -2).unwrap();
    assert!(order(&mut client, 10).iter().all(|sent| sent.0 == first));
    // Streams that change between many priorities leave no lists behind.
    let before = client.memory();
    for n in 0..200 {
        client.set_priority(first, n).unwrap();
    }
    assert!(client.memory() < before + 1000, "{} then {}", before, client.memory());
}

/// The connection's limit stops new data of every priority, but not lost data of a lower one.
#[test]
fn blocked_higher_stream_does_not_delay_lost_data() {
    let (mut client, mut server) = pair(LIMITS, 1 << 20);
    let low = [0; 2].map(|_| open(&mut client, 0, 10_000));
    let mut sent = Vec::new();
    while let Some((bytes, frames)) = packet(&mut client, 1000) {
        deliver(&mut server, &bytes).unwrap();
        sent.extend(frames);
    }
    let high = client.open(false).unwrap();
    client.set_priority(high, 1).unwrap();
    client.write(high, &[1; 30_000]).unwrap();
    // The limit is 40,000 bytes for all streams and 10,000 for each: other streams use up the rest.
    for _ in 0..2 {
        let id = client.open(false).unwrap();
        client.write(id, &[1; 10_000]).unwrap();
    }
    while packet(&mut client, 1000).is_some() {}
    let last = client.open(false).unwrap();
    client.set_priority(last, 7).unwrap();
    client.write(last, b"no credit").unwrap();
    let first = sent.iter().find(|f| matches!(f, SentFrame::Stream { id, .. } if *id == low[0]));
    client.lost(first.unwrap());
    let (_, frames) = packet(&mut client, 1000).expect("the lost data");
    assert!(frames.iter().any(|f| matches!(f, SentFrame::Stream { id, .. } if *id == low[0])));
}
