//! The cost of streams between two applications, without sealing, sockets or pacing: run with
//! `cargo bench -p narrows-transport`. 1 GB/s is 1 CPU s/GB for both ends together.

use divan::{Bencher, counter::BytesCount};
use narrows_transport::streams::{FlowControlLimits, Read, SentFrame, Side, Streams};
use narrows_wire::{FrameWriter, Frames, Prelude};

fn main() {
    divan::main();
}

const TOTAL: usize = 64 << 20;
/// Payload of a datagram of 1472 bytes: without header and tag.
const PAYLOAD: usize = 1472 - 8 - 16;
/// Datagrams that a system call carries.
const BATCH: usize = 44;

/// Both ends, `open` streams of one direction.
fn ends(open: u64) -> (Streams, Streams, Vec<u64>) {
    let limits = FlowControlLimits { data: 8 << 20, stream: 4 << 20, both: 0, one_way: open };
    let mut client = Streams::new(Side::Client, limits, 1 << 20);
    let mut server = Streams::new(Side::Server, limits, 1 << 20);
    client.peer_permits(limits);
    server.peer_permits(limits);
    let ids = (0..open).filter_map(|_| client.open(true)).collect();
    (client, server, ids)
}

/// Fills packets, in batches, and delivers them; what arrived is known a batch later.
struct Wire {
    buffer: Vec<u8>,
    /// Where each packet of the batch ends.
    ends: Vec<usize>,
    flight: Vec<SentFrame>,
}

impl Wire {
    fn batch(&mut self, from: &mut Streams, to: &mut Streams, loss: u64, count: &mut u64) -> bool {
        let Wire { buffer, ends, flight } = self;
        flight.drain(..).for_each(|piece| from.arrived(&piece));
        ends.clear();
        for room in buffer.chunks_exact_mut(PAYLOAD) {
            if !from.has_something() {
                break;
            }
            *count += 1;
            let lost = count.is_multiple_of(loss);
            let mut writer = FrameWriter::new(room, Prelude { stamp: 0, distance: 9 }).unwrap();
            let mut gone = Vec::new();
            let sent_frames = if lost { &mut gone } else { &mut *flight };
            from.fill(&mut writer, &mut |piece| sent_frames.push(piece));
            ends.push(if lost { 0 } else { writer.len() });
            gone.iter().for_each(|piece| _ = from.lost(piece));
        }
        for (packet, end) in buffer.chunks_exact(PAYLOAD).zip(ends.iter()) {
            if *end > 0 {
                let (_, frames) = Frames::read(&packet[..*end]).unwrap();
                for frame in frames {
                    to.on_frame(&frame.unwrap()).unwrap();
                }
            }
        }
        !ends.is_empty()
    }
}

fn carry(bencher: Bencher, open: u64, busy: usize, loss: u64) {
    let (mut client, mut server, ids) = ends(open);
    let data = vec![7; 64 << 10];
    let mut into = vec![0; 64 << 10];
    let wire = || Wire { buffer: vec![0; BATCH * PAYLOAD], ends: vec![], flight: vec![] };
    let mut there = wire();
    let mut back = wire();
    let mut count = 0;
    bencher.counter(BytesCount::new(TOTAL)).bench_local(|| {
        let mut read = 0;
        while read < TOTAL {
            for id in &ids[..busy] {
                client.write(*id, &data).unwrap();
            }
            there.batch(&mut client, &mut server, loss, &mut count);
            while let Some(event) = server.event() {
                divan::black_box(event);
            }
            for id in &ids[..busy] {
                while let Ok(Read::Bytes(n)) = server.read(*id, &mut into) {
                    read += n;
                    divan::black_box(&into);
                }
            }
            back.batch(&mut server, &mut client, u64::MAX, &mut 0);
        }
    });
}

/// One stream.
#[divan::bench]
fn one(bencher: Bencher) {
    carry(bencher, 1, 1, u64::MAX);
}
/// One packet in a hundred lost.
#[divan::bench]
fn one_lossy(bencher: Bencher) {
    carry(bencher, 1, 1, 100);
}
/// Eight that take turns.
#[divan::bench]
fn eight(bencher: Bencher) {
    carry(bencher, 8, 8, u64::MAX);
}
/// One among ten thousand open ones.
#[divan::bench]
fn one_among_idle(bencher: Bencher) {
    carry(bencher, 10_000, 1, u64::MAX);
}
