//! Timers for handshake packets, which are repeated until a reply arrives.

use narrows_base::{Duration, Time};

/// Initial timeout of a packet without a reply. Later timeouts double each time. Each has two repetitions, half of it
/// apart (RFC 9002 section 6.2.4 permits two). The second of RFC 6298 is meant for data. On bad links a handshake would
/// wait that second for each lost packet, and an early repetition costs only 64 bytes.
pub const FIRST_REPEAT: Duration = Duration::from_millis(300);
/// Initial timeout after a restart: several packets had no reply, so the path is bad or slow.
pub const SECOND_REPEAT: Duration = Duration::from_millis(600);
/// Shortest timeout with a known RTT, because the peer's computations take time, too.
const SOON: Duration = Duration::from_millis(100);
/// The longest timeout. On a path of many seconds few copies leave before the first reply can arrive.
pub const LAST_REPEAT: Duration = Duration::from_secs(5);
/// Packets that leave within the first 0.6 s. If more were needed, several were lost, rather than all of them slow.
const SLOW: u32 = 3;

/// A packet that is sent until its reply arrives.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// When it leaves next.
    pub due: Time,
    wait: Duration,
    first_sent: Time,
    last_sent: Time,
    pub sent: u32,
}

impl Repeat {
    /// A packet that leaves now, and again after `wait` and later.
    pub fn new(now: Time, wait: Duration) -> Repeat {
        let wait = wait.min(LAST_REPEAT);
        Repeat { due: now, wait, first_sent: now, last_sent: now, sent: 0 }
    }
    /// The next packet, to leave now after the reply to this one. Its timeout follows the time since this packet first
    /// left, an upper bound of the RTT. If several packets must have been lost, it follows the time since the last one
    /// left, so that losses do not cause timeouts of seconds.
    pub fn next(&self, now: Time) -> Repeat {
        let (since, least) =
            if self.sent > SLOW { (self.last_sent, FIRST_REPEAT) } else { (self.first_sent, SOON) };
        Repeat::new(now, now.since(since).mul_f64(1.5).max(least))
    }
    /// Records that it was sent.
    pub fn on_sent(&mut self, now: Time) {
        if self.sent == 0 {
            self.first_sent = now;
        }
        self.last_sent = now;
        self.sent = self.sent.saturating_add(1);
        self.due = now + self.wait;
        if self.sent > 1 && self.sent % 2 == 1 {
            self.wait = self.wait.saturating_mul(2).min(LAST_REPEAT);
        }
    }
    /// Whether it was sent at all.
    pub fn is_sent(&self) -> bool {
        self.sent > 0
    }
    /// Time since it first left.
    pub fn waited(&self, now: Time) -> Duration {
        now.since(self.first_sent)
    }
    /// RTT from its reply. Absent after a repetition, because the reply is ambiguous (Karn's rule, RFC 6298 section 3).
    pub fn sample(&self, now: Time) -> Option<Duration> {
        (self.sent == 1).then(|| now.since(self.first_sent))
    }
}

/// FINISH, sent until a packet of the server opens. It is repeated by time, as any handshake packet, and also after the
/// second data packet, the fourth, the eighth and so on. A server without FINISH drops all data, and the loss of a
/// whole first flight would look like a path without capacity.
#[derive(Clone, Copy, Debug)]
pub struct FinishRepeat {
    repeat: Repeat,
    /// Data packets sent so far. FINISH is repeated after `next` of them.
    packets: u64,
    next: u64,
}

impl FinishRepeat {
    /// FINISH that leaves first as `repeat` says.
    pub fn new(repeat: Repeat) -> FinishRepeat {
        FinishRepeat { repeat, packets: 0, next: 2 }
    }
    /// When it leaves next, if no data leave before.
    pub fn due(&self) -> Time {
        if self.packets >= self.next { Time::ZERO } else { self.repeat.due }
    }
    /// Whether it was sent at all.
    pub fn is_sent(&self) -> bool {
        self.repeat.is_sent()
    }
    /// Records that it was sent.
    pub fn on_sent(&mut self, now: Time) {
        if self.packets < self.next {
            self.repeat.on_sent(now);
        }
        while self.packets >= self.next {
            self.next *= 2;
        }
    }
    /// Counts sent data packets.
    pub fn on_data(&mut self, packets: u64) {
        self.packets += packets;
    }
    /// Data packets that may leave before its next repetition.
    pub fn before_next(&self) -> u64 {
        self.next.saturating_sub(self.packets).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Send times in ms of a packet without a reply.
    fn times(mut repeat: Repeat, packets: usize) -> Vec<u64> {
        let mut left = Vec::new();
        for _ in 0..packets {
            let due = repeat.due;
            left.push(due.since(Time::ZERO).as_nanos() / 1_000_000);
            repeat.on_sent(due);
        }
        left
    }

    /// On a path that loses a third of the packets, one of a hundred handshakes loses four packets. It must not take 4
    /// s.
    #[test]
    fn two_repeats_leave_in_each_timeout_and_timeouts_double() {
        let lost = times(Repeat::new(at(0), FIRST_REPEAT), 12);
        assert_eq!(lost, [0, 300, 600, 900, 1500, 2100, 3300, 4500, 6900, 9300, 14_100, 18_900]);
        // On a path with a long RTT no packet is repeated before a reply can arrive.
        let wait = Duration::from_secs(60);
        assert_eq!(times(Repeat::new(at(0), wait), 4), [0, 5000, 10_000, 15_000]);
    }

    #[test]
    fn next_repeat_waits_for_the_path_not_earlier_losses() {
        let answered = |packets: usize, now: u64| {
            let mut repeat = Repeat::new(at(0), FIRST_REPEAT);
            for _ in 0..packets {
                repeat.on_sent(repeat.due);
            }
            let mut next = repeat.next(at(now));
            next.on_sent(next.due);
            next.due.since(at(now)).as_nanos() / 1_000_000
        };
        // A path of 20 ms; one of 600 ms with needless repetitions; one of 20 ms that lost six packets.
        assert_eq!(answered(1, 20), 100);
        assert_eq!(answered(3, 620), 930);
        assert_eq!(answered(7, 3120), 300);
    }

    /// On a path with losses a single FINISH before a long first flight decides on all its packets.
    #[test]
    fn finish_is_repeated_with_data_at_doubling_intervals() {
        let mut finish = FinishRepeat::new(Repeat::new(at(0), SOON));
        finish.on_sent(at(0));
        let mut copies = Vec::new();
        for packet in 1..=84 {
            assert!(finish.due() > at(1) && finish.before_next() >= 1);
            finish.on_data(1);
            if finish.due() <= at(1) {
                finish.on_sent(at(1));
                copies.push(packet);
            }
        }
        assert_eq!(copies, [2, 4, 8, 16, 32, 64]);
        // A repetition with data does not delay the next one by time.
        assert_eq!(finish.due(), at(100));
        // After a packet train that left at once there is one copy.
        finish.on_data(1000);
        finish.on_sent(at(2));
        assert_eq!((finish.due(), finish.before_next()), (at(100), 2048 - 1084));
    }
}
