//! Test clients: those of an attacker, and conforming ones at the same time.

use super::stub::{SERVER, StubConnection, StubNetwork, config, key, random, wish};
use super::{Clients, Connections, EndpointConfig, EndpointLimits, Handle, ServerKey};
use crate::connection::ConnectionEvent;
use narrows_base::Duration;
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{ClientHandshake, ConnectionId, Established, Hello, Params, Suite, VERSION};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The attacker's address, and a conforming client at the same IP address.
pub(super) const ATTACKER: &str = "203.0.113.66";
pub(super) const NEIGHBOUR: &str = "203.0.113.66:9";

/// A server with 32 places, of which one network may have 16, and with 64 handshakes.
pub(super) fn net(seed: u64, clients: Clients) -> StubNetwork<StubConnection> {
    let mut net = StubNetwork::pair(seed);
    let limits = EndpointLimits { handshakes: 64, ..EndpointLimits::new(32) };
    let server = EndpointConfig { limits, ..config(2, clients) };
    *net.at(SERVER) = Connections::new(server, random(99));
    let neighbour = Connections::new(config(8, Clients::None), random(98));
    net.ports.insert(NEIGHBOUR.parse().unwrap(), neighbour);
    net
}

/// Clients of an attacker. They reply at once and keep only the state that they need.
pub(super) struct Attackers {
    made: u32,
    /// Packets to the attacker's addresses.
    pub(super) inboxes: BTreeMap<SocketAddr, Vec<Vec<u8>>>,
}

impl Attackers {
    pub(super) fn new() -> Attackers {
        Attackers { made: 0, inboxes: BTreeMap::new() }
    }

    /// Sends a packet to the server and returns the replies. Packets to other addresses are
    /// delivered as usual.
    pub(super) fn say(
        &mut self,
        net: &mut StubNetwork<StubConnection>,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Vec<Vec<u8>> {
        let now = net.now;
        let server = SERVER.parse().unwrap();
        net.at(SERVER).receive(now, from, 0, &mut bytes.to_vec());
        let mut buffer = [0; 2000];
        while let Some(t) = net.at(SERVER).transmit(now, &mut buffer, 1) {
            let said = &buffer[..t.size];
            if net.ports.contains_key(&t.to) {
                net.fly(now + Duration::from_millis(20), server, t.to, said);
            } else {
                self.inboxes.entry(t.to).or_default().push(said.to_vec());
            }
        }
        while let Some((handle, event)) = net.at(SERVER).event() {
            net.events.push((server, handle, event));
        }
        self.inboxes.remove(&from).unwrap_or_default()
    }

    /// Runs a handshake up to START with a valid cookie. Returns the replies to it.
    pub(super) fn start(
        &mut self,
        net: &mut StubNetwork<StubConnection>,
        from: SocketAddr,
        key_seed: u8,
    ) -> (ClientHandshake, Vec<Vec<u8>>) {
        self.made += 1;
        let mut nonce = [0xaa; 16];
        nonce[..4].copy_from_slice(&self.made.to_be_bytes());
        let echo = self.say(net, from, &packet::syn(VERSION, &nonce)).pop().expect("an answer");
        let Ok(ParsedPacket::SynEcho { cookie, .. }) = ParsedPacket::read(&echo) else {
            panic!("no echo")
        };
        let suite = Suite::Aes256Gcm;
        let seed = [self.made as u8; 32];
        let client = ClientHandshake::new(suite, nonce, &cookie, &key(key_seed), seed).unwrap();
        let answers = self.say(net, from, client.start());
        (client, answers)
    }

    /// Runs a whole handshake. Returns the keys and the replies to FINISH.
    pub(super) fn connect(
        &mut self,
        net: &mut StubNetwork<StubConnection>,
        from: SocketAddr,
        key_seed: u8,
    ) -> Option<(Established, Vec<Vec<u8>>)> {
        let (mut client, answers) = self.start(net, from, key_seed);
        let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(answers.first()?) else {
            return None;
        };
        let hello = Hello { connection: ConnectionId(7), params: Params::default() };
        let (keys, finish) = client.on_start_echo(&echo, &hello, |_| true).unwrap();
        let answers = self.say(net, from, &finish);
        Some((keys, answers))
    }

    /// A new port at this address.
    pub(super) fn place(&self, address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 10_000 + self.made as u16)
    }
}

/// Code of the CLOSE among these packets.
pub(super) fn close_code(keys: &mut Established, packets: &[Vec<u8>]) -> Option<u64> {
    packets.iter().find_map(|packet| {
        let mut packet = packet.clone();
        let opened = keys.opener.open(&mut packet).ok()?;
        narrows_wire::Frames::read(opened.payload).unwrap().1.find_map(|frame| match frame {
            Ok(narrows_wire::Frame::Close { code, .. }) => Some(code),
            _ => None,
        })
    })
}

pub(super) fn connect(net: &mut StubNetwork<StubConnection>, from: &str) -> Handle {
    let now = net.now;
    net.at(from).connect(now, wish(SERVER, ServerKey::Any)).unwrap()
}

/// Queues a message of 1 kB to the server, if the connection exists.
pub(super) fn speak(net: &mut StubNetwork<StubConnection>, from: &str, handle: Handle) {
    if let Some(connection) = net.at(from).connection(handle) {
        connection.to_say.push_back(vec![7; 1000]);
    }
}

pub(super) fn is_alive(net: &mut StubNetwork<StubConnection>, from: &str, handle: Handle) -> bool {
    let address: SocketAddr = from.parse().unwrap();
    let told = |event: fn(&ConnectionEvent) -> bool| {
        net.events.iter().any(|e| e.0 == address && e.1 == handle && event(&e.2))
    };
    told(|e| matches!(e, ConnectionEvent::Connected(_)))
        && !told(|e| matches!(e, ConnectionEvent::Closed(_)))
}
