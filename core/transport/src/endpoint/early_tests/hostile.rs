//! Early data under attack: copies, forgeries, damage, foreign addresses, floods.

use super::*;

/// A captured first packet is never accepted again. This holds at this server, at once or later, from any address,
/// after its restart, and at another server with the same key.
#[test]
fn a_copied_first_packet_is_never_taken() {
    let neighbour = "198.51.100.7:6000";
    let mut world = World::acquainted(20);
    world.get();
    let copy = world.early_start();
    let connections = world.net.at(SERVER).len();
    // The connection is known and confirmed, so there is no reply.
    assert_eq!(world.sends(CLIENT, &copy).0, []);
    assert_eq!(world.sends(neighbour, &copy).0, []);
    let cookie = (vec![0x82], narrows_wire::packet::SYN_ECHO_BYTES);
    assert_eq!(world.sends("203.0.113.9:5000", &copy), cookie);
    for later in [45.0, 3600.0, 100_000.0] {
        world.run_quietly(later);
        for from in [CLIENT, neighbour, "203.0.113.9:5000"] {
            assert_eq!(world.sends(from, &copy), cookie, "{from}, {later} s later");
        }
    }
    assert!(world.net.at(SERVER).len() <= connections);
    // The same key and address, but another secret.
    for secret in [77, 78] {
        *world.net.at(SERVER) = Connections::new(server(true), random(secret));
        assert_eq!(world.sends(CLIENT, &copy), cookie);
        assert!(world.net.at(SERVER).is_empty());
    }
    assert_eq!(world.requests.len(), 1);
}

impl World {
    /// Lets `seconds` pass in one step.
    fn run_quietly(&mut self, seconds: f64) {
        self.net.run_for(seconds);
        self.serve();
    }
}

/// An attacker delivers a copy first, from another port. The client learns that its request was accepted, and does not
/// send it again.
#[test]
fn a_copy_that_comes_first_is_the_only_one_taken() {
    let mut world = World::acquainted(21);
    let handle = world.start();
    let mut first = None;
    world.run_over(0.002, &mut |now, bytes| {
        first = Some(bytes.to_vec());
        vec![now + Duration::from_millis(20)]
    });
    let first = first.unwrap();
    assert_eq!(first[0], EARLY_START);
    let now = world.net.now;
    let neighbour = "198.51.100.7:6000".parse().unwrap();
    world.net.at(SERVER).receive(now, neighbour, 0, &mut first.clone());
    let path = &mut |now: Time, _: &[u8]| vec![now + Duration::from_millis(20)];
    let (_, is_taken) = world.answered(handle, path).expect("an answer");
    assert!(is_taken);
    assert_eq!(world.requests.len(), 1);
}

/// An attacker delays the first packet until the client has given up on it, or longer.
#[test]
fn delayed_early_packet_is_refused_later() {
    for seconds in [5.0, 11.0, 60.0, 4000.0] {
        let mut world = World::acquainted(22);
        let handle = world.start();
        let mut held = Vec::new();
        // All packets that the client sends meanwhile are lost.
        world.run_over(0.5, &mut |_, bytes| {
            held.push(bytes.to_vec());
            Vec::new()
        });
        let now = world.net.now;
        world.net.at(CLIENT).close(now, handle, 0, "");
        world.run_quietly(seconds);
        let (kinds, _) = world.sends(CLIENT, &held[0]);
        // Within the tolerance for clocks it looks like a slow packet.
        assert_eq!(kinds.first() == Some(&EARLY_ECHO), seconds < 9.0, "{seconds} s: {kinds:x?}");
        assert_eq!(world.requests.len(), usize::from(seconds < 9.0));
        // The token is used in either case.
        assert!(world.sends("203.0.113.9:1", &held[0]).0 == [0x82]);
    }
}

/// An attacker can forge a SYN-ECHO. The client then sends START, but still accepts EARLY-ECHO.
#[test]
fn a_forged_refusal_does_not_send_the_request_twice() {
    let mut world = World::acquainted(23);
    let handle = world.start();
    world.run(0.002);
    let nonce: [u8; 16] = world.early_start()[6..22].try_into().unwrap();
    let mut forged = narrows_wire::packet::syn_echo(&nonce, &narrows_wire::Cookie([7; 36]));
    let now = world.net.now;
    let from = SERVER.parse().unwrap();
    world.net.at(CLIENT).receive(now, from, 0, &mut forged);
    let path = &mut |now: Time, _: &[u8]| vec![now + Duration::from_millis(20)];
    let (took, is_taken) = world.answered(handle, path).expect("an answer");
    assert!(is_taken && took < 0.05, "{took}");
    world.run(5.0);
    assert_eq!(world.requests.len(), 1);
}

/// If any byte of the first packet is changed, or it is truncated anywhere, the server accepts only the client's own
/// request.
#[test]
fn damaged_early_packets_harm_no_connection() {
    for at in (0..1200).step_by(61).chain([5, 6, 22, 23, 57, 58, 90, 1199]) {
        for is_cut in [false, true] {
            let mut world = World::acquainted(40);
            let handle = world.start();
            let mut first = None;
            let from = CLIENT.parse().unwrap();
            world.run_over(0.002, &mut |_, bytes| {
                first.get_or_insert(bytes.to_vec());
                Vec::new()
            });
            let mut packet = first.unwrap();
            if is_cut {
                packet.truncate(at)
            } else {
                packet[at] ^= 0x10
            }
            let now = world.net.now;
            world.net.at(SERVER).receive(now, from, 0, &mut packet);
            assert_eq!(world.requests.len(), 0);
            let path = &mut |now: Time, _: &[u8]| vec![now + Duration::from_millis(20)];
            let (took, _) = world.answered(handle, path).expect("an answer");
            assert!(took < 0.5, "byte {at}: {took}");
            assert_eq!(world.requests.len(), 1);
        }
    }
}

/// An unconfirmed address gets less than three times the bytes received from it, with any response of the server's
/// application. The connection is then dropped.
#[test]
fn an_address_that_is_silent_gets_little() {
    let answers = [(0, false), (100, false), (100_000, false), (100_000, true)];
    // Packet by packet, and many in one call.
    for (answer, closes, segments) in
        [1, 10].into_iter().flat_map(|n| answers.map(|(a, c)| (a, c, n)))
    {
        let mut world = World::acquainted(60);
        world.net.segments = segments;
        world.answer = vec![1; answer];
        world.start();
        let mut bytes = BTreeMap::new();
        let mut packets = 0;
        world.run_over(0.05, &mut |now, _| {
            packets += 1;
            if packets == 1 { vec![now + Duration::from_millis(20)] } else { Vec::new() }
        });
        let now = world.net.now;
        if closes {
            let handle =
                world.net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
            world.net.at(SERVER).close(now, handle, 400, &"x".repeat(300));
        }
        assert_eq!((world.requests.len(), world.net.at(SERVER).unconfirmed), (1, 1));
        // The client disappears, and its later packets are lost.
        *world.net.at(CLIENT) = Connections::new(config(1, Clients::None), random(7));
        let is_lost = &mut |_: Time, _: &[u8]| Vec::new();
        world.run_over(21.0, is_lost);
        for (from, to, packet) in &world.net.seen {
            if *from == SERVER.parse().unwrap() {
                *bytes.entry(*to).or_insert(0) += packet.len();
            }
        }
        let sent = bytes[&CLIENT.parse().unwrap()];
        assert!(sent <= 3 * 1200, "{answer}, {segments}: {sent}");
        assert!(answer < 1000 || sent > 2400, "{answer}: {sent}");
        assert_eq!(world.net.at(SERVER).unconfirmed, 0);
        world.run_over(10.0, is_lost);
        assert!(world.net.at(SERVER).is_empty());
        let closed = world.net.closed(SERVER);
        assert_eq!(closed, Some(if closes { Closed::Locally } else { Closed::TimedOut }));
    }
}

/// A burst of first packets with collected tokens takes a limited number of places, and displaces no connection.
#[test]
fn a_burst_of_first_packets_takes_few_places() {
    let mut settings = server(true);
    settings.limits.handshake_rate = 10_000;
    settings.limits.handshake_rate_of_source = 10_000;
    let mut world = World::served_by(70, settings);
    let mut packets = Vec::new();
    for n in 0..40u8 {
        let now = world.net.now;
        let from = CLIENT.parse::<SocketAddr>().unwrap();
        let server = world.net.at(SERVER);
        let token = server.gate.token(now, from.ip(), &mut *server.entropy);
        let client = world.net.at(CLIENT);
        client.tokens.insert(now, SERVER.parse().unwrap(), token);
        let mut connect = request();
        connect.suite = Suite::ALL[usize::from(n % 2)];
        let handle = client.connect(now, connect).unwrap();
        let mut buffer = [0; 1500];
        let sent = client.transmit(now, &mut buffer, 1).unwrap();
        packets.push(buffer[..sent.size].to_vec());
        client.close(now, handle, 0, "");
        while client.event().is_some() {}
    }
    let before = world.net.at(SERVER).len();
    let mut taken = 0;
    for packet in &packets {
        taken += usize::from(world.sends(CLIENT, packet).0.contains(&EARLY_ECHO));
    }
    // Of 64 places.
    assert_eq!((taken, world.net.at(SERVER).unconfirmed), (16, 16));
    assert!(world.net.at(SERVER).len() <= before + 16);
    world.run_over(30.0, &mut |_, _| Vec::new());
    assert_eq!((world.net.at(SERVER).unconfirmed, world.net.at(SERVER).len()), (0, 0));
}
