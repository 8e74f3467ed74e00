//! Two ends with packets lost, reordered and repeated between them; and an end with a hostile peer.

use super::tests::{deliver, packet, pair};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The content of a stream: each byte follows from its offset.
fn byte(id: u64, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ at >> 8 ^ id.wrapping_mul(77)) as u8
}

/// One end with an application that writes and reads at random.
struct End {
    streams: Streams,
    /// ID, bytes wanted, bytes written, finished.
    writes: Vec<(u64, u64, u64, bool)>,
    /// ID, bytes read, end seen.
    reads: BTreeMap<u64, (u64, bool)>,
    arrived: usize,
    /// Whether it sometimes resets or stops streams.
    quits: bool,
    /// Packets in flight.
    wire: Vec<(Vec<u8>, Vec<SentFrame>)>,
}

impl End {
    fn new(streams: Streams, quits: bool) -> End {
        End { streams, writes: vec![], reads: BTreeMap::new(), arrived: 0, quits, wire: vec![] }
    }
    fn begin(&mut self, one_way: bool, bytes: u64) -> bool {
        let id = self.streams.open(one_way);
        if let Some(id) = id {
            self.writes.push((id, bytes, 0, false));
            if !one_way {
                self.reads.insert(id, (0, false));
            }
        }
        id.is_some()
    }
    /// One step of the application.
    fn work(&mut self, bits: u64) {
        while let Some(event) = self.streams.event() {
            self.arrived += usize::from(matches!(event, StreamEvent::Arrived(_)));
        }
        while let Some(id) = self.streams.accept() {
            self.reads.insert(id, (0, false));
            if id & 2 == 0 {
                self.writes.push((id, bits % 5_000, 0, false));
            }
        }
        for (id, wanted, written, finished) in &mut self.writes {
            if *finished {
                continue;
            }
            if self.quits && (bits >> 12).is_multiple_of(50) {
                *finished = true;
                // Only a stream that the peer stopped, and that was reset since, may be gone.
                _ = self.streams.reset(*id, 300);
                continue;
            }
            let next = (1 + bits % 3_000).min(*wanted - *written);
            let data: Vec<u8> = (*written..*written + next).map(|at| byte(*id, at)).collect();
            match self.streams.write(*id, &data) {
                Ok(n) => *written += n as u64,
                Err(error) => {
                    assert!(self.quits && error == StreamError::Stopped(301), "{error:?}");
                    *finished = true;
                    continue;
                }
            }
            // The end is often sent without data.
            if written == wanted && (bits >> 30).is_multiple_of(3) {
                self.streams.finish(*id).unwrap();
                *finished = true;
            }
        }
        let mut into = vec![0; 1 + (bits >> 20) as usize % 4_000];
        for (id, (at, ended)) in &mut self.reads {
            if *ended || (bits >> 8 ^ id).is_multiple_of(3) {
                continue;
            }
            if self.quits && (bits >> 16).is_multiple_of(40) {
                self.streams.stop(*id, 301).unwrap();
                *ended = true;
                continue;
            }
            match self.streams.read(*id, &mut into) {
                Ok(Read::Bytes(n)) => {
                    for got in &into[..n] {
                        assert_eq!(*got, byte(*id, *at), "stream {id} at {at}");
                        *at += 1;
                    }
                }
                Ok(Read::End) => *ended = true,
                Ok(Read::Blocked) => {}
                Err(error) => {
                    assert!(
                        self.quits && error == StreamError::Reset(300)
                            || error == StreamError::Reset(301),
                        "{error:?}"
                    );
                    *ended = true;
                }
            }
        }
    }
    fn is_done(&self, peer: &End) -> bool {
        // A stream that was reset before it was accepted is never visible there.
        let passed = |id: &u64| id >> 2 < peer.streams.accepted[stream::direction_index(*id)];
        let read = |id| peer.reads.get(id).map_or_else(|| self.quits && passed(id), |r| r.1);
        self.writes.iter().all(|(id, _, _, finished)| *finished && read(id))
    }
    /// Acknowledges, loses or duplicates one packet of this end. All frames of a packet have the same outcome.
    fn outcome(&mut self, peer: &mut End, bits: u64, calm: bool) {
        if self.wire.is_empty() {
            return;
        }
        let at = if calm { 0 } else { (bits % self.wire.len() as u64) as usize };
        match (bits >> 32) % 16 {
            0..=2 if !calm => {
                // The packet is declared lost. Sometimes it is delivered anyway.
                let (bytes, sent_frames) = self.wire.remove(at);
                if (bits >> 36).is_multiple_of(4) {
                    deliver(&mut peer.streams, &bytes).unwrap();
                }
                for piece in &sent_frames {
                    self.streams.lost(piece);
                }
                if (bits >> 40).is_multiple_of(4) && (bits >> 36).is_multiple_of(4) {
                    sent_frames.iter().for_each(|p| self.streams.arrived(p));
                }
            }
            3..=4 if !calm => {
                // A copy stays in flight.
                deliver(&mut peer.streams, &self.wire[at].0).unwrap();
            }
            _ => {
                let (bytes, sent_frames) = self.wire.remove(at);
                deliver(&mut peer.streams, &bytes).unwrap();
                sent_frames.iter().for_each(|p| self.streams.arrived(p));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any packet outcomes, all bytes arrive unchanged, no limit is exceeded (the other end would report a
    /// violation), and all streams end and are dropped.
    #[test]
    fn all_arrives_whatever_the_network_does(
        seed in any::<u64>(),
        data in 50u64..30_000,
        stream in 50u64..9_000,
        both in 1u64..5,
        one_way in 1u64..5,
        send_buffer in 1usize..6_000,
        wants in prop::collection::vec((any::<bool>(), any::<bool>(), 0u64..20_000), 1..8),
        room in 60usize..1500,
        quits in prop::bool::weighted(0.3),
    ) {
        let limits = FlowControlLimits { data, stream, both, one_way };
        let (client, server) = pair(limits, send_buffer);
        let mut client = End::new(client, quits);
        let mut server = End::new(server, quits);
        let mut state = seed | 1;
        let mut wants = wants;
        let mut turns = 0u64;
        loop {
            // xorshift64*: any sequence from a seed will do.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            wants.retain(|&(by_client, one_way, bytes)| {
                let end = if by_client { &mut client } else { &mut server };
                !end.begin(one_way, bytes)
            });
            client.work(bits);
            server.work(bits >> 5);
            for end in [&mut client, &mut server] {
                if end.wire.len() < 40
                    && let Some((bytes, sent_frames)) = packet(&mut end.streams, room)
                {
                    end.wire.push((bytes, sent_frames));
                }
            }
            let calm = turns > 60_000;
            for turn in 0..2 {
                client.outcome(&mut server, bits >> turn, calm);
                server.outcome(&mut client, bits >> (3 + turn), calm);
            }
            let over = wants.is_empty() && client.is_done(&server) && server.is_done(&client);
            if over && client.wire.is_empty() && server.wire.is_empty()
                && !client.streams.has_something() && !server.streams.has_something()
            {
                break;
            }
            turns += 1;
            prop_assert!(turns < 200_000, "it does not end");
        }
        for end in [&mut client, &mut server] {
            // Each step skips a third of the streams to read; no stream is skipped by both steps.
            [0, 1 << 8].into_iter().for_each(|bits| end.work(bits));
            prop_assert!(end.streams.all_arrived());
            prop_assert!(end.streams.map.is_empty(), "nothing is kept");
        }
        for (writer, reader) in [(&client, &server), (&server, &client)] {
            let credit = &writer.streams.credit;
            let window = &reader.streams.all.window;
            prop_assert_eq!(credit.used(), window.came(), "both ends count alike");
            prop_assert_eq!(window.came(), window.taken(), "and all of it as read");
            if quits {
                continue;
            }
            prop_assert_eq!(writer.arrived, writer.writes.len());
            for (id, wanted, ..) in &writer.writes {
                prop_assert_eq!(reader.reads[id], (*wanted, true));
            }
        }
    }
}

/// Any frame of streams, mostly valid ones.
fn any_frame() -> impl Strategy<Value = (u8, u64, u64, u64, usize, bool)> {
    let id = prop_oneof![9 => 0u64..40, 1 => 0..1u64 << 62];
    let number = || prop_oneof![8 => 0u64..3_000, 1 => 0u64..50_000, 1 => 0..1u64 << 62];
    (0u8..12, id, number(), number(), 0usize..600, prop::bool::weighted(0.1))
}

fn frame(of: (u8, u64, u64, u64, usize, bool), data: &[u8]) -> Frame<'_> {
    let (kind, id, a, b, length, flag) = of;
    match kind {
        0..=4 => Frame::Stream { id, offset: a, fin: flag, data: &data[..length] },
        5 => Frame::MaxData(a),
        6 => Frame::MaxStream { id, most: a },
        7 => Frame::MaxStreams { one_way: flag, most: a },
        8 => Frame::Blocked { at: a },
        9 => Frame::StreamBlocked { id, at: a },
        10 => Frame::ResetStream { id, code: a, size: b },
        _ => Frame::Stop { id, code: a },
    }
}

proptest! {
    /// Frames of a hostile peer either cause a violation or have no effect beyond its limits. The granted limits bound
    /// the memory for it, for any application.
    #[test]
    fn a_hostile_peer_gets_no_more_than_it_was_granted(
        frames in prop::collection::vec((any_frame(), any::<u32>()), 1..200),
        client in any::<bool>(),
    ) {
        let limits = FlowControlLimits { data: 20_000, stream: 6_000, both: 5, one_way: 3 };
        let side = if client { Side::Client } else { Side::Server };
        let mut end = Streams::new(side, limits, 2_000);
        end.peer_permits(limits);
        let data = vec![7; 600];
        let mut sent = Vec::new();
        for (of, act) in frames {
            let _ = end.on_frame(&frame(of, &data));
            let id = u64::from(act >> 8) % 24;
            let mut into = [0; 500];
            match act % 16 {
                0 => drop(end.open(act & 256 == 0)),
                1 | 2 => drop(end.write(id, &data)),
                3 => drop(end.finish(id)),
                4 => drop(end.reset(id, 300)),
                5 => drop(end.stop(id, 300)),
                6 | 7 => drop(end.read(id, &mut into)),
                8 => drop(end.accept()),
                9 => drop(end.event()),
                10 | 11 => sent.extend(packet(&mut end, 300).map(|p| p.1).unwrap_or_default()),
                12 => sent.drain(..).for_each(|p| end.arrived(&p)),
                13 => sent.drain(..).for_each(|p| _ = end.lost(&p)),
                _ => {}
            }
            let held = |half: &receive::Receiving| half.memory();
            let received: usize =
                end.map.values().filter_map(|s| s.receive.as_ref()).map(held).sum();
            prop_assert!(received <= 2 * 20_000 + 16 * 200, "{received} bytes are held");
            let theirs = end.map.ids().filter(|id| !stream::is_ours(side, *id)).count();
            prop_assert!(theirs <= 8, "{theirs} streams of the peer are held");
            prop_assert!(end.all.window.came() <= end.all.window.granted());
        }
    }
}
