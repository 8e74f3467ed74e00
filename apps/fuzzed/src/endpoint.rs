//! The endpoints of a server and a client, and a network between them that the input controls: it reorders, duplicates,
//! modifies, drops and forges datagrams, and lets time pass. No panic; both endpoints stay within their limits, become
//! idle, and report a consistent sequence of events for each connection.

use crate::bytes::FuzzInput;
use narrows_base::{Duration, Spec, Time};
use narrows_transport::Protocol;
use narrows_transport::connection::{ConnectionConfig, ConnectionEvent};
use narrows_transport::endpoint::{
    Clients, ConnectRequest, EarlyData, Endpoint, EndpointConfig, EndpointLimits, Entropy, Handle,
    Permit, ServerKey,
};
use narrows_transport::streams::FlowControlLimits;
use narrows_wire::{ApplicationProtocols, StaticKey, Suite};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

const CONNECTIONS: usize = 4;
/// Most datagrams in flight; further ones are lost.
const FLYING: usize = 64;

/// Source, destination, bytes.
type Flying = (SocketAddr, SocketAddr, Vec<u8>);

struct CountingEntropy(u64);

impl Entropy for CountingEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

thread_local! {
    static KEYS: [StaticKey; 2] = [1, 2].map(|n| StaticKey::new([n; 32]).expect("a key"));
    static PROTOCOL: Protocol =
        Protocol::read(&Spec::named("tfrc"), 1500).expect("a protocol");
}

fn connection() -> ConnectionConfig {
    ConnectionConfig {
        idle_timeout: Duration::from_secs(30),
        keep_alive: Duration::ZERO,
        limits: FlowControlLimits { data: 1 << 16, stream: 1 << 14, both: 4, one_way: 4 },
        send_buffer: 1 << 14,
        max_buffered: 1 << 15,
        max_message: 1000,
        messages_held: 4,
        applications: ApplicationProtocols::new(["fuzzed"]).expect("a list"),
        ..ConnectionConfig::new(PROTOCOL.with(Clone::clone))
    }
}

struct FuzzedEnd {
    endpoint: Endpoint,
    address: SocketAddr,
    /// Events of each connection: connected, closed.
    events: BTreeMap<Handle, (bool, bool)>,
}

impl FuzzedEnd {
    fn new(n: u8, clients: Clients) -> FuzzedEnd {
        let mut limits = EndpointLimits::new(CONNECTIONS);
        limits.handshakes = 3;
        let config = EndpointConfig {
            key: KEYS.with(|keys| keys[usize::from(n)].clone()),
            clients,
            connection: connection(),
            permit: Permit::Listed,
            filter: Default::default(),
            limits,
            early_data: true,
            local_port: 7,
        };
        FuzzedEnd {
            endpoint: Endpoint::new(config, Box::new(CountingEntropy(u64::from(n)))),
            address: SocketAddr::from(([192, 0, 2, n], 7)),
            events: BTreeMap::new(),
        }
    }

    fn see_to(&mut self, now: Time, flying: &mut VecDeque<Flying>) {
        self.endpoint.on_timeout(now);
        let mut buffer = [0; 1500];
        let mut sent = 0;
        while let Some(transmit) = self.endpoint.transmit(now, &mut buffer, 1) {
            sent += 1;
            assert!(sent < 10_000, "there is no end to what it sends");
            if flying.len() < FLYING {
                flying.push_back((self.address, transmit.to, buffer[..transmit.size].to_vec()));
            }
        }
        while let Some((handle, event)) = self.endpoint.event() {
            let (connected, closed) = self.events.entry(handle).or_default();
            assert!(!*closed, "{event:?} after the end");
            match event {
                ConnectionEvent::Connected(_) => assert!(!std::mem::replace(connected, true)),
                ConnectionEvent::Closed(_) => *closed = true,
                _ => assert!(*connected, "{event:?} before the beginning"),
            }
        }
        assert!(self.endpoint.len() <= CONNECTIONS + 3);
    }
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut bytes = FuzzInput::new(bytes);
    let mut now = Time::from_secs_f64(100.0);
    let mut ends = [FuzzedEnd::new(0, Clients::Any), FuzzedEnd::new(1, Clients::None)];
    let server = ends[0].address;
    let mut flying: VecDeque<Flying> = VecDeque::new();
    let mut steps = 0;
    while let Some(op) = bytes.byte() {
        steps += 1;
        if steps > 400 {
            break;
        }
        let arg = bytes.byte().unwrap_or(0);
        match op % 9 {
            0 => now += Duration::from_millis(u64::from(arg) * u64::from(arg)),
            1 => {
                let right = KEYS.with(|keys| *keys[0].public());
                let is_known = arg & 2 != 0;
                let connect = ConnectRequest {
                    remote: server,
                    server_key: if is_known { ServerKey::Is(right) } else { ServerKey::Any },
                    suite: Suite::ALL[usize::from(arg % 2)],
                    connection: connection(),
                    patience: Duration::from_secs(15),
                    early_data: EarlyData::new(*b"early").filter(|_| is_known),
                };
                let handle = ends[1].endpoint.connect(now, connect);
                handle.map(|h| ends[1].events.insert(h, (false, false)));
            }
            2 => {
                let end = &mut ends[usize::from(op / 9 % 2)];
                let handle = end.events.keys().nth(usize::from(arg)).copied();
                if let Some(handle) = handle {
                    end.endpoint.close(now, handle, 256, "enough");
                }
            }
            3 => {
                let end = &mut ends[usize::from(op / 9 % 2)];
                let handle = end.events.iter().filter(|t| !t.1.1).nth(usize::from(arg % 4));
                let connection = handle.and_then(|t| end.endpoint.connection(*t.0));
                if let Some(connection) = connection
                    && let Some(id) = connection.open(false)
                {
                    let _ = connection.write(id, &[arg; 3000]);
                    let _ = connection.finish(id);
                }
            }
            4 => {
                let to = usize::from(arg % 2);
                let from =
                    if arg & 2 == 0 { ends[1 - to].address } else { ([10, 0, 0, arg], 9).into() };
                let length = usize::from(bytes.byte().unwrap_or(0));
                let mut datagram = bytes.take(length).to_vec();
                ends[to].endpoint.receive(now, from, arg >> 6, &mut datagram);
            }
            // For datagrams in flight: deliver the oldest, another or a copy; modify or drop one.
            choice => {
                let which = if choice == 5 { 0 } else { usize::from(arg) % flying.len().max(1) };
                let taken = match choice {
                    7 => flying.get(which).cloned(),
                    _ => flying.remove(which),
                };
                let Some((from, to, mut datagram)) = taken else { continue };
                if choice == 8 {
                    let at = usize::from(bytes.byte().unwrap_or(0)) % datagram.len();
                    match bytes.byte() {
                        None | Some(0) => continue,
                        Some(255) => datagram.truncate(at),
                        Some(change) => datagram[at] ^= change,
                    }
                }
                if let Some(end) = ends.iter_mut().find(|e| e.address == to) {
                    end.endpoint.receive(now, from, arg >> 6, &mut datagram);
                }
            }
        }
        for end in &mut ends {
            end.see_to(now, &mut flying);
        }
    }
    // Without further input, everything ends.
    flying.clear();
    for end in &mut ends {
        let mut quiet = now;
        let mut wakes = 0;
        while !end.endpoint.next_timeout().is_never() {
            quiet = quiet.max(end.endpoint.next_timeout());
            wakes += 1;
            assert!(wakes < 10_000, "it does not rest");
            flying.clear();
            end.see_to(quiet, &mut flying);
        }
        assert!(end.endpoint.is_empty(), "something is kept for ever");
        assert!(end.events.values().all(|events| events.1), "an end was not told");
    }
}
