//! What is held, and what is given back.

use super::tests::{deliver, packet, pair};
use super::*;
use std::mem::size_of;

const MANY: Limits = Limits { data: 1 << 22, stream: 1 << 20, both: 1000, one_way: 0 };

/// Bytes of the heap that an end holds, but for the map's own nodes.
fn held(end: &Streams) -> usize {
    end.memory()
}

/// All packets there arrive but every `loss`-th, and what is lost leaves again.
fn carry(from: &mut Streams, to: &mut Streams, loss: u64) {
    let mut count = 0u64;
    while let Some((bytes, pieces)) = packet(from, 1400) {
        count += 1;
        for piece in &pieces {
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
    let (mut all, mut into) = (0, vec![0; 5_000]);
    while let Ok(Read::Bytes(n)) = end.read(id, &mut into) {
        all += n;
    }
    all
}

/// Writes so much on a stream, and all of it leaves; nothing arrives yet.
fn all_under_way(from: &mut Streams, id: u64, bytes: usize) -> Vec<Piece> {
    let (mut left, mut pieces) = (bytes, Vec::new());
    while left > 0 {
        let taken = from.write(id, &vec![1; left]).unwrap();
        assert!(taken > 0, "the writer is asked for more as what it wrote leaves");
        left -= taken;
        while let Some((_, some)) = packet(from, 1400) {
            pieces.extend(some);
        }
    }
    pieces
}

/// Of a path nothing is known at first: when all of the buffer was filled at once, five hundred
/// connections spent their time on pages for bytes that could not leave for long.
#[test]
fn a_new_stream_is_not_written_far_ahead() {
    let (mut client, _) = pair(MANY, 6 << 20);
    let id = client.open(false).unwrap();
    let data = vec![1; 6 << 20];
    let first = client.write(id, &data).unwrap();
    assert!((100_000..=300_000).contains(&first), "{first}");
    assert_eq!(client.write(id, &data), Ok(0));
    while client.event().is_some() {}
    // A path that takes a burst gets the next one without waiting for a round trip.
    let (mut left, mut asked) = (0, None);
    while let Some((bytes, _)) = packet(&mut client, 1400) {
        left += bytes.len();
        if client.event() == Some(StreamEvent::Writable(id)) {
            asked.get_or_insert(left);
        }
    }
    assert!(asked.is_some_and(|at| at < first * 7 / 8), "{asked:?} of {first}");
    assert!(client.write(id, &data).unwrap() > first / 2);
}

/// An idle connection has a budget of 20 KB for everything; streams take the least part of it.
#[test]
fn without_streams_there_is_little() {
    let (client, _) = pair(MANY, 1 << 20);
    assert_eq!(held(&client), 0);
    assert!(size_of::<Streams>() <= 768, "{} bytes", size_of::<Streams>());
    assert!(size_of::<Stream>() <= 640, "{} bytes", size_of::<Stream>());
}

/// The bound has become smaller than what waits: whoever tries to write meanwhile must not make it be
/// copied each time, which once cost a hundred slow connections all of the processor.
#[test]
fn a_full_buffer_is_left_alone_until_it_has_drained() {
    let (mut client, _) = pair(Limits { stream: 1 << 22, ..MANY }, 1 << 20);
    let id = client.open(false).unwrap();
    all_under_way(&mut client, id, 1 << 20).iter().for_each(|piece| client.arrived(piece));
    assert_eq!(client.write(id, &vec![1; 1 << 20]), Ok(1 << 20));
    let full = held(&client);
    for _ in 0..8 {
        let (_, pieces) = packet(&mut client, 1400).unwrap();
        pieces.iter().for_each(|piece| client.arrived(piece));
        // The first finds room for a packet; then the bound has fallen.
        assert!(client.write(id, &[1; 4000]).unwrap() < 1400);
        assert_eq!(held(&client), full);
    }
    for _ in 0..600 {
        let (_, pieces) = packet(&mut client, 1400).unwrap();
        pieces.iter().for_each(|piece| client.arrived(piece));
    }
    assert!(client.write(id, &[1; 1000]).unwrap() > 0);
    assert!(held(&client) < full / 2, "{} of {full}", held(&client));
}

#[test]
fn an_idle_stream_gives_back_what_a_burst_took() {
    let (mut client, mut server) = pair(MANY, 1 << 20);
    let id = client.open(false).unwrap();
    let pieces = all_under_way(&mut client, id, 1 << 20);
    assert!(held(&client) >= 1 << 20);
    for piece in &pieces {
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
fn of_a_thousand_streams_nothing_is_kept() {
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

/// A single byte at the far end of the window makes the buffer as long as the window, once.
#[test]
fn a_far_byte_and_many_holes_cost_no_more_than_the_window_allows() {
    let limits = Limits { data: 1 << 20, stream: 1 << 20, both: 1, one_way: 0 };
    let (_, mut server) = pair(limits, 1_000);
    let piece = |offset| Frame::Stream { id: 0, offset, fin: false, data: b"x" };
    server.on_frame(&piece((1 << 20) - 1)).unwrap();
    assert!(held(&server) <= (1 << 20) + 1_000);
    let mut holes = 0;
    let refused = loop {
        if let Err(violation) = server.on_frame(&piece(holes * 2 + 1)) {
            break violation;
        }
        holes += 1;
    };
    assert_eq!((refused.code, holes), (2, 1024 + (1 << 20) / 256 - 1));
    assert!(held(&server) <= (1 << 20) + 200_000);
}
