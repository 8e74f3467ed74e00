//! Messages of peers and programs to the ends of `narrows media`: no panic, messages are decoded and encoded unchanged,
//! and both ends store and send no more than arrived.

use narrows_base::{Duration, Time};
use narrows_media::frames::FrameCounter;
use narrows_media::hello::{HELLO, LATENCIES, STATUS, read_hello, read_status, status};
use narrows_media::layered::Layered;
use narrows_media::packet::{MediaMessage, ask, read};
use narrows_media::repair;
use narrows_media::sender::PathMeasurements;
use narrows_media::shown::LayerStatistics;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    match read(bytes) {
        Some(MediaMessage::Data(data)) => assert_eq!(data.bytes(), bytes),
        Some(MediaMessage::Ask(runs)) => assert_eq!(ask(&runs), bytes),
        None => {}
    }
    if let Some((words, _)) = bytes.split_first_chunk::<HELLO>() {
        assert!(read_hello(*words).is_none_or(|(latency, _)| LATENCIES.contains(&latency)));
    }
    if let Some((words, _)) = bytes.split_first_chunk::<STATUS>() {
        assert_eq!(status(&read_status(words)), words);
    }
    let repair = repair::read(bytes);
    assert!(repair.is_none_or(|repair| usize::from(repair.parts) <= repair::MAX_PARTS));
    FrameCounter::default().on_datagram(bytes);
    let _ = narrows_media::rate_http::judge(bytes);
    exchange(bytes);
}

/// The input as messages to both ends, each after its length, with a millisecond between them.
fn exchange(mut bytes: &[u8]) {
    let delay = Duration::from_millis(100);
    let mut receiver = LayerStatistics::new(2, delay);
    let mut sender = Layered::new(&[1e6, 1e6], delay);
    let mut now = Time::ZERO;
    let mut received = 0;
    let mut out = 0;
    // Repeats would be too late, and packets are lost: the sender adds redundancy.
    let path = PathMeasurements { srtt: delay + delay, min_rtt: delay + delay, loss: 0.1 };
    while let Some((length, rest)) = bytes.split_first() {
        let (message, rest) = rest.split_at(rest.len().min((*length).into()));
        bytes = rest;
        received += message.len();
        receiver.on_message(now, &mut message.to_vec());
        sender.on_datagram(now, message.len() % 2, message, 100);
        sender.on_message(&mut message.to_vec());
        now += Duration::from_millis(1);
        while let Some((_, datagram)) = receiver.release(now) {
            out += datagram.len();
        }
        while receiver.ask(now, Duration::ZERO).is_some() {}
        sender.end_blocks(now, path);
        while sender.next(now, path).is_some() {}
    }
    while let Some((_, datagram)) = receiver.release(now + Duration::from_secs(60)) {
        out += datagram.len();
    }
    assert!(out <= received && receiver.due().is_never());
}
