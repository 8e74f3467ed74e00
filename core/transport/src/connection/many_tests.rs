//! Cost of a folder of small files, compared with one file of the same bytes. The unit is round trips, over a slow and
//! lossy path, with the file service's pattern of requests.

use super::pair_tests::{Net, Pair, config};
use crate::streams::Read;
use narrows_base::{Duration, Rate, Time};

const FILES: usize = 300;
const FILE: usize = 3_090;
/// Files sent before the first response on a stream, and number of streams.
const AHEAD: usize = 64;
const STREAMS: usize = 4;
const QUESTION: usize = 60;
const ANSWER: usize = 14;

fn net(loss: f64) -> Net {
    Net {
        loss,
        rate: Rate::from_bps(10_000_000),
        delay: Duration::from_millis(125),
        queue: 312_500,
        ..Net::good()
    }
}

/// A client's stream: parts to send, each of which gets a response.
struct ClientStream {
    id: u64,
    /// Bytes of a part, number of parts, and how many may be sent before a response.
    piece: usize,
    sent_frames: usize,
    ahead: usize,
    written: usize,
    /// State at the server.
    read: usize,
    answers: usize,
    heard: usize,
}

impl ClientStream {
    fn open(pair: &mut Pair, piece: usize, sent_frames: usize, ahead: usize) -> ClientStream {
        let id = pair.client.open(false).unwrap();
        ClientStream { id, piece, sent_frames, ahead, written: 0, read: 0, answers: 0, heard: 0 }
    }

    /// Reads and writes at both ends. Returns whether all responses arrived.
    fn step(&mut self, pair: &mut Pair) -> bool {
        let allowed = (self.heard / ANSWER + self.ahead).min(self.sent_frames) * self.piece;
        while self.written < allowed {
            let zeros = vec![0; (allowed - self.written).min(4096)];
            match pair.client.write(self.id, &zeros).unwrap() {
                0 => break,
                n => self.written += n,
            }
        }
        let mut buffer = vec![0; 1 << 16];
        while pair.server.accept().is_some() {}
        while let Ok(Read::Bytes(n)) = pair.server.read(self.id, &mut buffer) {
            self.read += n;
        }
        while self.answers < self.read / self.piece {
            let n = pair.server.write(self.id, &[0; ANSWER]).unwrap();
            assert_eq!(n, ANSWER, "answers are few");
            self.answers += 1;
        }
        while let Ok(Read::Bytes(n)) = pair.client.read(self.id, &mut buffer) {
            self.heard += n;
        }
        self.heard == self.sent_frames * ANSWER
    }
}

/// Runs all streams at the same time. Returns the duration in round trips.
fn all(pair: &mut Pair, mut streams: Vec<ClientStream>) -> f64 {
    let start = pair.now;
    let until = pair.now + Duration::from_secs_f64(120.0);
    let done = pair.run(until, |pair| {
        let open = streams.iter_mut().map(|s| usize::from(!s.step(pair)));
        open.sum::<usize>() == 0
    });
    assert!(done, "it comes to an end");
    round_trips(pair.now, start)
}

fn round_trips(now: Time, start: Time) -> f64 {
    now.since(start).as_secs_f64() / 0.25
}

/// Round trips for one file and for many files, after the same request. `ahead` files may be sent before a response.
fn both(loss: f64, seed: u64, ahead: usize) -> (f64, f64) {
    let fresh = || Pair::new(&config("rrtp"), net(loss), seed);
    let mut pair = fresh();
    let asked = vec![ClientStream::open(&mut pair, QUESTION, 1, 1)];
    let one = all(&mut pair, asked) + {
        let file = vec![ClientStream::open(&mut pair, FILES * FILE, 1, 1)];
        all(&mut pair, file)
    };
    let mut pair = fresh();
    let asked = vec![ClientStream::open(&mut pair, QUESTION, 1, 1)];
    let many = all(&mut pair, asked) + {
        let each = |_| ClientStream::open(&mut pair, FILE, FILES / STREAMS, ahead);
        let files = (0..STREAMS).map(each).collect();
        all(&mut pair, files)
    };
    (one, many)
}

/// At most three more round trips with losses, 0.5 more on average. Sent one after the other, the files take far more.
#[test]
fn many_small_files_take_few_more_rtts_than_one() {
    let seeds = 20;
    let mut sum = 0.0;
    for seed in 0..seeds {
        let (one, many) = both(0.005, seed, AHEAD);
        assert!(many - one <= 3.0, "seed {seed}: {one} and {many}");
        sum += many - one;
    }
    assert!(sum / f64::from(seeds as u32) < 0.5, "{sum} in {seeds} pairs");
    let (one, many) = both(0.0, 1, AHEAD);
    // The larger file fills the path sooner.
    assert!(one < 9.5 && many < 9.5, "nothing lost: {one} and {many}");
    let (one, many) = both(0.0, 1, 1);
    assert!(many - one > 20.0, "no test of anything: {one} and {many}");
}
