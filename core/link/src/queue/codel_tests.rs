use super::*;
use crate::queue::tests::{Count, ect, queued};
use narrows_base::Spec;

const MS: u64 = 1_000_000;

fn codel(text: &str) -> CoDel {
    let settings = Settings::read(&Spec::parse(text).unwrap(), CODEL.params).unwrap();
    CoDel::new(&settings, QueueLimit::Unlimited)
}

fn fill(codel: &mut CoDel, at_ms: u64, n: u32, flags: u8) {
    for i in 0..n {
        let p = queued(i, 1000, flags);
        codel.enqueue(Time::from_nanos(at_ms * MS), p, false, &mut ());
    }
}

/// Takes one packet in every millisecond of the span; when packets were dropped and marked.
fn take(codel: &mut CoDel, from_ms: u64, until_ms: u64) -> (Vec<u64>, Vec<u64>) {
    let mut drops = Vec::new();
    let mut marks = Vec::new();
    for ms in from_ms..until_ms {
        let mut count = Count::default();
        codel.dequeue(Time::from_nanos(ms * MS), &mut count);
        drops.extend((0..count.dropped).map(|_| ms));
        marks.extend((0..count.marked).map(|_| ms));
    }
    (drops, marks)
}

/// The expected times of strikes, seen at whole milliseconds. The first strike follows an interval after the target was
/// exceeded; each next one is due an interval over the root of the count after the one before.
fn law(first_ms: u64, count: u32, n: u32) -> Vec<u64> {
    let mut due = first_ms as f64;
    let mut out = vec![first_ms];
    for k in count..count + n - 1 {
        due += 100.0 / f64::from(k).sqrt();
        out.push(due.ceil() as u64);
    }
    out
}

#[test]
fn drops_follow_the_schedule_after_interval_above_target() {
    let mut q = codel("codel");
    fill(&mut q, 0, 3000, 0);
    let (drops, _) = take(&mut q, 1, 1000);
    // 5 ms of wait at 5 ms, an interval later the first drop.
    assert_eq!(drops[0], 105);
    assert_eq!(drops, law(105, 1, drops.len() as u32));
    assert!(drops.len() > 20, "{}", drops.len());
}

#[test]
fn marks_follow_the_same_law_and_everybody_gets_through() {
    let mut q = codel("codel");
    fill(&mut q, 0, 3000, ect());
    let (drops, marks) = take(&mut q, 1, 1000);
    assert!(drops.is_empty());
    assert_eq!(marks, law(105, 1, marks.len() as u32));
    let mut off = codel("codel(ecn=off)");
    fill(&mut off, 0, 3000, ect());
    assert_eq!(take(&mut off, 1, 1000), (marks, drops));
}

#[test]
fn a_short_burst_is_let_through() {
    let mut q = codel("codel");
    for round in 0..20 {
        fill(&mut q, round * 200, 99, 0);
        let (drops, _) = take(&mut q, round * 200, round * 200 + 200);
        assert!(drops.is_empty(), "waits above the target last less than an interval");
    }
    assert!(!q.state.dropping);
}

#[test]
fn behind_one_packet_there_is_no_queue() {
    let mut q = codel("codel");
    for ms in 0..50 {
        // Two packets wait, each for 200 ms: one remains after the departure of the other.
        fill(&mut q, ms * 200, 1, 0);
        if ms > 0 {
            let (drops, _) = take(&mut q, ms * 200, ms * 200 + 1);
            assert!(drops.is_empty());
        }
    }
    assert_eq!(q.waiting(), 1);
}

#[test]
fn dropping_ends_below_target_and_resumes_its_count() {
    let run = |pause_ms: u64| {
        let mut q = codel("codel");
        fill(&mut q, 0, 3000, 0);
        take(&mut q, 1, 500);
        assert!(q.state.dropping);
        let count = q.state.count;
        // Below the target for a moment: no drop, and the episode is over.
        while q.fifo.pop().is_some() {}
        fill(&mut q, 500, 5, 0);
        assert!(take(&mut q, 501, 503).0.is_empty());
        assert!(!q.state.dropping && q.state.count == count);
        while q.fifo.pop().is_some() {}
        let start = 503 + pause_ms;
        fill(&mut q, start, 3000, 0);
        let (drops, _) = take(&mut q, start + 1, start + 400);
        (count, start, drops)
    };
    let (count, start, drops) = run(100);
    assert!(count > 5, "{count}");
    // The drops made in the last episode but the one it began with.
    assert_eq!(drops, law(start + 105, count - 1, drops.len() as u32));
    // Sixteen intervals later all is forgotten.
    let (_, start, drops) = run(1700);
    assert_eq!(drops, law(start + 105, 1, drops.len() as u32));
}
