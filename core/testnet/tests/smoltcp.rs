//! smoltcp's sockets over a network: transfers, translators, and packets that are wrong.

use narrows_testnet::smoltcp::{IpApplication, IpNode};
use narrows_testnet::{Datagram, Ended, NatKind, Network, Node, NodeId, run};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// One end of a connection: sends a number of bytes, or reads until the connection ends.
struct Transfer {
    server: IpAddr,
    /// Bytes to send; the server's is 0.
    size: usize,
    timeout: Option<smoltcp::time::Duration>,
    handle: Option<SocketHandle>,
    bytes: Vec<u8>,
    sent: usize,
    state: State,
}

impl Transfer {
    fn new(server: &str, size: usize) -> Transfer {
        let server = ip(server);
        let bytes = Vec::new();
        Transfer { server, size, timeout: None, handle: None, bytes, sent: 0, state: State::Listen }
    }
}

impl IpApplication for Transfer {
    fn turn(&mut self, _: Instant, interface: &mut Interface, sockets: &mut SocketSet<'static>) {
        let handle = *self.handle.get_or_insert_with(|| {
            let buffer = || SocketBuffer::new(vec![0; 1 << 16]);
            let mut socket = Socket::new(buffer(), buffer());
            socket.set_congestion_control(CongestionControl::Cubic);
            socket.set_timeout(self.timeout);
            match self.size {
                0 => socket.listen(80).unwrap(),
                _ => socket.connect(interface.context(), (self.server, 80), 50_000).unwrap(),
            }
            sockets.add(socket)
        });
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        while socket.can_send() && self.sent < self.size {
            let end = self.size.min(self.sent + 10_000);
            let block: Vec<u8> = (self.sent..end).map(|n| n as u8).collect();
            self.sent += socket.send_slice(&block).unwrap();
        }
        if self.size > 0 && self.sent == self.size && socket.may_send() {
            socket.close();
        }
        while socket.can_recv() {
            socket.recv(|bytes| (bytes.len(), self.bytes.extend_from_slice(bytes))).unwrap();
        }
        if self.size == 0 && socket.state() == State::CloseWait {
            socket.close();
        }
        self.state = socket.state();
    }
    fn done(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }
}

struct Pair {
    network: Network,
    a: NodeId,
    b: NodeId,
    client: IpNode<Transfer>,
    server: IpNode<Transfer>,
}

impl Pair {
    fn new(link: &str, seed: u64, mtu: usize) -> Pair {
        let mut network = Network::new(seed);
        let a = network.add_host(&[ip("10.0.0.1"), ip("2001:db8::1")]).unwrap();
        let b = network.add_host(&[ip("10.0.0.2"), ip("2001:db8::2")]).unwrap();
        network.add_link(a, b, link).unwrap();
        let node = |address, size| {
            IpNode::new(&network, &[ip(address)], mtu, Transfer::new("10.0.0.2", size)).unwrap()
        };
        let client = node("10.0.0.1", 1_000_000);
        let server = node("10.0.0.2", 0);
        Pair { network, a, b, client, server }
    }

    fn run(&mut self, limit: Duration) -> Ended {
        let nodes: &mut [(NodeId, &mut dyn Node)] =
            &mut [(self.a, &mut self.client), (self.b, &mut self.server)];
        run(&mut self.network, nodes, limit)
    }
}

#[test]
fn transfer_over_lossy_link_repeats_to_the_bit() {
    let transfer = |seed| {
        let mut pair = Pair::new("20Mbit/s,25ms,loss=1%,reverse-loss=1%", seed, 1500);
        let packets = Arc::new(Mutex::new(Vec::new()));
        let seen = packets.clone();
        pair.network.observe(move |event| {
            seen.lock().unwrap().push((event.at, event.fate.name(), event.datagram.clone()));
        });
        let ended = pair.run(LIMIT);
        assert!(ended.is_done(), "{ended:?}");
        let expected: Vec<u8> = (0..1_000_000).map(|n: usize| n as u8).collect();
        assert!(pair.server.application.bytes == expected);
        let packets = std::mem::take(&mut *packets.lock().unwrap());
        (ended, packets)
    };
    let (ended, packets) = transfer(1);
    assert!(packets.iter().any(|(_, fate, _)| *fate == "lost"));
    let again = transfer(1);
    assert_eq!(again.0, ended);
    assert!(again.1 == packets, "all bytes of all packets at their times");
    assert_ne!(transfer(2).0, ended);
}

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn capture_has_ip_packets_as_they_were_sent() {
    let mut pair = Pair::new("20Mbit/s,25ms", 1, 1500);
    let first = Arc::new(Mutex::new(Vec::new()));
    let seen = first.clone();
    pair.network.observe(move |event| {
        let mut first = seen.lock().unwrap();
        if first.is_empty() {
            first.clone_from(&event.datagram.payload);
        }
    });
    let file = Memory::default();
    let capture = pair.network.capture(pair.b, file.clone()).unwrap();
    assert!(pair.run(LIMIT).is_done());
    assert!(capture.finish().unwrap().written > 1000);
    let file = file.0.lock().unwrap();
    let first = first.lock().unwrap();
    let packets = file.windows(first.len()).filter(|window| *window == &first[..]);
    // IPv4 and TCP: the SYN, once and without headers before it.
    assert_eq!((first[0], first[9], packets.count()), (0x45, 6, 1));
    let at = file.windows(first.len()).position(|window| window == &first[..]).unwrap();
    assert_eq!(file[at - 8..at - 4], (first.len() as u32).to_le_bytes());
}

#[test]
fn connection_passes_an_address_translator() {
    let mut network = Network::new(1);
    let phone = network.add_host(&[ip("192.168.0.2")]).unwrap();
    let nat = network.add_nat(ip("203.0.113.1"), NatKind::PortRestricted).unwrap();
    let host = network.add_host(&[ip("192.0.2.1")]).unwrap();
    network.add_link(phone, nat, "unlimited,1ms").unwrap();
    network.add_link(nat, host, "20Mbit/s,25ms,loss=1%").unwrap();
    let transfer = |size| Transfer::new("192.0.2.1", size);
    let mut client = IpNode::new(&network, &[ip("192.168.0.2")], 1500, transfer(100_000)).unwrap();
    let mut server = IpNode::new(&network, &[ip("192.0.2.1")], 1500, transfer(0)).unwrap();
    let ended = run(&mut network, &mut [(phone, &mut client), (host, &mut server)], LIMIT);
    assert!(ended.is_done(), "{ended:?}");
    assert_eq!(server.application.bytes.len(), 100_000);
}

#[test]
fn connection_over_ipv6_transfers_all_bytes() {
    let mut pair = Pair::new("20Mbit/s,25ms,loss=1%", 1, 1500);
    let node = |network: &Network, address, size| {
        IpNode::new(network, &[ip(address)], 1500, Transfer::new("2001:db8::2", size)).unwrap()
    };
    pair.client = node(&pair.network, "2001:db8::1", 100_000);
    pair.server = node(&pair.network, "2001:db8::2", 0);
    assert!(pair.run(LIMIT).is_done());
    assert_eq!(pair.server.application.bytes.len(), 100_000);
}

#[test]
fn packets_above_the_links_mtu_never_arrive() {
    let mut pair = Pair::new("20Mbit/s,25ms,mtu=1300B", 1, 1500);
    pair.client.application.timeout = Some(smoltcp::time::Duration::from_secs(30));
    // The client gives up and resets the connection.
    let ended = pair.run(LIMIT);
    assert!(ended.is_done() && ended.at() > Duration::from_secs(30), "{ended:?}");
    assert!(pair.server.application.bytes.is_empty());
}

#[test]
fn retransmission_over_a_dead_link_ends_at_the_limit() {
    let mut pair = Pair::new("20Mbit/s,25ms", 1, 1500);
    let link = {
        let mut network = Network::new(1);
        let [a, b] = [network.add_router(), network.add_router()];
        network.add_link(a, b, "1Mbit/s,1ms").unwrap()
    };
    pair.network.change_at(Duration::from_millis(200), link, "loss=100%").unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(pair.run(day), Ended::Limit(day));
    assert!(pair.network.counts().sent < 50_000, "{:?}", pair.network.counts());
}

/// Sends packets to a server without regard to their contents.
struct Sender(Vec<Datagram>);

impl Node for Sender {
    fn handle(&mut self, _: Instant, _: Datagram) {}
    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        self.0.pop()
    }
    fn next_timeout(&mut self) -> Option<Instant> {
        None
    }
    fn done(&self) -> bool {
        self.0.is_empty()
    }
}

#[test]
fn wrong_packets_change_no_connection() {
    let mut pair = Pair::new("unlimited,1ms", 1, 1500);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = sent.clone();
    pair.network.observe(move |event| seen.lock().unwrap().push(event.datagram.clone()));
    pair.run(LIMIT);
    let mut all = Vec::new();
    let mut random = 1_u64;
    for datagram in sent.lock().unwrap().iter().step_by(7) {
        for header_bytes in [0, 28] {
            for _ in 0..4 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mut wrong = datagram.clone();
                wrong.source = "10.0.0.1:50000".parse().unwrap();
                wrong.destination = "10.0.0.2:80".parse().unwrap();
                wrong.header_bytes = header_bytes;
                let length = wrong.payload.len();
                // A checksum covers each of these bytes.
                wrong.payload[(random >> 33) as usize % 60 % length] ^= (random >> 56) as u8 | 1;
                wrong.payload.truncate((random >> 40) as usize % (2 * length));
                all.push(wrong);
            }
        }
    }
    let mut empty = all[0].clone();
    empty.header_bytes = 0;
    empty.payload.clear();
    all.push(empty);
    let mut from_six = all[0].clone();
    from_six.header_bytes = 0;
    from_six.source = "[2001:db8::1]:1".parse().unwrap();
    all.push(from_six);
    let count = all.len();
    let mut pair = Pair::new("unlimited,1ms", 1, 1500);
    let mut sender = Sender(all);
    let nodes: &mut [(NodeId, &mut dyn Node)] =
        &mut [(pair.a, &mut sender), (pair.b, &mut pair.server)];
    let ended = run(&mut pair.network, nodes, LIMIT);
    assert!(matches!(ended, Ended::Idle(_)), "{ended:?}");
    assert!(count > 1000, "{count}");
    assert_eq!(pair.network.counts().delivered, count as u64, "the server answered");
    assert_eq!(pair.server.application.state, State::Listen);
}

#[test]
fn interface_refuses_wrong_addresses_and_mtus() {
    let network = Network::new(1);
    let error = |addresses: &[&str], mtu| {
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| ip(a)).collect();
        let made = IpNode::new(&network, &addresses, mtu, Transfer::new("10.0.0.2", 1));
        made.err().map(|e| e.to_string()).unwrap_or_default()
    };
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"] {
        assert!(error(&[address], 1500).contains("not unicast"), "{address}");
    }
    assert!(error(&["10.0.0.1", "10.0.0.2", "10.0.0.3"], 1500).contains("more addresses"));
    for mtu in [0, 575, 65_536, usize::MAX] {
        assert!(error(&["10.0.0.1"], mtu).contains("expected 576"), "{mtu}");
    }
    assert_eq!(error(&["10.0.0.1"], 576), "");
}
