use super::*;
use crate::queue::tests::{Count, queued};
use narrows_base::Spec;

const MS: u64 = 1_000_000;

fn queue(text: &str, limit: QueueLimit) -> FqCoDel {
    let settings = Settings::read(&Spec::parse(text).unwrap(), FQ_CODEL.params).unwrap();
    FqCoDel::new(&settings, limit, RandomKey::from_seed(4))
}

fn of(flow: u64, n: u32, size: u16) -> QueuedPacket {
    QueuedPacket { flow, ..queued(n, size, 0) }
}

#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_flow() {
    let mut q = queue("fq-codel", QueueLimit::Packets(300));
    let mut late = 0;
    let mut sparse = 0;
    let mut bulk = 0;
    let mut dropped = Vec::new();
    for ms in 0..5000u64 {
        let now = Time::from_nanos(ms * MS);
        let mut watch = Watch(&mut dropped);
        for k in 0..3 {
            q.enqueue(now, of(1, (3 * ms + k) as u32, 1000), false, &mut watch);
        }
        if ms % 10 == 0 {
            q.enqueue(now, of(2, ms as u32, 200), false, &mut watch);
        }
        let (arrived, p) = q.dequeue(now, &mut watch).unwrap();
        if p.flow == 2 {
            sparse += 1;
            late += u32::from(now > arrived);
        } else {
            bulk += 1;
        }
    }
    // Except for the first, which arrives when the bulk flow too has just begun.
    assert_eq!((sparse, late), (500, 1), "each goes first, in the very next turn");
    assert_eq!(bulk, 4500, "and the bulk flow has all the rest");
    assert!(!dropped.is_empty() && dropped.iter().all(|f| *f == 1), "only the fat flow loses");
}

struct Watch<'a>(&'a mut Vec<u64>);
impl QueueObserver for Watch<'_> {
    fn dropped(&mut self, packet: &QueuedPacket) {
        self.0.push(packet.flow);
    }
    fn marked(&mut self, _packet: &QueuedPacket) {}
}

#[test]
fn backlogged_flows_share_bytes_not_packets() {
    let mut q = queue("fq-codel(target=10s)", QueueLimit::Unlimited);
    for n in 0..2000 {
        q.enqueue(Time::ZERO, of(1, n, 1500), false, &mut ());
        for k in 0..5 {
            q.enqueue(Time::ZERO, of(2, 5 * n + k, 300), false, &mut ());
        }
    }
    let mut bytes = [0i64; 3];
    for _ in 0..3000 {
        let (_, p) = q.dequeue(Time::ZERO, &mut ()).unwrap();
        bytes[p.flow as usize] += i64::from(p.size);
        assert!((bytes[1] - bytes[2]).abs() <= 2 * 1514, "{bytes:?}");
    }
}

#[test]
fn overload_drops_half_the_longest_queue_up_to_64() {
    for (limit, expected) in [(QueueLimit::Packets(100), 46), (QueueLimit::Packets(1000), 64)] {
        let mut q = queue("fq-codel", limit);
        for n in 0..10 {
            q.enqueue(Time::ZERO, of(2, n, 1000), false, &mut ());
        }
        let mut count = Count::default();
        let mut n = 0;
        while count.dropped == 0 {
            q.enqueue(Time::ZERO, of(1, n, 1000), false, &mut count);
            n += 1;
        }
        // Half of 91 packets, rounded up to whole ones.
        assert_eq!(count.dropped, expected);
        assert_eq!(q.waiting(), 10 + n as usize - expected as usize);
        let thin = q.flows.iter().map(|f| f.fifo.len()).filter(|n| *n == 10).count();
        assert_eq!(thin, 1, "the thin flow keeps all of its ten");
        assert_eq!(q.dequeue(Time::ZERO, &mut ()).unwrap().1.number(), 0);
        let rest = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut ())).map(|next| next.1);
        let first = rest.filter(|p| p.flow == 1).map(|p| p.number()).min();
        assert_eq!(first, Some(expected), "from the head");
    }
}

#[test]
fn emptied_flow_is_not_new_again_at_once() {
    let mut q = queue("fq-codel", QueueLimit::Unlimited);
    for n in 0..100 {
        q.enqueue(Time::ZERO, of(1, n, 1000), false, &mut ());
    }
    // Flow 2 sends one full packet whenever its queue is empty: it gets its share and no more.
    let mut served = [0; 3];
    for n in 0..60 {
        if q.flows[q.place(&of(2, 0, 0))].fifo.len() == 0 {
            q.enqueue(Time::ZERO, of(2, n, 1000), false, &mut ());
        }
        served[q.dequeue(Time::ZERO, &mut ()).unwrap().1.flow as usize] += 1;
    }
    assert!((25..=40).contains(&served[1]), "{served:?}");
}

#[test]
fn each_queue_obeys_codel() {
    // Both are above the target; each queue has its own CoDel state.
    let mut q = queue("fq-codel", QueueLimit::Unlimited);
    for n in 0..2000 {
        q.enqueue(Time::ZERO, of(u64::from(1 + n % 2), n, 1000), false, &mut ());
    }
    let mut drops = [0u32; 3];
    for ms in 1..1000 {
        let mut dropped = Vec::new();
        q.dequeue(Time::from_nanos(ms * MS), &mut Watch(&mut dropped));
        for flow in dropped {
            drops[flow as usize] += 1;
        }
    }
    assert!(drops[1] > 15 && drops[1].abs_diff(drops[2]) <= 1, "{drops:?}");
}
