//! The test cases of the appendix of draft-ietf-ccwg-bbr on noq's BBRv3: `narrows-stacks bbr-cases`.
//!
//! The same cases as of Narrows' own `bbr3` (`core/congestion/src/bbr3/cases.rs`), over links of `narrows-testnet`. noq
//! shows its controller's variables only by `Debug`.

use crate::noq::nodes;
use crate::quic::{RECEIVER, SENDER};
use narrows_testnet::noq::{Application, QuicNode, Transfer};
use narrows_testnet::{Datagram, LinkId, Network, Node, NodeId, run};
use noq_proto::{Connection, PathId};
use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::time::{Duration, Instant};

/// Bytes per second of 10 Mbit/s that a controller counts: datagrams of 1452 bytes without headers of 28.
const CAPACITY: f64 = 10e6 / 8.0 * 1452.0 / 1480.0;
const STEP: Duration = Duration::from_millis(1);
/// Longer than the RTT.
const ACK_PERIOD: Duration = Duration::from_millis(50);
/// Bytes that wait in the sender: more would be sent after the application has become slower.
const BACKLOG: usize = 16 << 10;

/// Sends datagrams of its own, without retransmissions, at a rate or without end.
#[derive(Debug, Default)]
struct Source {
    /// Bytes per second; `None` fills the connection.
    rate: Option<f64>,
    earned: f64,
    at: Option<Instant>,
    space: usize,
    is_connected: bool,
}

impl Application for Source {
    fn turn(&mut self, now: Instant, connection: &mut Connection) {
        while let Some(event) = connection.poll() {
            self.is_connected |= matches!(event, noq_proto::Event::Connected);
        }
        let passed = now.saturating_duration_since(*self.at.get_or_insert(now));
        self.at = Some(now);
        self.earned += self.rate.unwrap_or_default() * passed.as_secs_f64();
        let mut datagrams = connection.datagrams();
        let Some(size) = datagrams.max_size().filter(|_| self.is_connected) else { return };
        let space = datagrams.send_buffer_space();
        self.space = self.space.max(space);
        let mut waiting = self.space - space;
        while waiting + size <= BACKLOG && (self.rate.is_none() || self.earned >= size as f64) {
            if datagrams.send(vec![0; size].into(), false).is_err() {
                return;
            }
            waiting += size;
            self.earned -= if self.rate.is_some() { size as f64 } else { 0.0 };
        }
    }

    fn done(&self) -> bool {
        false
    }
}

/// The receiver behind a link that delays datagrams and aggregates acknowledgements.
struct Far {
    node: QuicNode<Transfer>,
    start: Instant,
    /// Datagrams leave at the end of each such period; zero sends them immediately.
    ack_period: Duration,
    waiting: VecDeque<Datagram>,
    next_boundary: Option<Instant>,
    /// Number of datagrams that arrive later.
    late: usize,
    late_by: Duration,
    held: VecDeque<(Instant, Datagram)>,
}

impl Far {
    /// The end of the period that this time is in.
    fn boundary(&self, now: Instant) -> Instant {
        let period = u64::try_from(self.ack_period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let passed = now.saturating_duration_since(self.start).as_nanos();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.start + Duration::from_nanos(passed.next_multiple_of(period))
    }
}

impl Node for Far {
    fn handle(&mut self, now: Instant, datagram: Datagram) {
        if self.late == 0 {
            return self.node.handle(now, datagram);
        }
        self.late -= 1;
        self.held.push_back((now + self.late_by, datagram));
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        while self.held.front().is_some_and(|(at, _)| *at <= now) {
            let (_, datagram) = self.held.pop_front()?;
            self.node.handle(now, datagram);
        }
        while let Some(datagram) = self.node.poll_transmit(now) {
            self.waiting.push_back(datagram);
        }
        let boundary = self.boundary(now);
        self.next_boundary = Some(boundary);
        if boundary == now { self.waiting.pop_front() } else { None }
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        let held = self.held.front().map(|(at, _)| *at);
        let boundary = self.next_boundary.filter(|_| !self.waiting.is_empty());
        self.node.next_timeout().into_iter().chain(held).chain(boundary).min()
    }

    fn done(&self) -> bool {
        false
    }
}

/// The controller's variables as `Debug` writes them, up to its list of packets.
struct Variables(String);

impl Write for Variables {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if text == "packets" { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Variables {
    fn text(&self, name: &str) -> &str {
        let key = format!(" {name}: ");
        let rest = self.0.split_once(&key).map_or("", |(_, rest)| rest);
        rest.split(", ").next().unwrap_or_default()
    }

    /// Bytes, bytes per second, seconds or a plain number; infinite if it is not set.
    fn number(&self, name: &str) -> f64 {
        let text = self.text(name);
        if text == u64::MAX.to_string() {
            return f64::INFINITY;
        }
        let units = [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0), ("", 1.0)];
        let parsed = units.iter().find_map(|(unit, scale)| {
            let number: Option<f64> = text.strip_suffix(unit).and_then(|n| n.parse().ok());
            number.map(|number| number * scale)
        });
        parsed.unwrap_or(f64::NAN)
    }

    fn is(&self, name: &str) -> bool {
        self.text(name) == "true"
    }
}

type Outcome = Result<(), String>;

/// A connection over a link between two hosts.
struct Path {
    network: Network,
    link: LinkId,
    hosts: [NodeId; 2],
    sender: QuicNode<Source>,
    far: Far,
    at: Duration,
}

impl Path {
    fn new(link: &str) -> Path {
        let mut network = Network::new(1);
        let [sender, receiver] = [SENDER, RECEIVER].map(|address| {
            network.add_host(&[address.ip()]).unwrap_or_else(|e| panic!("{address}: {e}"))
        });
        let hosts = [sender, receiver];
        let link =
            network.add_link(sender, receiver, link).unwrap_or_else(|e| panic!("{link}: {e}"));
        let start = network.start();
        let (sender, node) = nodes("noq-bbr3", 1, start, Source::default());
        let far = Far {
            node,
            start,
            ack_period: Duration::ZERO,
            waiting: VecDeque::new(),
            next_boundary: None,
            late: 0,
            late_by: Duration::ZERO,
            held: VecDeque::new(),
        };
        Path { network, link, hosts, sender, far, at: Duration::ZERO }
    }

    fn usual() -> Path {
        Path::new("10Mbit/s,20ms")
    }

    fn in_state(state: &str) -> Result<Path, String> {
        let mut path = Path::usual();
        path.reach(state).map(|()| path)
    }

    /// With `inflight_longterm`, by the losses of a probe.
    fn bounded() -> Result<Path, String> {
        let mut path = Path::new("10Mbit/s,20ms,queue=10p");
        path.reach(UP)?;
        path.reach(CRUISE)?;
        let bound = path.variables().number("inflight_longterm");
        ensure(bound.is_finite(), "inflight_longterm is not set")?;
        Ok(path)
    }

    fn step(&mut self) {
        self.at += STEP;
        let [a, b] = self.hosts;
        let mut programs: [(NodeId, &mut dyn Node); 2] =
            [(a, &mut self.sender), (b, &mut self.far)];
        run(&mut self.network, &mut programs, self.at);
    }

    fn run(&mut self, millis: u64) {
        (0..millis).for_each(|_| self.step());
    }

    fn change(&mut self, text: &str) {
        let changed = self.network.change_at(self.at, self.link, text);
        changed.unwrap_or_else(|e| panic!("{text}: {e}"));
    }

    /// The application makes this share of the capacity of 10 Mbit/s.
    fn limit_application(&mut self, share: f64) {
        self.sender.application.rate = Some(share * CAPACITY);
        self.sender.application.earned = 0.0;
    }

    fn variables(&mut self) -> Variables {
        let mut variables = Variables(String::new());
        let controller = self.sender.connection().and_then(|c| c.congestion_state(PathId::ZERO));
        // Ends with the error at the list of packets.
        let _ = write!(variables, "{controller:?}");
        variables
    }

    fn state(&mut self) -> String {
        self.variables().text("state").into()
    }

    fn reach(&mut self, state: &str) -> Outcome {
        let limit = self.at + Duration::from_secs(30);
        while self.state() != state {
            ensure(self.at < limit, &format!("{state} is not reached"))?;
            self.step();
        }
        Ok(())
    }

    /// Runs until the state changes; returns the new one.
    fn leave(&mut self) -> Result<String, String> {
        let left = self.state();
        let limit = self.at + Duration::from_secs(30);
        while self.state() == left {
            ensure(self.at < limit, &format!("{left} does not end"))?;
            self.step();
        }
        Ok(self.state())
    }

    /// Runs until the state changes; the new one must be this.
    fn leave_for(&mut self, expected: &str) -> Outcome {
        let left = self.state();
        let state = self.leave()?;
        ensure(state == expected, &format!("{left} is followed by {state}"))
    }

    /// The share of 10 Mbit/s that the link carries during this time.
    fn utilisation(&mut self, millis: u64) -> f64 {
        let before = self.carried();
        self.run(millis);
        (self.carried() - before) * 8.0 / (1e7 * millis as f64 * 1e-3)
    }

    fn counts(&self) -> narrows_testnet::LinkCounts {
        self.network.link_counts(self.link).map_or_else(Default::default, |[forward, _]| forward)
    }

    fn carried(&self) -> f64 {
        self.counts().delivered_bytes as f64
    }
}

const UP: &str = "ProbeBw(Up)";
const DOWN: &str = "ProbeBw(Down)";
const CRUISE: &str = "ProbeBw(Cruise)";
const REFILL: &str = "ProbeBw(Refill)";

fn ensure(condition: bool, otherwise: &str) -> Outcome {
    if condition { Ok(()) } else { Err(otherwise.into()) }
}

fn near(name: &str, value: f64, expected: f64) -> Outcome {
    let is_near = (value / expected - 1.0).abs() <= 0.02;
    ensure(is_near, &format!("{name} is {:.2} of the expected value", value / expected))
}

/// A case of the appendix: its subject, and the test.
struct Case {
    subject: &'static str,
    test: fn() -> Outcome,
}

const fn case(subject: &'static str, test: fn() -> Outcome) -> Case {
    Case { subject, test }
}

/// The cases in the draft's order.
static CASES: [Case; 22] = [
    case("Startup ends at a plateau", || {
        let mut path = Path::usual();
        path.leave_for("Drain")?;
        let v = path.variables();
        ensure(v.is("full_bw_now") && v.is("full_bw_reached"), "the pipe is not full")?;
        ensure(v.number("full_bw_count") == 3.0, "full_bw_count is not 3")?;
        near("max_bw", v.number("max_bw"), CAPACITY)
    }),
    case("Startup ends by losses, application-limited", || {
        let mut path = Path::usual();
        path.limit_application(0.6);
        path.run(2000);
        ensure(path.state() == "Startup", "Startup ended before")?;
        path.change("loss=25%");
        // With few bytes in flight Drain and Down end at once.
        let ended = path.leave()?;
        ensure(ended == "Drain" || ended == CRUISE, &format!("followed by {ended}"))?;
        ensure(path.variables().is("full_bw_reached"), "full_bw_reached is not set")
    }),
    case("Drain ends by bytes in flight", || {
        let mut path = Path::in_state("Drain")?;
        ensure(path.variables().number("pacing_gain") == 0.5, "the gain is not 0.5")?;
        while path.state() == "Drain" {
            path.step();
        }
        let v = path.variables();
        let bdp = v.number("max_bw") * v.number("min_rtt");
        let excess = v.number("inflight") - bdp;
        ensure(v.text("state").starts_with("ProbeBw"), "not ProbeBW")?;
        ensure(excess < 4.0 * 1452.0, &format!("{excess:.0} bytes more in flight"))
    }),
    case("Drain ends after 3 rounds", || {
        let mut path = Path::in_state("Drain")?;
        path.change("rate=5Mbit/s");
        let began = path.variables().number("round_count");
        path.leave_for(DOWN)?;
        let rounds = path.variables().number("round_count") - began;
        ensure(rounds == 4.0, &format!("at the start of round {rounds}"))
    }),
    case("Up ends at a plateau", || {
        let mut path = Path::in_state(UP)?;
        let began = path.variables().number("round_count");
        path.leave_for(DOWN)?;
        let v = path.variables();
        let rounds = v.number("round_count") - began;
        ensure(v.is("full_bw_now"), "full_bw_now is not set")?;
        ensure((3.0..=4.0).contains(&rounds), &format!("{rounds} rounds"))
    }),
    case("Up ends by losses, application-limited", || {
        let mut path = Path::in_state(UP)?;
        path.limit_application(0.8);
        path.run(100);
        path.change("loss=10%");
        path.leave_for(DOWN)?;
        ensure(!path.variables().is("full_bw_now"), "by a plateau")
    }),
    case("Startup and Up last while application-limited", || {
        for state in ["Startup", UP] {
            let mut path = Path::in_state(state)?;
            path.limit_application(0.8);
            for _ in 0..1500 {
                path.step();
                ensure(path.state() == state, &format!("{state} ends"))?;
            }
        }
        Ok(())
    }),
    case("Down ends by bytes in flight", || {
        for mut path in [Path::in_state(CRUISE)?, Path::bounded()?] {
            path.reach(UP)?;
            path.leave_for(DOWN)?;
            ensure(path.variables().number("pacing_gain") == 0.9, "the gain is not 0.9")?;
            path.leave_for(CRUISE)?;
            let v = path.variables();
            let bdp = v.number("max_bw") * v.number("min_rtt");
            let limit = bdp.min(0.85 * v.number("inflight_longterm"));
            let excess = v.number("inflight") - limit;
            ensure(excess < 4.0 * 1452.0, &format!("{excess:.0} bytes more in flight"))?;
        }
        Ok(())
    }),
    case("Down ends after its time", || {
        let mut path = Path::new("10Mbit/s,50ms");
        path.reach(REFILL)?;
        path.change("delay=49ms");
        path.reach(DOWN)?;
        path.change("rate=9Mbit/s");
        let began = path.at;
        let ended = path.leave()?;
        let seconds = (path.at - began).as_secs_f64();
        ensure(ended == REFILL, &format!("followed by {ended}"))?;
        ensure((2.0..=3.1).contains(&seconds), &format!("after {seconds:.1} s"))
    }),
    case("ProbeRTT after 5 s", || {
        let mut path = Path::in_state(CRUISE)?;
        path.reach("ProbeRtt")?;
        let gain = path.variables().number("cwnd_gain");
        ensure(gain == 0.5, "the gain is not 0.5")?;
        let began = path.at;
        let ended = path.leave()?;
        let millis = (path.at - began).as_millis();
        ensure(ended.starts_with("ProbeBw"), "not followed by ProbeBW")?;
        ensure((200..500).contains(&millis), &format!("{millis} ms"))?;
        let used = path.utilisation(1000);
        ensure(used > 0.9, &format!("{used:.2} used after it"))
    }),
    case("no ProbeRTT after idle time", || {
        let mut path = Path::in_state(CRUISE)?;
        path.limit_application(0.0);
        path.run(6000);
        path.sender.application.rate = None;
        for _ in 0..1000 {
            path.step();
            ensure(path.state() != "ProbeRtt", "ProbeRTT")?;
        }
        Ok(())
    }),
    case("Startup with aggregated ACKs", || {
        let mut path = Path::usual();
        path.far.ack_period = ACK_PERIOD;
        path.leave_for("Drain")?;
        let v = path.variables();
        let bdp = v.number("max_bw") * v.number("min_rtt");
        near("max_bw", v.number("max_bw"), CAPACITY)?;
        ensure(v.number("cwnd") > 2.0 * bdp, "cwnd is below 2 BDP")
    }),
    case("Cruise with aggregated ACKs", || {
        let mut path = Path::in_state(CRUISE)?;
        path.far.ack_period = ACK_PERIOD;
        path.run(500);
        let used = path.utilisation(1000);
        let v = path.variables();
        ensure(used > 0.97, &format!("{used:.2} used"))?;
        near("cwnd", v.number("cwnd"), 2.0 * v.number("bdp") + v.number("extra_acked"))
    }),
    case("BDP below a packet", || {
        let mut path = Path::new("64kbit/s,0.5ms");
        path.reach(CRUISE)?;
        let v = path.variables();
        ensure(v.number("cwnd") >= 4.0 * v.number("smss"), "cwnd is below 4 packets")?;
        let carried = path.carried();
        path.run(20_000);
        let used = (path.carried() - carried) * 8.0 / (64e3 * 20.0);
        ensure(used > 0.97, &format!("{used:.2} used"))
    }),
    case("tenfold bandwidth", || {
        for mut path in [Path::in_state(CRUISE)?, Path::bounded()?] {
            path.change("rate=100Mbit/s");
            path.reach(UP)?;
            let began = path.variables().number("round_count");
            while path.variables().number("max_bw") < 9.8 * CAPACITY {
                let v = path.variables();
                let share = v.number("max_bw") / CAPACITY;
                let rounds = v.number("round_count") - began;
                ensure(rounds <= 22.0, &format!("{share:.1} times the bandwidth in 22 rounds"))?;
                path.step();
            }
        }
        Ok(())
    }),
    case("a tenth of the bandwidth", || {
        let mut path = Path::new("100Mbit/s,20ms,queue=200p");
        path.reach(CRUISE)?;
        path.change("rate=10Mbit/s");
        path.run(1000);
        let share = path.variables().number("bw_shortterm") / CAPACITY;
        ensure(share <= 5.0, &format!("bw_shortterm is {share:.1} times the bandwidth after 1 s"))?;
        for _ in 0..2 {
            path.reach(UP)?;
            path.reach(DOWN)?;
        }
        path.reach(CRUISE)?;
        near("max_bw", path.variables().number("max_bw"), CAPACITY)
    }),
    case("policer", || {
        let mut path = Path::new("100Mbit/s,20ms,policer=10Mbit/s/50kB");
        path.reach(CRUISE)?;
        path.run(1000);
        let before = path.counts();
        let used = path.utilisation(30_000);
        let counts = path.counts();
        let dropped = (counts.dropped - before.dropped) as f64;
        let lost = dropped / (counts.offered - before.offered) as f64;
        ensure(used > 0.95 && lost < 0.03, &format!("{used:.2} used, {lost:.3} lost"))
    }),
    case("spurious fast recovery", || spurious(8, Duration::from_millis(15))),
    case("spurious timeout", || spurious(200, Duration::from_millis(1200))),
    case("ProbeRTT in Startup", || {
        let mut path = Path::usual();
        path.limit_application(0.5);
        path.leave_for("ProbeRtt")?;
        path.leave_for("Startup")?;
        path.sender.application.rate = None;
        path.leave_for("Drain")?;
        near("max_bw", path.variables().number("max_bw"), CAPACITY)
    }),
    case("losses in Up with a bound", || {
        let mut path = Path::bounded()?;
        path.reach(UP)?;
        path.run(10);
        let before = path.variables();
        path.change("loss=10%");
        path.leave_for(DOWN)?;
        let after = path.variables().number("inflight_longterm");
        let least = 0.7 * before.number("bdp").min(before.number("cwnd"));
        let before = before.number("inflight_longterm");
        let share = after / before;
        ensure(share < 1.0 && after >= least, &format!("{share:.2} of the bound"))
    }),
    case("little data in Refill", || {
        let mut path = Path::in_state(REFILL)?;
        let before = path.variables().number("max_bw");
        path.limit_application(0.1);
        path.leave_for(UP)?;
        let after = path.variables().number("max_bw");
        ensure(after == before, &format!("max_bw is {:.2} of its value", after / before))?;
        path.sender.application.rate = None;
        path.leave_for(DOWN)?;
        near("max_bw", path.variables().number("max_bw"), CAPACITY)
    }),
];

/// Long enough to delay a window, and ends before the timer's probes.
const LATE_FOR: Duration = Duration::from_millis(80);

/// Packets arrive so much later that a recovery begins.
fn spurious(packets: usize, late_by: Duration) -> Outcome {
    let mut path = Path::in_state(UP)?;
    let began = path.at;
    path.far.late = packets;
    path.far.late_by = late_by;
    let mut is_reduced = false;
    for _ in 0..1500 {
        path.step();
        let state = path.state();
        if is_reduced && state == REFILL {
            path.far.late = 0;
            let v = path.variables();
            let is_restored = v.number("inflight_longterm").is_infinite();
            ensure(is_restored, "inflight_longterm is not restored")?;
            return path.leave_for(UP);
        }
        is_reduced |= state == DOWN;
        if path.at > began + LATE_FOR {
            path.far.late = 0;
        }
    }
    ensure(is_reduced, "no recovery")?;
    Err("Up does not begin again".into())
}

/// Runs the case with this number, from 1 on. [`noq::entries`](crate::noq::entries) must have been called.
///
/// # Errors
/// What differs from the draft, or an unknown number.
pub fn check(number: usize) -> Result<(), String> {
    let case = number.checked_sub(1).and_then(|index| CASES.get(index));
    (case.ok_or_else(|| format!("there is no case {number}"))?.test)()
}

/// Runs all cases, and prints a row for each.
pub fn print() {
    println!("| | case | noq-bbr3 |");
    println!("|---|---|---|");
    for (number, case) in (1..).zip(&CASES) {
        let outcome = check(number).err().unwrap_or_else(|| "passes".into());
        println!("| {number} | {} | {outcome} |", case.subject);
    }
}
