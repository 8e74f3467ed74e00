//! Memory of streams, and its release.

use super::tests::{deliver, packet, pair};
use super::*;
use std::mem::size_of;

const MANY: FlowControlLimits =
    FlowControlLimits { data: 1 << 22, stream: 1 << 20, both: 1000, one_way: 0 };

/// Bytes on the heap of an end, except closed streams kept for reuse.
fn held(end: &Streams) -> usize {
    end.memory() - end.spare.memory()
}

/// Some closed streams are reused; an idle connection releases them.
#[test]
fn closed_streams_are_reused_until_silence() {
    let (mut client, mut server) = pair(MANY, 1 << 20);
    let one = size_of::<Stream>() + 2 * 256 + size_of::<Box<Stream>>();
    for round in 0..5 {
        let ids: Vec<u64> = (0..500).map(|_| client.open(false).unwrap()).collect();
        for id in &ids {
            let request = vec![7; 40 + 90 * round];
            assert_eq!(client.write(*id, &request), Ok(request.len()));
            client.finish(*id).unwrap();
        }
        carry(&mut client, &mut server, u64::MAX);
        while let Some(id) = server.accept() {
            assert_eq!(
                read_all(&mut server, id),
                40 + 90 * round,
                "none of an earlier stream's bytes"
            );
            server.finish(id).unwrap();
        }
        carry(&mut server, &mut client, u64::MAX);
        for id in ids {
            assert_eq!(client.read(id, &mut [0]), Ok(Read::End));
        }
        for end in [&mut client, &mut server] {
            while end.event().is_some() {}
        }
    }
    for end in [&mut client, &mut server] {
        assert!(end.spare.memory() > 32 * size_of::<Stream>(), "{}", end.spare.memory());
        assert!(end.spare.memory() <= 64 * one, "{}", end.spare.memory());
        end.release_memory();
        assert_eq!(end.memory(), 0);
    }
}

/// Delivers all packets except every `loss`-th. Lost frames are retransmitted.
fn carry(from: &mut Streams, to: &mut Streams, loss: u64) {
    let mut count = 0u64;
    while let Some((bytes, sent_frames)) = packet(from, 1400) {
        count += 1;
        for piece in &sent_frames {
            if count.is_multiple_of(loss) {
                from.lost(piece);
            } else {
                from.arrived(piece);
            }
        }
        if !count.is_multiple_of(loss) {
            deliver(to, &bytes).unwrap();
        }
    }
}

fn read_all(end: &mut Streams, id: u64) -> usize {
    let mut all = 0;
    let mut into = vec![0; 5_000];
    while let Ok(Read::Bytes(n)) = end.read(id, &mut into) {
        all += n;
    }
    all
}

/// Writes `bytes` on a stream and sends all of them, without acknowledgement.
fn all_under_way(from: &mut Streams, id: u64, bytes: usize) -> Vec<SentFrame> {
    let mut left = bytes;
    let mut sent_frames = Vec::new();
    while left > 0 {
        let taken = from.write(id, &vec![1; left]).unwrap();
        assert!(taken > 0, "the writer is asked for more as what it wrote leaves");
        left -= taken;
        while let Some((_, some)) = packet(from, 1400) {
            sent_frames.extend(some);
        }
    }
    sent_frames
}

/// The path is unknown at first. Earlier, the whole buffer was filled at once, and five hundred connections spent their
/// time on memory pages for bytes that had to wait long.
#[test]
fn a_new_stream_is_not_written_far_ahead() {
    let (mut client, _) = pair(MANY, 6 << 20);
    let id = client.open(false).unwrap();
    let data = vec![1; 6 << 20];
    let first = client.write(id, &data).unwrap();
    assert!((50_000..=100_000).contains(&first), "{first}");
    assert_eq!(client.write(id, &data), Ok(0));
    while client.event().is_some() {}
    // After a burst that the path permitted, the writer gets the next event before a round trip has passed.
    let mut left = 0;
    let mut asked = None;
    while let Some((bytes, _)) = packet(&mut client, 1400) {
        left += bytes.len();
        if client.event() == Some(StreamEvent::Writable(id)) {
            asked.get_or_insert(left);
        }
    }
    assert!(asked.is_some_and(|at| at < first * 7 / 8), "{asked:?} of {first}");
    assert!(client.write(id, &data).unwrap() > first / 2);
}

/// An idle connection has a budget of 20 kB, of which streams take a small part.
#[test]
fn without_streams_there_is_little() {
    let (client, _) = pair(MANY, 1 << 20);
    assert_eq!(held(&client), 0);
    assert!(size_of::<Streams>() <= 768, "{} bytes", size_of::<Streams>());
    assert!(size_of::<Stream>() <= 640, "{} bytes", size_of::<Stream>());
}

/// The bound has fallen below the waiting bytes. Attempts to write must not copy the buffer each time. Earlier, these
/// copies took all of the processor with a hundred slow connections.
#[test]
fn a_full_buffer_is_left_alone_until_it_has_drained() {
    let (mut client, _) = pair(FlowControlLimits { stream: 1 << 22, ..MANY }, 1 << 20);
    let id = client.open(false).unwrap();
    all_under_way(&mut client, id, 1 << 20).iter().for_each(|piece| client.arrived(piece));
    assert_eq!(client.write(id, &vec![1; 1 << 20]), Ok(1 << 20));
    let full = held(&client);
    for _ in 0..8 {
        let (_, sent_frames) = packet(&mut client, 1400).unwrap();
        sent_frames.iter().for_each(|piece| client.arrived(piece));
        // The first write finds space for a packet; then the bound has fallen.
        assert!(client.write(id, &[1; 4000]).unwrap() < 1400);
        assert_eq!(held(&client), full);
    }
    for _ in 0..600 {
        let (_, sent_frames) = packet(&mut client, 1400).unwrap();
        sent_frames.iter().for_each(|piece| client.arrived(piece));
    }
    assert!(client.write(id, &[1; 1000]).unwrap() > 0);
    assert!(held(&client) < full / 2, "{} of {full}", held(&client));
}

#[test]
fn idle_stream_releases_memory_of_a_burst() {
    let (mut client, mut server) = pair(MANY, 1 << 20);
    let id = client.open(false).unwrap();
    let sent_frames = all_under_way(&mut client, id, 1 << 20);
    assert!(held(&client) >= 1 << 20);
    for piece in &sent_frames {
        client.lost(piece);
    }
    carry(&mut client, &mut server, 7);
    assert!(held(&server) >= 1 << 20);
    assert_eq!(read_all(&mut server, id), 1 << 20);
    carry(&mut server, &mut client, u64::MAX);
    while client.event().or(server.event()).is_some() {}
    assert!(held(&client) <= 2_000, "{} bytes", held(&client));
    assert!(held(&server) <= 2_000, "{} bytes", held(&server));
}

#[test]
fn thousand_closed_streams_leave_no_memory() {
    let (mut client, mut server) = pair(MANY, 10_000);
    for round in 0..3 {
        let ids: Vec<u64> = std::iter::from_fn(|| client.open(false)).collect();
        assert!(ids.len() >= 500, "{} in round {round}", ids.len());
        for id in &ids {
            client.write(*id, &[1; 1_000]).unwrap();
            client.finish(*id).unwrap();
        }
        carry(&mut client, &mut server, 5);
        while let Some(id) = server.accept() {
            assert_eq!(read_all(&mut server, id), 1_000);
            server.write(id, &[2; 900]).unwrap();
            server.finish(id).unwrap();
        }
        carry(&mut server, &mut client, 5);
        for id in ids {
            assert_eq!(read_all(&mut client, id), 900);
        }
        carry(&mut client, &mut server, u64::MAX);
        while client.event().or(server.event()).is_some() {}
        assert!(client.map.is_empty() && server.map.is_empty());
        assert!(held(&client) <= 3_000, "{} bytes", held(&client));
        assert!(held(&server) <= 3_000, "{} bytes", held(&server));
        carry(&mut server, &mut client, u64::MAX);
    }
}

/// Earlier, one byte at the end of each window allocated as many zeros as the window is long.
#[test]
fn a_far_byte_costs_as_much_as_a_near_one() {
    let limits = FlowControlLimits { data: 9 << 20, stream: 6 << 20, both: 128, one_way: 0 };
    let (_, mut server) = pair(limits, 1_000);
    for (n, at) in [6 << 20, 2 << 20, 1 << 19, 1 << 18, 1 << 17].into_iter().enumerate() {
        let id = 4 * n as u64;
        let frame = Frame::Stream { id, offset: at - 1, fin: false, data: b"x" };
        server.on_frame(&frame).unwrap();
    }
    assert!(held(&server) <= 5 * 1000, "{} bytes for five", held(&server));
}

/// Every second byte of a stream arrives: the memory is limited per byte and in total.
#[test]
fn many_pieces_cost_no_more_than_the_window_allows() {
    let limits = FlowControlLimits { data: 1 << 20, stream: 1 << 20, both: 1, one_way: 0 };
    let (_, mut server) = pair(limits, 1_000);
    let piece = |offset| Frame::Stream { id: 0, offset, fin: false, data: b"x" };
    let mut sent_frames = 0;
    let refused = loop {
        if let Err(violation) = server.on_frame(&piece(sent_frames * 2 + 1)) {
            break violation;
        }
        sent_frames += 1;
        assert!(
            held(&server) as u64 <= 3_000 + 100 * sent_frames,
            "{} of {sent_frames}",
            held(&server)
        );
    };
    assert_eq!((refused.code, sent_frames), (2, 1024 + (1 << 20) / 128));
}

/// The same with many streams: the limit on the pieces of all streams follows the connection's window.
#[test]
fn pieces_of_all_streams_are_bounded_together() {
    let limits = FlowControlLimits { data: 1 << 20, stream: 1 << 20, both: 100, one_way: 0 };
    let (_, mut server) = pair(limits, 1_000);
    let most = 1024 + (1 << 20) / 128;
    let piece = |n: u64| {
        let id = n % 100 * 4;
        let offset = n / 100 * 2 + 1;
        Frame::Stream { id, offset, fin: false, data: b"x" }
    };
    for n in 0..most {
        server.on_frame(&piece(n)).unwrap();
    }
    // A stopped stream releases its pieces.
    server.stop(0, 1).unwrap();
    for n in most..most + most / 100 {
        server.on_frame(&piece(n)).unwrap();
    }
    let refused = (most..2 * most).find_map(|n| server.on_frame(&piece(n)).err());
    assert_eq!(refused.map(|v| v.code), Some(2));
}

/// A peer that does not acknowledge makes this end hold little memory, on any number of streams. A stream of a peer
/// that does gets what its path needs, and the remaining ones a little each.
#[test]
fn bytes_written_ahead_are_bounded_over_all_streams() {
    let limits = FlowControlLimits { data: 1 << 30, stream: 1 << 30, both: 128, one_way: 0 };
    let (mut client, _) = pair(limits, 6 << 20);
    let ids: Vec<u64> = std::iter::from_fn(|| client.open(false)).collect();
    let data = vec![1; 1 << 20];
    for id in &ids {
        assert!(client.write(*id, &data).unwrap() >= 2048);
    }
    assert!(held(&client) <= (320 << 10) + 128 * 1000, "{}", held(&client));
    // All data are sent, repeatedly, without acknowledgement: the buffers grow with the data in flight, up to the
    // connection's limit.
    for _ in 0..40 {
        while packet(&mut client, 1400).is_some() {}
        for id in &ids {
            client.write(*id, &data).unwrap();
        }
    }
    let bound = (6 << 20) + 128 * 2048;
    let bytes: usize =
        client.map.values().filter_map(|s| s.send.as_ref()).map(|s| s.buffered()).sum();
    assert!((6 << 20..=bound).contains(&bytes), "{bytes}");
    assert!(held(&client) <= 2 * bound, "{}", held(&client));
    // Streams that are reset free their space for the last one.
    assert_eq!(client.write(ids[0], &data), Ok(0));
    for id in &ids[1..] {
        client.reset(*id, 1).unwrap();
    }
    while packet(&mut client, 1400).is_some() {}
    assert!(client.write(ids[0], &data).unwrap() > 100_000);
}

/// The last bytes of a long burst must not keep the burst's memory.
#[test]
fn rest_of_a_burst_keeps_little_memory() {
    let (mut client, _) = pair(FlowControlLimits { stream: 1 << 22, ..MANY }, 1 << 20);
    let id = client.open(false).unwrap();
    let sent_frames = all_under_way(&mut client, id, 1 << 20);
    let (last, most) = sent_frames.split_last().unwrap();
    most.iter().for_each(|piece| client.arrived(piece));
    assert!(held(&client) <= 20_000, "{}", held(&client));
    client.arrived(last);
    assert!(held(&client) <= 2_000, "{}", held(&client));
}

/// A peer opens streams and resets them at once, as fast as permitted. No state of them remains, and the application
/// need not see them.
#[test]
fn streams_reset_at_once_leave_no_memory() {
    let (mut client, mut server) = pair(MANY, 10_000);
    let mut opened = 0u64;
    for _ in 0..20 {
        while let Some(id) = client.open(false) {
            client.write(id, b"GET").unwrap();
            client.reset(id, 300).unwrap();
            opened += 1;
        }
        carry(&mut client, &mut server, u64::MAX);
        assert_eq!(server.accept(), None, "it was over before anybody saw it");
        carry(&mut server, &mut client, u64::MAX);
        while let Some(id) = client.event().and(None::<u64>) {
            client.read(id, &mut [0; 9]).unwrap_err();
        }
        let ids: Vec<u64> = client.map.ids().collect();
        for id in ids {
            let _ = client.read(id, &mut [0; 9]);
        }
        while server.event().is_some() {}
        assert!(server.map.is_empty(), "{} streams stay", server.map.len());
        assert!(held(&server) <= 3_000, "{} bytes", held(&server));
    }
    assert!(opened >= 5_000, "{opened}");
}
