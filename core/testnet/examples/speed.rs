//! What the network costs, in CPU time:
//!
//! ```sh
//! cargo run --release -p narrows-testnet --features quinn --example speed -- [--megabytes N] [--rounds N]
//! ```
//!
//! - A transfer between two endpoints of quinn-proto over a link of 1 Gbit/s, and the same endpoints joined back to back:
//!   each datagram is handed to the other endpoint at once, alone or with all that were sent together.
//! - Handshakes of a stack of some lines over a link that loses a fifth of all datagrams, each with a network and a seed of
//!   its own.
//! - Datagrams of such a stack through a queue that is always full.
//!
//! Each round measures all of them. The table has the fastest of all rounds.

use narrows_testnet::quinn::{QuicNode, Transfer};
use narrows_testnet::{Datagram, Network, Node, run};
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const SENDER: &str = "10.0.0.1:1";
const RECEIVER: &str = "10.0.0.2:2";
/// For a file over quinn-proto. An RTT of 2 ms is that of a path within a city.
const LINK: &str = "1Gbit/s,1ms";
/// For handshakes.
const LOSSY: &str = "20Mbit/s,25ms,loss=20%,reverse-loss=20%";
/// Handshakes, each with a network and a seed of its own.
const SEEDS: u64 = 10_000;
/// Round trips of a handshake: one for addresses, two for keys and their confirmation.
const ROUND_TRIPS: u64 = 3;
/// The stub's datagrams through a full queue.
const QUESTIONS: u64 = 1_000_000;
/// Of them in flight. A BDP is 200, so the queue is never empty.
const IN_FLIGHT: u64 = 300;
/// Time to a repetition: four RTTs of the lossy link.
const TIMEOUT: Duration = Duration::from_millis(200);

/// CPU time of this process in seconds. Where the system has no `/proc`, elapsed time.
fn cpu_seconds() -> f64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_cpu = text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok());
    let elapsed = BEGUN.get_or_init(Instant::now).elapsed();
    on_cpu.map_or(elapsed.as_secs_f64(), |nanos| nanos as f64 / 1e9)
}

/// Configurations of both ends, with a certificate of their own.
struct Tls {
    server: Arc<ServerConfig>,
    client: ClientConfig,
}

impl Tls {
    fn new() -> Result<Tls, Failure> {
        rustls::crypto::ring::default_provider().install_default().map_err(|_| "no provider")?;
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let server = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
        Ok(Tls { server: Arc::new(server), client })
    }
}

/// The two ends of a transfer.
struct Pair {
    sender: QuicNode<Transfer>,
    receiver: QuicNode<Transfer>,
}

impl Pair {
    fn new(tls: &Tls, start: Instant, bytes: u64) -> Result<Pair, Failure> {
        let config = Arc::new(EndpointConfig::default());
        let mut endpoint = Endpoint::new(config.clone(), None, true, Some([1; 32]));
        let begun = endpoint.connect(start, tls.client.clone(), RECEIVER.parse()?, "localhost")?;
        let sender = QuicNode::client(SENDER.parse()?, endpoint, begun, Transfer::send(bytes));
        let endpoint = Endpoint::new(config, Some(tls.server.clone()), true, Some([2; 32]));
        let receiver = QuicNode::server(RECEIVER.parse()?, endpoint, Transfer::receive());
        Ok(Pair { sender, receiver })
    }

    fn check(&self, bytes: u64) -> Result<(), Failure> {
        match self.receiver.application.bytes == bytes {
            true => Ok(()),
            false => Err(format!("incomplete: {:?}", self.sender.application).into()),
        }
    }
}

/// Joins two endpoints back to back until both are done. An end gets up to `batch` datagrams before it is polled.
fn join(pair: &mut Pair, mut now: Instant, batch: usize) -> Result<u64, Failure> {
    let mut datagrams = 0;
    let mut ends: [&mut dyn Node; 2] = [&mut pair.sender, &mut pair.receiver];
    let mut waiting: [VecDeque<Datagram>; 2] = Default::default();
    loop {
        let mut is_idle = true;
        for here in [0, 1] {
            for datagram in drain(&mut waiting[here], batch) {
                ends[here].handle(now, datagram);
                datagrams += 1;
                is_idle = false;
            }
            while let Some(datagram) = ends[here].poll_transmit(now) {
                put_segments(datagram, &mut waiting[1 - here]);
                is_idle = false;
            }
        }
        if !is_idle {
            continue;
        }
        if ends.iter().all(|end| end.done()) {
            return Ok(datagrams);
        }
        let next = ends.iter_mut().filter_map(|end| end.next_timeout()).min();
        now = next.ok_or("the endpoints wait for each other")?.max(now + Duration::from_nanos(1));
    }
}

fn drain(waiting: &mut VecDeque<Datagram>, batch: usize) -> Vec<Datagram> {
    waiting.drain(..batch.min(waiting.len())).collect()
}

fn put_segments(datagram: Datagram, to: &mut VecDeque<Datagram>) {
    let Some(size) = datagram.segment_size.filter(|size| *size > 0) else {
        return to.push_back(datagram);
    };
    let empty = Datagram { payload: Vec::new(), segment_size: None, ..datagram };
    let parts = datagram.payload.chunks(size);
    to.extend(parts.map(|part| Datagram { payload: part.to_vec(), ..empty.clone() }));
}

/// Runs two programs over a link until both are done. Returns the number of datagrams that the link carried.
fn over_link(
    link: &str,
    seed: u64,
    start: Instant,
    programs: [&mut dyn Node; 2],
) -> Result<u64, Failure> {
    let [sender, receiver] = programs;
    let mut network = Network::starting_at(seed, start);
    let a = network.add_host(&["10.0.0.1".parse()?])?;
    let b = network.add_host(&["10.0.0.2".parse()?])?;
    let link = network.add_link(a, b, link)?;
    let ended = run(&mut network, &mut [(a, sender), (b, receiver)], Duration::from_secs(600));
    if !ended.is_done() {
        return Err(format!("seed {seed}: {ended:?}").into());
    }
    let counts = network.link_counts(link).ok_or("no link")?;
    Ok(counts.iter().map(|direction| direction.delivered).sum())
}

/// A program of some lines: it asks a number of times, with a limit of questions in flight, or it answers.
struct Stub {
    from: SocketAddr,
    to: SocketAddr,
    /// Questions in all; 0 for the side that answers.
    questions: u64,
    in_flight: u64,
    sent: u64,
    received: u64,
    /// A question is repeated then.
    timeout: Option<Instant>,
}

impl Stub {
    fn asking(questions: u64, in_flight: u64) -> Result<Stub, Failure> {
        let from = SENDER.parse()?;
        let to = RECEIVER.parse()?;
        Ok(Stub { from, to, questions, in_flight, sent: 0, received: 0, timeout: None })
    }

    fn answering() -> Result<Stub, Failure> {
        let asking = Stub::asking(0, 0)?;
        Ok(Stub { from: asking.to, to: asking.from, ..asking })
    }
}

impl Node for Stub {
    fn handle(&mut self, now: Instant, _datagram: Datagram) {
        self.received += 1;
        self.timeout = Some(now + TIMEOUT);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let is_asking = self.questions > 0;
        if is_asking && self.timeout.is_some_and(|at| at <= now) {
            self.sent = self.received;
        }
        let limit = if is_asking { self.questions } else { u64::MAX };
        if self.sent >= limit.min(self.received + self.in_flight) {
            return None;
        }
        self.sent += 1;
        self.timeout = Some(now + TIMEOUT);
        let bytes = if is_asking { 1200 } else { 32 };
        Some(Datagram::udp(self.from, self.to, vec![0; bytes]))
    }
    fn next_timeout(&mut self) -> Option<Instant> {
        self.timeout.filter(|_| self.questions > 0 && !self.done())
    }
    fn done(&self) -> bool {
        self.received >= self.questions
    }
}

/// What is measured; the order is that of the table.
#[derive(Clone, Copy, PartialEq)]
enum Case {
    Alone,
    Together,
    Link,
    Handshakes,
    Queue,
}

const CASES: [(Case, &str); 5] = [
    (Case::Alone, "quinn-proto back to back, a datagram at a time"),
    (Case::Together, "quinn-proto back to back, all at a time"),
    (Case::Link, "quinn-proto over 1Gbit/s,1ms"),
    (Case::Handshakes, "10,000 seeds of a stub's handshake, 20% loss"),
    (Case::Queue, "a stub through a full queue"),
];

/// Runs a case once. Returns the number of datagrams that links carried.
fn measure(case: Case, tls: &Tls, bytes: u64) -> Result<u64, Failure> {
    let start = Instant::now();
    let mut datagrams = 0;
    match case {
        Case::Alone | Case::Together | Case::Link => {
            let mut pair = Pair::new(tls, start, bytes)?;
            match case {
                Case::Alone => datagrams += join(&mut pair, start, 1)?,
                Case::Together => datagrams += join(&mut pair, start, usize::MAX)?,
                _ => {
                    let programs = [&mut pair.sender as &mut dyn Node, &mut pair.receiver];
                    datagrams += over_link(LINK, 1, start, programs)?;
                }
            }
            pair.check(bytes)?;
        }
        Case::Handshakes => {
            for seed in 0..SEEDS {
                let programs =
                    [&mut Stub::asking(ROUND_TRIPS, 1)? as &mut dyn Node, &mut Stub::answering()?];
                datagrams += over_link(LOSSY, seed, start, programs)?;
            }
        }
        Case::Queue => {
            let programs = [
                &mut Stub::asking(QUESTIONS, IN_FLIGHT)? as &mut dyn Node,
                &mut Stub::answering()?,
            ];
            datagrams += over_link(LINK, 1, start, programs)?;
        }
    }
    Ok(datagrams)
}

fn main() -> Result<(), Failure> {
    let mut megabytes: u64 = 1000;
    let mut rounds: u32 = 3;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let number = args.next().and_then(|n| n.parse::<u32>().ok()).filter(|n| *n > 0);
        let number = number.ok_or_else(|| format!("{arg} needs a whole number, at least 1"))?;
        match arg.as_str() {
            "--megabytes" => megabytes = number.into(),
            "--rounds" => rounds = number,
            _ => return Err(format!("'{arg}': expected --megabytes N or --rounds N").into()),
        }
    }
    let tls = Tls::new()?;
    let mut least = [f64::INFINITY; CASES.len()];
    let mut datagrams = [0; CASES.len()];
    for _ in 0..rounds {
        for (at, (case, _)) in CASES.iter().enumerate() {
            let before = cpu_seconds();
            datagrams[at] = measure(*case, &tls, megabytes * 1_000_000)?;
            least[at] = least[at].min(cpu_seconds() - before);
        }
    }
    println!("{megabytes} MB of quinn-proto, the least CPU time of {rounds} rounds\n");
    println!("| | CPU s | of the first | datagrams on links | per CPU s |");
    println!("|---|---|---|---|---|");
    for (at, (_, name)) in CASES.iter().enumerate() {
        let ratio = if at < 3 { format!("{:.3}", least[at] / least[0]) } else { String::new() };
        let rate = datagrams[at] as f64 / least[at];
        let carried = match datagrams[at] {
            0 => " | ".to_string(),
            carried => format!("{carried} | {rate:.0}"),
        };
        println!("| {name} | {:.2} | {ratio} | {carried} |", least[at]);
    }
    Ok(())
}
