//! The kernel's TCP with Narrows' controllers, over emulated links between namespaces that the tests create. They need
//! root; without it each test prints that and is skipped.

use crate::bpf::BpfPrograms;
use crate::bpf::object::foreign;
use crate::bpf::system::SharedMemory;
use crate::record::{SLOT_BYTES, slot};
use crate::status::{ControlStatus, DecidedBy};
use crate::{Agent, Choice, Error};
use narrows_base::{Duration, RandomKey, Rate};
use narrows_emulator::{EmulatedLink, LinkOptions, Namespace};
use narrows_link::{LinkConfig, LossSpec};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Round-trip time of the link.
const RTT_MS: u64 = 40;

/// A link of 20 Mbit/s between two namespaces. The receiver at its end reports arrivals with their times.
pub(crate) struct Net {
    a: Namespace,
    _b: Namespace,
    _link: EmulatedLink,
    to: SocketAddr,
    listener: TcpListener,
}

impl Net {
    fn new() -> Result<Net, narrows_emulator::Error> {
        Net::losing(0.0)
    }
    /// A link that loses this share of the data.
    pub(crate) fn losing(loss: f64) -> Result<Net, narrows_emulator::Error> {
        let a = Namespace::create("a")?;
        let b = Namespace::create("b")?;
        let way = || {
            let half = Duration::from_millis(RTT_MS / 2);
            LinkConfig::plain(Rate::from_bps(20_000_000), half)
        };
        let mut there = way();
        if loss > 0.0 {
            there.loss = LossSpec::parse_all(&loss.to_string()).unwrap();
        }
        let link = EmulatedLink::between(&a, &b, LinkOptions::new(there, way()))?;
        let to = SocketAddr::new(link.b().addresses[0], 0);
        let listener = b.enter(|| TcpListener::bind(to).unwrap())?;
        let to = listener.local_addr().unwrap();
        Ok(Net { a, _b: b, _link: link, to, listener })
    }
    /// A connection under that congestion control, and its other end.
    pub(crate) fn connect(&self, name: &str) -> (TcpStream, TcpStream) {
        let near = self.a.enter(|| TcpStream::connect(self.to).unwrap()).unwrap();
        set_tcp_congestion(&near, name).unwrap();
        (near, self.listener.accept().unwrap().0)
    }
}

/// Requirements of a test; `None` after a message if they are not met.
pub(crate) fn prepared() -> Option<(BpfPrograms, Net)> {
    let programs = match BpfPrograms::prepare() {
        Ok(programs) => programs,
        Err(e @ (Error::NotPermitted | Error::NoBtf | Error::NoStructOps)) => {
            eprintln!("skipped: {e}");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    match Net::new() {
        Ok(net) => Some((programs, net)),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// Sends in a thread until the connection is closed.
pub(crate) fn send_forever(mut near: TcpStream) {
    std::thread::spawn(move || while near.write_all(&[7; 16384]).is_ok() {});
}

/// Reads `bytes` bytes and returns the longest time without an arrival.
pub(crate) fn read(far: &mut TcpStream, bytes: usize) -> std::time::Duration {
    let mut left = bytes;
    let mut last = Instant::now();
    let mut longest = std::time::Duration::ZERO;
    let mut buffer = [0; 65536];
    while left > 0 {
        let n = far.read(&mut buffer).unwrap();
        assert!(n > 0, "{left} bytes before the end");
        longest = longest.max(last.elapsed());
        last = Instant::now();
        left = left.saturating_sub(n);
    }
    longest
}

/// Whether this holds at some time while the transfer goes on.
fn sometime(far: &mut TcpStream, is_so: impl Fn() -> bool) -> bool {
    (0..20).any(|_| {
        let is_so = is_so();
        if !is_so {
            read(far, 1_000_000);
        }
        is_so
    })
}

fn known(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.unwrap_or_default().split_whitespace().any(|n| n == name)
}

#[test]
fn a_congestion_control_comes_and_goes() {
    let Some((programs, _)) = prepared() else { return };
    let loaded = programs.register("nw_comes_goes").unwrap();
    assert!(known("nw_comes_goes"));
    let again = BpfPrograms::prepare().unwrap().register("nw_comes_goes").unwrap_err();
    assert!(matches!(again, Error::NameInUse(_)), "{again}");
    drop(Agent::start(loaded, Choice::new("reno").unwrap()).unwrap());
    assert!(!known("nw_comes_goes"), "dropping it takes it from the list");
}

/// The controller's window, not the kernel's, is in force: `vegas` keeps the link full without filling its queue.
#[test]
fn the_controller_decides() {
    let Some((programs, net)) = prepared() else { return };
    // Linux's own begins with hundreds of packets in the queue and gives back one per round trip.
    let choice = Choice::new("vegas(like=ns2)").unwrap();
    let agent = Agent::start(programs.register("nw_decides").unwrap(), choice);
    let agent = agent.unwrap();
    let (near, mut far) = net.connect("nw_decides");
    send_forever(near);
    read(&mut far, 6_000_000);
    let s = agent.status();
    assert_eq!(s.connections.len(), 1, "{s:?}");
    assert!(s.statistics.records() > 500, "{s:?}");
    // A path of 67 packets and a few of Vegas' own; Reno has filled the queue by then. On a busy machine the agent may
    // just be late.
    let is_full_without_queue = sometime(&mut far, || {
        let c = agent.status().connections[0];
        c.cwnd > 20 && c.cwnd < 120
    });
    assert!(is_full_without_queue, "{:?}", agent.status());
}

/// A dropped agent is an unloaded congestion control: its connections continue.
#[test]
fn unloading_leaves_connections_living() {
    let Some((programs, net)) = prepared() else { return };
    let agent = Agent::start(programs.register("nw_unload").unwrap(), Choice::new("rrtp").unwrap());
    let agent = agent.unwrap();
    let (near, mut far) = net.connect("nw_unload");
    send_forever(near);
    read(&mut far, 1_000_000);
    drop(agent);
    assert!(!known("nw_unload"));
    read(&mut far, 3_000_000);
}

#[test]
fn connection_without_a_slot_continues_as_reno() {
    let Some((programs, net)) = prepared() else { return };
    let loaded = programs.register_with("nw_slots", 2).unwrap();
    let agent = Agent::start(loaded, Choice::new("rrtp").unwrap()).unwrap();
    let mut ends: Vec<(TcpStream, TcpStream)> = (0..5).map(|_| net.connect("nw_slots")).collect();
    for (near, far) in &mut ends {
        near.write_all(&[3; 100_000]).unwrap();
        read(far, 100_000);
    }
    let s = agent.status();
    assert_eq!((s.seen, s.without_slot, s.connections.len()), (2, 3, 2));
    // A slot that has become free serves the next.
    ends.truncate(0);
    let waited = Instant::now();
    while !agent.status().connections.is_empty() && waited.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (mut near, mut far) = net.connect("nw_slots");
    near.write_all(&[3; 1000]).unwrap();
    read(&mut far, 1000);
    assert_eq!(agent.status().seen, 3);
}

/// With any content of the slots, the kernel continues. Without limits, so does the transfer.
#[test]
fn arbitrary_slot_values_do_not_stop_the_kernel() {
    let Some((programs, net)) = prepared() else { return };
    let loaded = programs.register("nw_hostile").unwrap();
    let (near, mut far) = net.connect("nw_hostile");
    send_forever(near);
    read(&mut far, 10_000);
    let key = RandomKey::from_seed(3);
    let mut draws = 0;
    let odd = [0, 1, 2, 1447, 1 << 20, 1 << 31, u64::from(u32::MAX), 1 << 40, u64::MAX];
    let begun = Instant::now();
    while begun.elapsed().as_millis() < 1500 {
        let mut any = || {
            draws += 1;
            odd[(key.draw(draws) * odd.len() as f64) as usize]
        };
        loaded.slots.store_u32(slot::CWND, any() as u32);
        loaded.slots.store(slot::RATE, any());
        loaded.slots.store_u32(slot::SSTHRESH, any() as u32);
        // Always for this connection, always new enough.
        loaded.slots.store_u32(slot::ANSWERED_CONNECTION, 1);
        loaded.slots.store(slot::ANSWERED, u64::MAX);
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
    let cwnd = loaded.slots.load_u32(slot::APPLIED_CWND);
    assert!((1..=1 << 20).contains(&cwnd), "{cwnd}");
    // As if no limits had ever been written.
    loaded.slots.store(slot::ANSWERED, 0);
    read(&mut far, 2_000_000);
    assert_eq!(loaded.slots.load_u32(SLOT_BYTES + slot::CONNECTION), 0, "one slot is in use");
}

/// The process that the test below starts; without effect in a normal test run.
#[test]
fn agent_process() {
    let Ok(name) = std::env::var("NARROWS_TEST_AGENT") else { return };
    let loaded = BpfPrograms::prepare().unwrap().register(&name).unwrap();
    let [slots, control] = loaded.map_ids;
    let _agent = Agent::start(loaded, Choice::new("rrtp").unwrap()).unwrap();
    println!("ready {slots} {control}");
    std::thread::sleep(std::time::Duration::from_secs(120));
}

/// A process that ends with the test, however this ends: a stopped one would keep its congestion control's name for ever.
struct AgentProcess(Child);

impl AgentProcess {
    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process, and the memory that its congestion control shares with the kernel.
fn start_agent(name: &str) -> (AgentProcess, [SharedMemory; 2]) {
    let mut agent = Command::new(std::env::current_exe().unwrap());
    agent.args(["--exact", "transfer_tests::agent_process", "--nocapture"]);
    agent.env("NARROWS_TEST_AGENT", name).stdout(Stdio::piped());
    let mut process = AgentProcess(agent.spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    let ids = lines.find_map(|line| {
        let line = line.unwrap();
        let (_, ids) = line.split_once("ready ")?;
        let (slots, control) = ids.split_once(' ')?;
        Some([slots.parse().unwrap(), control.parse().unwrap()])
    });
    (process, foreign(ids.expect("the agent has not started")).unwrap())
}

/// The status that the kernel's side shares.
fn shared([slots, control]: &[SharedMemory; 2]) -> ControlStatus {
    ControlStatus::read(slots, control)
}

/// Whether the controller decides, or does so within the next megabytes.
fn is_controlled(memory: &[SharedMemory; 2], far: &mut TcpStream) -> bool {
    sometime(far, || shared(memory).connections[0].decided_by == DecidedBy::Controlled)
}

/// Whether the kernel's side notices that the agent is away: it counts more than `before`, and decides by itself.
fn is_noticed(memory: &[SharedMemory; 2], before: u64, far: &mut TcpStream) -> bool {
    sometime(far, || {
        let s = shared(memory);
        s.fallbacks > before && s.connections[0].decided_by == DecidedBy::Fallback
    })
}

/// Compares the medians of up to four rounds: a busy machine may delay some transfers, but waiting for the agent would
/// delay all.
fn stall_less_than_three_rtts(mut round: impl FnMut() -> Vec<std::time::Duration>) {
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut longest = round();
        longest.sort();
        let middle = longest[longest.len() / 2];
        if middle <= std::time::Duration::from_millis(3 * RTT_MS) {
            return;
        }
        all.push(longest);
    }
    panic!("nothing came for {all:?}");
}

/// The agent is stopped three times, and killed three times. The transfer stalls for at most three RTTs. Each time the
/// kernel's side detects it, counts it and continues by itself; when limits arrive again, the controller takes over.
#[test]
fn a_stopped_or_killed_agent_stalls_no_transfer() {
    let Some((_, net)) = prepared() else { return };
    let (agent, memory) = start_agent("nw_stopped");
    let (near, mut far) = net.connect("nw_stopped");
    send_forever(near);
    read(&mut far, 1_000_000);
    let mut stopped = |n: u32| {
        assert!(is_controlled(&memory, &mut far), "before stop {n}");
        let before = shared(&memory).fallbacks;
        agent.signal(rustix::process::Signal::STOP);
        let longest = read(&mut far, 1_000_000);
        assert!(
            is_noticed(&memory, before, &mut far),
            "stop {n}: the kernel's side has not noticed"
        );
        agent.signal(rustix::process::Signal::CONT);
        assert!(is_controlled(&memory, &mut far), "continuation {n}");
        longest
    };
    stall_less_than_three_rtts(|| (0..3).map(&mut stopped).collect());
    drop(agent);
    let killed = |n: u32| {
        let name = format!("nw_killed_{n}");
        let (agent, memory) = start_agent(&name);
        let (near, mut far) = net.connect(&name);
        send_forever(near);
        read(&mut far, 1_000_000);
        assert!(is_controlled(&memory, &mut far), "before kill {n}");
        let before = shared(&memory).fallbacks;
        drop(agent);
        let longest = read(&mut far, 1_500_000);
        assert!(
            is_noticed(&memory, before, &mut far),
            "kill {n}: the kernel's side has not noticed"
        );
        assert!(!known(&name), "a killed agent's congestion control is gone from the list");
        longest
    };
    stall_less_than_three_rtts(|| (0..3).map(killed).collect());
}

/// A ring that is not read fills up: records are lost and counted, and the transfer continues as Reno. A later agent
/// computes the missed events from the totals of later records, and takes over.
#[test]
fn full_ring_loses_only_records() {
    let Some((_, net)) = prepared() else { return };
    // One page: 34 records.
    let programs = BpfPrograms::prepare_with(rustix::param::page_size()).unwrap();
    let loaded = programs.register("nw_ring").unwrap();
    let (near, mut far) = net.connect("nw_ring");
    send_forever(near);
    read(&mut far, 2_000_000);
    let s = ControlStatus::read(&loaded.slots, &loaded.control);
    assert!(s.lost_records > 100 && s.fallbacks == 1, "{s:?}");
    let agent = Agent::start(loaded, Choice::new("rrtp").unwrap()).unwrap();
    // Until the full ring was empty, its records were older than any limits; from then on no limits are late, unless the
    // machine is busy.
    let is_controlled = (0..10).any(|_| {
        let before = agent.status().fallbacks;
        read(&mut far, 2_000_000);
        let s = agent.status();
        s.connections[0].decided_by == DecidedBy::Controlled && s.fallbacks <= before + 2
    });
    assert!(is_controlled && agent.status().statistics.records() > 300, "{:?}", agent.status());
}
