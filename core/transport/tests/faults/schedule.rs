//! A schedule of faults from one seed.

use super::app::App;
use super::world::{EndIndex, FurtherPath, Link, World, config, entropy};
use narrows_base::{Duration, RandomKey, Rate, Spec, Time, random::RandomStream};
use narrows_congestion::PathHints;
use narrows_transport::Protocol;
use narrows_transport::connection::{Closed, ConnectionConfig, PathStatus};
use narrows_transport::endpoint::{Clients, ConnectRequest, Endpoint, ServerKey};
use narrows_transport::streams::FlowControlLimits;
use narrows_wire::{ApplicationProtocols, StaticKey, Suite};

/// A fault. Outages, changes of address and the MTU are those of one path.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// No packet passes, in one direction or both.
    Outage { to_server: bool, to_client: bool, seconds: f64 },
    /// The client's address changes: its port only, or all of it.
    Move { all: bool },
    /// A clock jumps forward.
    Leap { end: EndIndex, seconds: f64 },
    /// A process stops for a time, which its clock counts or not.
    Sleep { end: EndIndex, seconds: f64, counted: bool },
    /// The server's process ends. After a time, or never, another one with the same key starts.
    ServerDies { back_after: Option<f64> },
    /// The client's process ends for good.
    ClientDies,
    /// Largest UDP payload in bytes that the path carries.
    Mtu(usize),
}

/// When a fault begins, in s, and the path that it is on.
#[derive(Debug)]
struct TimedFault {
    at: f64,
    path: usize,
    fault: Fault,
}

/// All settings that follow from one seed.
#[derive(Debug)]
pub struct Schedule {
    seed: u64,
    protocols: [&'static str; 2],
    link: Link,
    /// Links of further paths.
    further: Vec<Link>,
    /// Status of all paths if there are several.
    statuses: Vec<PathStatus>,
    idle: Duration,
    keep_alive: Duration,
    patience: Duration,
    suite: Suite,
    hints: PathHints,
    segments: usize,
    /// Bytes of each request and its response.
    wanted: Vec<(u64, u64)>,
    /// Whether both ends update their keys as often as permitted.
    updates: bool,
    /// In order of time, in s.
    faults: Vec<TimedFault>,
}

/// Result of a schedule.
#[derive(Debug)]
pub struct Ending {
    pub is_whole: bool,
    pub attempts: usize,
    pub reasons: Vec<(&'static str, Closed)>,
    pub seconds: f64,
    pub held: usize,
    /// Packets of further paths.
    pub sent_further: u64,
    /// Key updates of both ends.
    pub updates: u64,
}

pub const PROTOCOLS: [&str; 9] = [
    "rrtp",
    "rrtp",
    "rrtp-lasthop",
    "tear-reliable",
    "rrtp+cubic",
    "rrtp+bbr",
    "rrtp+stpd",
    "rrtp+tfrc",
    "rrtp+westwood+",
];
/// Limit on the attempts of a client that loses its connection after the last fault.
const ATTEMPTS: usize = 3;
/// Limit in s on the duration after the last fault: attempts with their deadlines, idle timeouts, and a transfer over
/// the slowest and worst path. By TFRC's equation a path of 300 ms that loses a quarter of the packets (by all kinds of
/// damage) carries 11 kbit/s.
const BOUND: f64 = 2400.0;
/// Limit on the memory of an endpoint with one or two connections. It covers flow control and send buffers at both
/// ends, records of packets, and the slack of growing by doubling.
const HELD: usize = 6 << 20;

/// Share of long transfers among those over good links.
const LONG: f64 = 0.02;

/// Path 0 remains usable: without a path there is no transfer.
fn status(path: u64, random: &mut RandomStream) -> PathStatus {
    let draw = random.unit();
    if draw < 0.15 {
        PathStatus::Standby
    } else if draw < 0.2 && path > 0 {
        PathStatus::Unusable
    } else {
        PathStatus::Available
    }
}

fn fault(random: &mut RandomStream) -> Fault {
    let end = if random.chance(0.5) { EndIndex::CLIENT } else { EndIndex::SERVER };
    match random.bits() % 16 {
        0..=3 => {
            let way = random.bits() % 4;
            let seconds = random.pareto(1.0, 0.2).min(60.0);
            Fault::Outage { to_server: way != 0, to_client: way != 1, seconds }
        }
        4..=7 => Fault::Move { all: random.chance(0.5) },
        8 | 9 => Fault::Leap { end, seconds: random.pareto(0.4, 1.0).min(3600.0) },
        10 | 11 => {
            let seconds = random.pareto(0.4, 0.5).min(3600.0);
            Fault::Sleep { end, seconds, counted: random.chance(0.5) }
        }
        12 | 13 => {
            let is_back = random.chance(0.7);
            Fault::ServerDies { back_after: is_back.then(|| random.pareto(0.6, 0.1).min(100.0)) }
        }
        14 if random.chance(0.3) => Fault::ClientDies,
        _ => Fault::Mtu(1200 + (random.bits() % 300) as usize),
    }
}

/// A random link, good or bad in any respect.
pub fn link(random: &mut RandomStream) -> Link {
    let mut some = |share: f64, most: f64| {
        if random.chance(share) { random.unit() * most } else { 0.0 }
    };
    let loss = some(0.7, 0.15);
    let twice = some(0.5, 0.2);
    let late = some(0.5, 0.3);
    let changed = some(0.5, 0.05);
    let cut = some(0.5, 0.05);
    let marked = some(0.3, 0.3);
    Link {
        delay: Duration::from_micros(500 + random.bits() % 150_000),
        rate: Rate::from_bps(200_000 << (random.bits() % 8)),
        queue: 5_000 << (random.bits() % 6),
        loss,
        twice,
        late,
        changed,
        cut,
        marked,
        mtu: 1200 + (random.bits() % 300) as usize,
    }
}

impl Schedule {
    pub fn new(seed: u64) -> Schedule {
        let mut random = RandomKey::from_seed(seed).named("schedule").stream();
        let link = link(&mut random);
        let mut protocol = || PROTOCOLS[(random.bits() % PROTOCOLS.len() as u64) as usize];
        let protocols = [protocol(), protocol()];
        // Hints are about right, or wrong by a factor of up to a thousand. They are too low by a factor of at most
        // thirty: with a few hundred bit/s set by its own user, a transfer would exceed any limit.
        let told = |right: f64, random: &mut RandomStream| {
            let about = random.uniform(0.5, 2.0);
            let wrong = match random.bits() % 8 {
                0 => 1.0 + 999.0 * random.unit(),
                1 => 1.0 / (1.0 + 29.0 * random.unit()),
                _ => 1.0,
            };
            random.chance(0.2).then_some(right * about * wrong)
        };
        let hints = PathHints {
            rate: told(link.rate.as_bps() as f64, &mut random).map(Rate::from_bps_f64),
            rtt: told(2.0 * link.delay.as_secs_f64(), &mut random).map(Duration::from_secs_f64),
            loss: told(link.loss.min(0.4), &mut random).map(|loss| loss.min(0.99)),
        };
        let streams = 1 + random.bits() % 4;
        // From zero to about three times the flow-control limit.
        let mut bytes = || (random.pareto(0.25, 1.0) - 1.0).min(200_000.0) as u64;
        let mut wanted: Vec<_> = (0..streams).map(|_| (bytes(), bytes())).collect();
        // Few are long, over paths that carry as much within the limit, and these update keys.
        let is_good = link.rate >= Rate::from_bps(10_000_000)
            && link.loss + link.changed + link.cut < 0.02
            && link.queue >= 40_000;
        let is_long = is_good && random.chance(LONG);
        if is_long {
            wanted[0].1 = 20_000_000;
        }
        // Half of the schedules have two or three paths.
        let mut paths = RandomKey::from_seed(seed).named("paths").stream();
        let further = if paths.chance(0.5) { 1 + paths.bits() % 2 } else { 0 };
        let mut faults: Vec<_> = (0..random.bits() % 6)
            .map(|_| {
                // Equally often in the handshake and later.
                let most = if random.chance(0.5) { 0.6 } else { 15.0 };
                let path = (paths.bits() % (1 + further)) as usize;
                TimedFault { at: random.unit() * most, path, fault: fault(&mut random) }
            })
            .collect();
        faults.sort_by(|a, b| a.at.total_cmp(&b.at));
        Schedule {
            seed,
            protocols,
            link,
            further: (0..further).map(|_| self::link(&mut paths)).collect(),
            statuses: (0..further + 1)
                .filter(|_| further > 0)
                .map(|n| status(n, &mut paths))
                .collect(),
            idle: Duration::from_secs(5 + random.bits() % 40),
            keep_alive: Duration::from_secs(if random.chance(0.5) { 0 } else { 4 }),
            patience: Duration::from_secs(5 + random.bits() % 20),
            suite: if random.chance(0.5) { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 },
            hints,
            segments: 1 + (random.bits() % 40) as usize,
            wanted,
            updates: is_long || random.chance(0.2),
            faults,
        }
    }

    fn connection(&self, end: EndIndex) -> ConnectionConfig {
        let spec = Spec::named(self.protocols[end.0]);
        ConnectionConfig {
            hints: if end == EndIndex::CLIENT { self.hints } else { PathHints::default() },
            idle_timeout: self.idle,
            keep_alive: self.keep_alive,
            limits: FlowControlLimits { data: 1 << 18, stream: 1 << 16, both: 8, one_way: 8 },
            send_buffer: 1 << 16,
            max_buffered: 1 << 20,
            max_message: 1000,
            messages_held: 16,
            paths: 1 + self.further.len() as u8,
            applications: ApplicationProtocols::new(["faults"]).unwrap(),
            ..ConnectionConfig::new(Protocol::read(&spec, 1500).unwrap())
        }
    }
    fn wish(&self, world: &World) -> ConnectRequest {
        ConnectRequest {
            remote: world.ends[1].at,
            server_key: ServerKey::Is(*StaticKey::new([2; 32]).unwrap().public()),
            suite: self.suite,
            connection: self.connection(EndIndex::CLIENT),
            patience: self.patience,
            early_data: None,
        }
    }
    fn server(&self, life: u32) -> Endpoint {
        let config = config(2, Clients::Any, self.connection(EndIndex::SERVER));
        Endpoint::new(config, entropy(self.seed, &format!("server {life}")))
    }

    /// Runs the schedule.
    pub fn run(&self) -> Ending {
        let clients = config(1, Clients::None, self.connection(EndIndex::CLIENT));
        let servers = config(2, Clients::Any, self.connection(EndIndex::SERVER));
        let mut world = World::new(self.seed, self.link, clients, servers);
        world.segments = self.segments;
        for (place, link) in self.further.iter().enumerate() {
            let at = ([203, 0, 113, 1 + 64 * place as u8], 6000).into();
            world.further.push(FurtherPath { at, link: *link, outage: [Time::ZERO; 2] });
        }
        let mut app = App::new(self.seed, self.wanted.clone(), self.updates);
        app.paths = self.statuses.clone();
        let mut lives = 1;
        let mut is_back_at = None;
        let mut calm_attempts = 0;
        let mut faults = self.faults.iter().peekable();
        let mut calm = Time::ZERO;
        let wish = self.wish(&world);
        app.connect(&mut world, wish);
        loop {
            let fault_at = faults.peek().map_or(Time::NEVER, |f| Time::from_secs_f64(f.at));
            let back_at = is_back_at.unwrap_or(Time::NEVER);
            let end = calm + Duration::from_secs_f64(BOUND);
            let until = fault_at.min(back_at).min(end);
            let is_done = world.run(until, &mut |world| {
                app.look(world);
                let is_calm = faults.peek().is_none() && world.now >= calm && is_back_at.is_none();
                if !is_calm {
                    calm_attempts = 0;
                }
                self.go_on(world, &mut app, is_back_at.is_some(), &mut calm_attempts)
            });
            if is_done && fault_at.is_never() {
                break;
            }
            if is_done {
                // Faults after the end have no effect.
                faults.next();
                continue;
            }
            assert!(world.now < end, "no end:\n{}", app.state(&mut world));
            calm = calm.max(world.now);
            if back_at <= world.now {
                lives += 1;
                world.end(EndIndex::SERVER).port = Some(self.server(lives));
                is_back_at = None;
            } else if let Some(next) = faults.next() {
                calm = calm.max(self.apply(next, &mut world, &mut app, &mut is_back_at));
            }
        }
        self.end(&mut world, &mut app)
    }

    /// Applies a fault. Returns when it ends.
    fn apply(
        &self,
        fault: &TimedFault,
        world: &mut World,
        app: &mut App,
        back: &mut Option<Time>,
    ) -> Time {
        let now = world.now;
        let after = |seconds| now + Duration::from_secs_f64(seconds);
        let further = fault.path.checked_sub(1);
        match fault.fault {
            Fault::Outage { to_server, to_client, seconds } => {
                for (way, is_out) in [to_server, to_client].into_iter().enumerate() {
                    if is_out {
                        let outage = match further {
                            Some(place) => &mut world.further[place].outage,
                            None => &mut world.outage,
                        };
                        outage[way] = outage[way].max(after(seconds));
                    }
                }
                after(seconds)
            }
            Fault::Move { all } => {
                let at = match further {
                    Some(place) => &mut world.further[place].at,
                    None => &mut world.end(EndIndex::CLIENT).at,
                };
                let port = at.port() + 1;
                *at = match (all, at.ip()) {
                    (true, std::net::IpAddr::V4(ip)) => {
                        (std::net::Ipv4Addr::from_bits(ip.to_bits() + 1), port).into()
                    }
                    _ => (at.ip(), port).into(),
                };
                now
            }
            Fault::Leap { end, seconds } => {
                world.end(end).leap(Duration::from_secs_f64(seconds));
                now
            }
            Fault::Sleep { end, seconds, counted } => {
                world.end(end).sleep(now, Duration::from_secs_f64(seconds), counted);
                world.end(end).asleep
            }
            Fault::ServerDies { back_after } => {
                if world.end(EndIndex::SERVER).port.take().is_some() {
                    *back = back_after.map(after);
                    app.forget_server();
                }
                back.unwrap_or(now)
            }
            Fault::ClientDies => {
                world.end(EndIndex::CLIENT).port = None;
                now
            }
            Fault::Mtu(mtu) => {
                match further {
                    Some(place) => world.further[place].link.mtu = mtu,
                    None => world.link.mtu = mtu,
                }
                now
            }
        }
    }

    /// Starts a new attempt if a connection ended too soon. Returns whether all is over.
    fn go_on(
        &self,
        world: &mut World,
        app: &mut App,
        is_back_soon: bool,
        attempts: &mut usize,
    ) -> bool {
        let lives = [EndIndex::CLIENT, EndIndex::SERVER].map(|w| world.end(w).port.is_some());
        let last = app.attempts.last();
        let is_cut = last.is_none_or(|a| a.closed.is_some() && !a.is_whole);
        let may_come = lives[1] || is_back_soon;
        if lives[0] && is_cut && may_come && *attempts < ATTEMPTS {
            *attempts += 1;
            let wish = self.wish(world);
            app.connect(world, wish);
            return false;
        }
        let client_is_done = !lives[0] || app.attempts.last().is_some_and(|a| a.closed.is_some());
        client_is_done
            && app.served.is_empty()
            && world.ends.iter().all(|e| e.port.as_ref().is_none_or(Endpoint::is_empty))
    }

    /// Checks the guarantees, and returns the result.
    fn end(&self, world: &mut World, app: &mut App) -> Ending {
        let seconds = world.now.as_secs_f64();
        // After the end no packets are sent.
        let awake = world.ends.iter().map(|e| e.asleep).fold(world.now, Time::max);
        let until = awake + Duration::from_secs(60);
        world.run(until, &mut |_| false);
        let sent = world.sent;
        world.run(until + Duration::from_secs(60), &mut |_| false);
        assert_eq!(world.sent, sent, "packets after the end");
        assert!(world.held <= HELD, "{} bytes held", world.held);
        for end in &world.ends {
            let held = end.port.as_ref().map_or(0, Endpoint::memory);
            assert!(held < 4096, "{held} bytes held after the end");
        }
        let lives = world.end(EndIndex::CLIENT).port.is_some();
        let mut reasons: Vec<(&'static str, Closed)> =
            app.ends.iter().map(|why| ("server", why.clone())).collect();
        for attempt in &app.attempts {
            match &attempt.closed {
                Some(Closed::Locally) => assert!(attempt.is_whole, "closed without a reason"),
                Some(why) => reasons.push(("client", why.clone())),
                None => assert!(!lives, "an attempt without an end"),
            }
        }
        let both_live = world.ends.iter().all(|e| e.port.is_some());
        let is_whole = app.attempts.last().is_some_and(|a| a.is_whole);
        assert!(is_whole || !both_live, "in vain though both live: {}", app.state(world));
        let updates = app.updates;
        Ending {
            is_whole,
            attempts: app.attempts.len(),
            reasons,
            seconds,
            held: world.held,
            sent_further: world.sent_further,
            updates,
        }
    }
}
