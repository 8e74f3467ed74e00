//! The kernel's TCP under our controllers, over emulated links between namespaces that the tests make. They need
//! root; without it each says so and is skipped.

use crate::bpf::Programs;
use crate::record::{SLOT_BYTES, slot};
use crate::status::Status;
use crate::{Agent, Choice, Error};
use narrows_base::{Duration, RandomKey, Rate};
use narrows_emulator::{EmulatedLink, LinkOptions, Namespace};
use narrows_link::LinkConfig;
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Round-trip time of the link.
const RTT_MS: u64 = 40;

/// A link of 20 Mbit/s between two namespaces, with a receiver at its end that tells how much comes when.
struct Net {
    a: Namespace,
    _b: Namespace,
    _link: EmulatedLink,
    to: SocketAddr,
    listener: TcpListener,
}

impl Net {
    fn new() -> Result<Net, narrows_emulator::Error> {
        let (a, b) = (Namespace::create("a")?, Namespace::create("b")?);
        let way = || {
            let half = Duration::from_millis(RTT_MS / 2);
            LinkConfig::plain(Rate::from_bps(20_000_000), half)
        };
        let link = EmulatedLink::between(&a, &b, LinkOptions::new(way(), way()))?;
        let to = SocketAddr::new(link.b().addresses[0], 0);
        let listener = b.enter(|| TcpListener::bind(to).unwrap())?;
        let to = listener.local_addr().unwrap();
        Ok(Net { a, _b: b, _link: link, to, listener })
    }
    /// A connection under that congestion control, and its other end.
    fn connect(&self, name: &str) -> (TcpStream, TcpStream) {
        let near = self.a.enter(|| TcpStream::connect(self.to).unwrap()).unwrap();
        set_tcp_congestion(&near, name).unwrap();
        (near, self.listener.accept().unwrap().0)
    }
}

/// What a test needs; `None` says why it cannot be had.
fn prepared() -> Option<(Programs, Net)> {
    let programs = match Programs::prepare() {
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

/// Sends until told to stop, in a thread.
fn send_forever(mut near: TcpStream) {
    std::thread::spawn(move || while near.write_all(&[7; 16384]).is_ok() {});
}

/// Reads so many bytes and returns the longest time without any.
fn read(far: &mut TcpStream, bytes: usize) -> std::time::Duration {
    let (mut left, mut last) = (bytes, Instant::now());
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

fn known(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.unwrap_or_default().split_whitespace().any(|n| n == name)
}

fn status(agent: &Agent) -> Status {
    Status::read(&agent.loaded().slots, &agent.loaded().control)
}

#[test]
fn a_congestion_control_comes_and_goes() {
    let Some((programs, _)) = prepared() else { return };
    let loaded = programs.register("nw_comes_goes").unwrap();
    assert!(known("nw_comes_goes"));
    let again = Programs::prepare().unwrap().register("nw_comes_goes").unwrap_err();
    assert!(matches!(again, Error::NameInUse(_)), "{again}");
    drop(Agent::start(loaded, Choice::new("reno").unwrap()).unwrap());
    assert!(!known("nw_comes_goes"), "dropping it takes it from the list");
}

/// The controller's window, not the kernel's, is what is sent: `vegas` keeps the link full without filling its queue.
#[test]
fn the_controller_decides() {
    let Some((programs, net)) = prepared() else { return };
    let agent =
        Agent::start(programs.register("nw_decides").unwrap(), Choice::new("vegas").unwrap());
    let agent = agent.unwrap();
    let (near, mut far) = net.connect("nw_decides");
    send_forever(near);
    read(&mut far, 6_000_000);
    let s = status(&agent);
    assert_eq!(s.connections.len(), 1, "{s:?}");
    assert!(s.statistics.records() > 500, "{s:?}");
    // A path of 67 packets and a few of Vegas' own; Reno has filled the queue by then.
    let c = s.connections[0];
    assert!(c.cwnd > 20 && c.cwnd < 120, "{c:?}");
}

/// A dropped agent is an unloaded congestion control: its connections go on.
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
fn who_finds_no_slot_goes_on_as_reno() {
    let Some((programs, net)) = prepared() else { return };
    let loaded = programs.register_with("nw_slots", 2).unwrap();
    let agent = Agent::start(loaded, Choice::new("rrtp").unwrap()).unwrap();
    let mut ends: Vec<(TcpStream, TcpStream)> = (0..5).map(|_| net.connect("nw_slots")).collect();
    for (near, far) in &mut ends {
        near.write_all(&[3; 100_000]).unwrap();
        read(far, 100_000);
    }
    let s = status(&agent);
    assert_eq!((s.seen, s.without_slot, s.connections.len()), (2, 3, 2));
    // A slot that has become free serves the next.
    ends.truncate(0);
    let waited = Instant::now();
    while !status(&agent).connections.is_empty() && waited.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (mut near, mut far) = net.connect("nw_slots");
    near.write_all(&[3; 1000]).unwrap();
    read(&mut far, 1000);
    assert_eq!(status(&agent).seen, 3);
}

/// Whatever is in the slots, the kernel goes on; and without answers so does the transfer.
#[test]
fn hostile_answers_hurt_nobody() {
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
    // As if nobody had ever answered.
    loaded.slots.store(slot::ANSWERED, 0);
    read(&mut far, 2_000_000);
    assert_eq!(loaded.slots.load_u32(SLOT_BYTES + slot::CONNECTION), 0, "one slot is in use");
}

/// What the test below starts as a process of its own; nothing when the tests are run.
#[test]
fn agent_process() {
    let Ok(name) = std::env::var("NARROWS_TEST_AGENT") else { return };
    let loaded = Programs::prepare().unwrap().register(&name).unwrap();
    let _agent = Agent::start(loaded, Choice::new("rrtp").unwrap()).unwrap();
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(120));
}

fn start_agent(name: &str) -> Child {
    let mut agent = Command::new(std::env::current_exe().unwrap());
    agent.args(["--exact", "transfer_tests::agent_process", "--nocapture"]);
    agent.env("NARROWS_TEST_AGENT", name).stdout(Stdio::piped());
    let mut child = agent.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|l| l.is_ok_and(|l| l.ends_with("ready"))), "the agent has not started");
    child
}

/// Ten times a stopped agent, ten times a killed one: the transfer stalls for no more than three round trips.
#[test]
fn a_stopped_or_killed_agent_stalls_no_transfer() {
    let Some((_, net)) = prepared() else { return };
    let most = std::time::Duration::from_millis(3 * RTT_MS);
    let pid = |child: &Child| rustix::process::Pid::from_child(child);
    let mut agent = start_agent("nw_stopped");
    let (near, mut far) = net.connect("nw_stopped");
    send_forever(near);
    read(&mut far, 1_000_000);
    for n in 0..10 {
        rustix::process::kill_process(pid(&agent), rustix::process::Signal::STOP).unwrap();
        let longest = read(&mut far, 1_000_000);
        assert!(longest <= most, "stop {n}: nothing came for {longest:?}");
        rustix::process::kill_process(pid(&agent), rustix::process::Signal::CONT).unwrap();
        let longest = read(&mut far, 1_000_000);
        assert!(longest <= most, "continuation {n}: nothing came for {longest:?}");
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
    for n in 0..10 {
        let name = format!("nw_killed_{n}");
        let mut agent = start_agent(&name);
        let (near, mut far) = net.connect(&name);
        send_forever(near);
        read(&mut far, 1_000_000);
        agent.kill().unwrap();
        agent.wait().unwrap();
        let longest = read(&mut far, 1_500_000);
        assert!(longest <= most, "kill {n}: nothing came for {longest:?}");
        assert!(!known(&name), "a killed agent's congestion control is gone from the list");
    }
}
