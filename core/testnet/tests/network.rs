//! What datagrams experience on their way, and what scripts find.

use narrows_testnet::{
    Datagram, Description, Ecn, Ended, NatKind, Network, Node, NodeId, Script, When, run,
};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Two hosts, 10.0.0.1 and 10.0.0.2, with one link.
fn pair(link: &str, seed: u64) -> (Network, NodeId, NodeId) {
    let mut network = Network::new(seed);
    let a = network.add_host(&[ip("10.0.0.1")]).unwrap();
    let b = network.add_host(&[ip("10.0.0.2")]).unwrap();
    network.add_link(a, b, link).unwrap();
    (network, a, b)
}

fn datagram(bytes: usize) -> Datagram {
    Datagram::udp(at("10.0.0.1:1"), at("10.0.0.2:2"), vec![0; bytes])
}

/// Milliseconds at which each datagram arrives.
fn arrivals(network: &mut Network) -> Vec<(f64, Datagram)> {
    let mut arrivals = Vec::new();
    while let Some(now) = network.next_timeout() {
        while let Some((_, datagram)) = network.poll(now) {
            arrivals.push(((now - network.start()).as_secs_f64() * 1e3, datagram));
        }
    }
    arrivals
}

#[test]
fn segments_arrive_one_by_one_at_the_rate() {
    let (mut network, a, _) = pair("8Mbit/s,10ms", 1);
    let start = network.start();
    network.send(start, a, datagram(2944).with_segment_size(Some(972)));
    let arrived = arrivals(&mut network);
    let times: Vec<f64> = arrived.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [11.0, 12.0, 13.0, 13.056]);
    assert!(arrived.iter().all(|(_, d)| d.segment_size.is_none()));
}

#[test]
fn seed_repeats_losses_and_another_seed_does_not() {
    let lost = |seed| {
        let (mut network, a, _) = pair("8Mbit/s,10ms,loss=30%,queue=unlimited", seed);
        let start = network.start();
        for number in 0..200 {
            network.send(start, a, datagram(number + 1));
        }
        arrivals(&mut network).iter().map(|(_, d)| d.payload.len()).collect::<Vec<_>>()
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
}

#[test]
fn jitter_keeps_the_order_of_datagrams() {
    let order = |jitter: &str| {
        let (mut network, a, _) = pair(&format!("unlimited,10ms,jitter={jitter}"), 1);
        let start = network.start();
        (0..50).for_each(|number| network.send(start, a, datagram(number + 1)));
        let sizes: Vec<usize> =
            arrivals(&mut network).iter().map(|(_, d)| d.payload.len()).collect();
        sizes.is_sorted()
    };
    assert!(order("30ms"));
    assert!(!order("uniform(9ms,order=mixed)"));
}

#[test]
fn duplicate_arrives_twice_with_its_contents() {
    let (mut network, a, _) = pair("8Mbit/s,10ms,duplicate=100%", 1);
    let start = network.start();
    network.send(start, a, datagram(100));
    let arrived = arrivals(&mut network);
    assert_eq!(arrived.len(), 2);
    assert!(arrived.iter().all(|(_, d)| d.payload.len() == 100));
}

#[test]
fn queue_marks_ecn_capable_datagrams_and_drops_others() {
    for (ecn, is_marked) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let (mut network, a, _) = pair("8Mbit/s,10ms,aqm=codel(ecn=on),queue=unlimited", 1);
        let start = network.start();
        for _ in 0..1000 {
            network.send(start, a, datagram(972).with_ecn(ecn));
        }
        let arrived = arrivals(&mut network);
        let marked = arrived.iter().filter(|(_, d)| d.ecn == Ecn::Ce).count();
        assert_eq!((marked > 0, arrived.len() == 1000), (is_marked, is_marked), "{ecn:?}");
    }
}

#[test]
fn oversized_and_damaged_datagrams_do_not_arrive() {
    let (mut network, a, _) = pair("8Mbit/s,10ms,mtu=1300B,corrupt=100%", 1);
    let start = network.start();
    network.send(start, a, datagram(1273));
    network.send(start, a, datagram(1272));
    assert!(arrivals(&mut network).is_empty());
    let link = Description::parse("1Mbit/s,1ms", 1).unwrap().link("link").unwrap();
    assert_eq!(network.link_counts(link).unwrap()[0].too_large, 1);
    assert_eq!(network.counts().damaged, 1);
}

#[test]
fn change_of_a_link_applies_from_its_time() -> Outcome {
    let (mut network, a, _) = pair("8Mbit/s,10ms", 1);
    let link = Description::parse("1Mbit/s,1ms", 1)?.link("link")?;
    network.change_at(Duration::from_millis(5), link, "delay=50ms,loss=100%")?;
    network.change_at(Duration::from_millis(8), link, "loss=none")?;
    let start = network.start();
    for ms in [0, 6, 8] {
        network.send(start + Duration::from_millis(ms), a, datagram(972));
    }
    let times: Vec<f64> = arrivals(&mut network).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [11.0, 59.0]);
    let e = network.change_at(Duration::ZERO, link, "rtt=3ms").unwrap_err().to_string();
    assert!(e.contains("unknown key 'rtt'"), "{e}");
    Ok(())
}

/// phone -- home NAT -- carrier's NAT -- server, and a stranger beside the server.
fn behind_two_translators(kind: NatKind) -> (Network, [NodeId; 4]) {
    let mut network = Network::new(1);
    let phone = network.add_host(&[ip("192.168.0.2")]).unwrap();
    let server = network.add_host(&[ip("192.0.2.1")]).unwrap();
    let stranger = network.add_host(&[ip("192.0.2.9")]).unwrap();
    let home = network.add_nat(ip("100.64.0.7"), NatKind::FullCone).unwrap();
    let carrier = network.add_nat(ip("203.0.113.1"), kind).unwrap();
    let router = network.add_router();
    for (inner, outer) in
        [(phone, home), (home, carrier), (carrier, router), (server, router), (stranger, router)]
    {
        network.add_link(inner, outer, "unlimited,1ms").unwrap();
    }
    (network, [phone, server, stranger, carrier])
}

#[test]
fn translators_in_a_row_rewrite_both_directions() {
    let (mut network, [phone, server, stranger, carrier]) =
        behind_two_translators(NatKind::AddressRestricted);
    let start = network.start();
    let inner = at("192.168.0.2:5000");
    let hello = Datagram::udp(inner, at("192.0.2.1:443"), vec![1]);
    network.send(start, phone, hello.clone());
    let (_, seen) = arrivals(&mut network).remove(0);
    assert_eq!(seen.source.ip(), ip("203.0.113.1"));
    let now = network.now();
    network.send(now, server, Datagram::udp(at("192.0.2.1:443"), seen.source, vec![2]));
    network.send(now, stranger, Datagram::udp(at("192.0.2.9:443"), seen.source, vec![3]));
    let (_, answer) = arrivals(&mut network).remove(0);
    assert_eq!((answer.destination, answer.payload), (inner, vec![2]));
    assert_eq!(network.counts().filtered, 1);
    network.rebind_at(Duration::from_secs(1), carrier);
    network.send(start + Duration::from_secs(2), phone, hello);
    let (_, later) = arrivals(&mut network).remove(0);
    assert_ne!(later.source, seen.source, "rebound");
}

#[test]
fn source_address_selects_the_interface() -> Outcome {
    let mut network = Network::new(1);
    let phone = network.add_host(&[ip("10.1.0.1"), ip("10.2.0.1")])?;
    let server = network.add_host(&[ip("192.0.2.1")])?;
    let router = network.add_router();
    let wifi = network.add_interface(phone, ip("10.1.0.1"), router, "unlimited,5ms")?;
    let cellular = network.add_interface(phone, ip("10.2.0.1"), router, "unlimited,30ms")?;
    network.add_link(router, server, "unlimited,1ms")?;
    let start = network.start();
    for source in ["10.1.0.1:1", "10.2.0.1:1"] {
        network.send(start, phone, Datagram::udp(at(source), at("192.0.2.1:1"), vec![0]));
    }
    let times: Vec<f64> = arrivals(&mut network).iter().map(|(at, _)| at.round()).collect();
    assert_eq!(times, [6.0, 31.0]);
    for link in [wifi, cellular] {
        assert_eq!(network.link_counts(link).unwrap()[0].delivered, 1);
    }
    network.send(start, server, Datagram::udp(at("10.1.0.1:1"), at("192.0.2.1:1"), vec![0]));
    assert_eq!(network.counts().unroutable, 1, "another host's address");
    Ok(())
}

/// Sends a datagram every 10 ms and counts what arrives.
#[derive(Default)]
struct Ticker {
    addresses: Option<(SocketAddr, SocketAddr)>,
    next: Option<Instant>,
    left: u32,
    arrived: u32,
}

impl Ticker {
    fn sending(left: u32) -> Ticker {
        let addresses = Some((at("10.0.0.1:1"), at("10.0.0.2:2")));
        Ticker { addresses, left, ..Ticker::default() }
    }
}

impl Node for Ticker {
    fn handle(&mut self, _now: Instant, _datagram: Datagram) {
        self.arrived += 1;
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let (from, to) = self.addresses?;
        if self.left == 0 || self.next.is_some_and(|at| at > now) {
            return None;
        }
        self.left -= 1;
        self.next = Some(now + Duration::from_millis(10));
        Some(Datagram::udp(from, to, vec![0; 100]))
    }
    fn next_timeout(&mut self) -> Option<Instant> {
        self.next.filter(|_| self.left > 0)
    }
    fn done(&self) -> bool {
        self.left == 0
    }
    fn variable(&self, name: &str) -> Option<f64> {
        (name == "arrived").then_some(f64::from(self.arrived))
    }
    fn command(&mut self, _now: Instant, text: &str) -> bool {
        self.left = if text == "stop" { 0 } else { self.left };
        text == "stop" || text == "nothing"
    }
}

#[test]
fn run_ends_when_programs_are_done_idle_or_late() {
    let ended = |left: u32, waits_for: u32, limit: u64| {
        let (mut network, a, b) = pair("8Mbit/s,10ms", 1);
        let mut sender = Ticker::sending(left);
        let mut receiver = Ticker { left: waits_for, ..Ticker::default() };
        let limit = Duration::from_millis(limit);
        run(&mut network, &mut [(a, &mut sender), (b, &mut receiver)], limit)
    };
    assert_eq!(ended(3, 0, 1000), Ended::Done(Duration::from_millis(20)));
    assert!(matches!(ended(3, 1, 1000), Ended::Idle(_)));
    assert_eq!(ended(300, 0, 1000), Ended::Limit(Duration::from_secs(1)));
}

#[test]
fn expectation_fails_with_its_value_and_time() {
    let outcome = |when, range| {
        let (mut network, a, b) = pair("8Mbit/s,10ms", 1);
        let mut sender = Ticker::sending(100);
        let mut receiver = Ticker::default();
        let script = Script::new().expect(b, "arrived", when, range);
        let nodes: &mut [(NodeId, &mut dyn Node)] = &mut [(a, &mut sender), (b, &mut receiver)];
        script.run(&mut network, nodes, Duration::from_secs(2))
    };
    let ms = Duration::from_millis;
    assert!(outcome(When::At(ms(500)), 49.0..=50.0).is_ok());
    let failures = outcome(When::At(ms(500)), 60.0..=70.0).unwrap_err();
    assert_eq!(
        failures[0].to_string(),
        "at 500ms, arrived was 49: 60 to 70 were expected at 500ms"
    );
    assert!(outcome(When::By(ms(500)), 40.0..=40.0).is_ok());
    assert!(outcome(When::By(ms(500)), 70.0..=70.0).is_err());
    assert!(outcome(When::During(ms(0), ms(500)), 0.0..=50.0).is_ok());
    assert!(outcome(When::During(ms(0), ms(500)), 0.0..=40.0).is_err());
}

#[test]
fn minimised_script_has_only_the_commands_that_matter() {
    let (_, a, _) = pair("8Mbit/s,10ms", 1);
    let ms = Duration::from_millis;
    let noisy = Script::new().command(ms(100), a, "nothing").command(ms(200), a, "stop").command(
        ms(300),
        a,
        "nothing",
    );
    let fails = |script: &Script| {
        let (mut network, a, b) = pair("8Mbit/s,10ms", 1);
        let mut sender = Ticker::sending(100);
        let mut receiver = Ticker::default();
        let nodes: &mut [(NodeId, &mut dyn Node)] = &mut [(a, &mut sender), (b, &mut receiver)];
        let ended = script.clone().run(&mut network, nodes, Duration::from_secs(9));
        ended.is_ok() && receiver.arrived < 50
    };
    assert_eq!(noisy.minimise(fails), Script::new().command(ms(200), a, "stop"));
}

#[test]
fn wrong_description_is_refused_in_one_line() {
    let host = "[[host]]\nname = 'a'\naddress = '10.0.0.1'\n";
    for (text, expected) in [
        ("", "the link is empty"),
        ("20Mbit/s", "the delay is missing"),
        ("20Mbit/s,25ms,los=1%", "did you mean 'loss'?"),
        ("[[hots]]", "unknown part 'hots'; did you mean 'host'?"),
        ("[host]", "host is a list: write [[host]]"),
        ("[[host]]\nname = 'a'", "[[host]] 1: address is missing"),
        ("[[host]]\nname = 'a'\naddress = '10.0.0'", "address '10.0.0': expected"),
        (&format!("{host}{host}"), "[[host]] 2: two nodes have the address 10.0.0.1"),
        (&format!("{host}[[link]]\nfrom='a'\nto='b'\nlink='1Mbit/s,1ms'"), "unknown node 'b'"),
        (&format!("{host}[[event]]\nrebind='a'"), "at is missing"),
        ("[[nat]]\nname='n'\naddress='1.2.3.4'\nkind='cone'", "[[nat]] 1: unknown kind 'cone'"),
        (
            &format!("{host}[[expect]]\nnode='a'\nvariable='x'\nby='1s'"),
            "at-least or at-most is missing",
        ),
        ("[[host]\n", "line 1"),
    ] {
        let e = Description::parse(text, 1).unwrap_err().to_string();
        assert!(e.contains(expected) && !e.contains('\n'), "{text}: {e}");
    }
}
