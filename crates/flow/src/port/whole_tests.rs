//! Two ports with real connections: what the application asks for arrives.

use super::stand_in::{CLIENT, Net, SERVER, config, connection, dice, wish};
use super::{Clients, Connect, Permit, PortConfig, Ports, ServerKey};
use crate::connection::{Closed, Connection, ConnectionConfig, Event};
use crate::streams::{Read, StreamEvent};
use crate::{Preset, Protocol};
use narrows_base::{Duration, Luck, Spec};

type Whole = Net<Connection>;

/// Nobody says anything, and yet both ends know that they are connected: the client's FINISH was
/// answered, and no patience ends.
#[test]
fn a_silent_connection_is_a_connection() {
    let mut net = Whole::new(1);
    net.connect(ServerKey::Any);
    net.run_for(20.0);
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
    assert_eq!((net.closed(CLIENT), net.closed(SERVER)), (None, None));
    assert_eq!(net.seen.iter().filter(|s| s.2[0] == 0x85).count(), 1);
    // Until the idle timeout.
    net.run_for(40.0);
    assert_eq!(net.closed(CLIENT), Some(Closed::TimedOut));
    assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
}

/// A stream through a path that loses, doubles and reorders, from the first packet on.
#[test]
fn a_stream_arrives_whole_over_a_bad_path() {
    for seed in 0..8 {
        let mut net = Whole::new(seed);
        let mut luck = Luck::seed(seed).named("path").stream();
        let handle = net.connect(ServerKey::Any);
        let text: Vec<u8> = (0..60_000u32).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect();
        let (mut written, mut id, mut got, mut is_whole) = (0, None, Vec::new(), false);
        let mut looked = 0;
        for _ in 0..1200 {
            if is_whole {
                break;
            }
            let until = net.now + Duration::from_millis(50);
            net.run(until, &mut |now, _| {
                let mut copies = Vec::new();
                for _ in 0..=u32::from(luck.chance(0.05)) {
                    if !luck.chance(0.1) {
                        copies.push(now + Duration::from_secs_f64(luck.uniform(0.02, 0.03)));
                    }
                }
                copies
            });
            if let Some(connection) = net.at(CLIENT).connection(handle) {
                id = id.or_else(|| connection.open(true));
                if let Some(id) = id
                    && written < text.len()
                {
                    written += connection.write(id, &text[written..]).unwrap();
                    if written == text.len() {
                        connection.finish(id).unwrap();
                    }
                }
            }
            for (_, handle, event) in net.events.split_off(looked) {
                if let Event::Stream(StreamEvent::Readable(id)) = event {
                    let Some(connection) = net.at(SERVER).connection(handle) else { continue };
                    let mut buffer = [0; 4096];
                    loop {
                        match connection.read(id, &mut buffer).unwrap() {
                            Read::Bytes(n) => got.extend_from_slice(&buffer[..n]),
                            Read::Blocked => break,
                            Read::End => {
                                is_whole = true;
                                break;
                            }
                        }
                    }
                }
            }
            looked = net.events.len();
        }
        assert!(is_whole && got == text, "seed {seed}: {} of {} bytes", got.len(), text.len());
        let now = net.now;
        net.at(CLIENT).close(now, handle, 0, "done");
        net.run_for(60.0);
        assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty(), "seed {seed}");
    }
}

#[test]
fn a_server_that_was_started_again_says_so() {
    let mut net = Whole::new(3);
    let handle = net.connect(ServerKey::Any);
    net.run_for(1.0);
    *net.at(SERVER) = super::Ports::new(
        super::stand_in::config(2, super::Clients::Any),
        super::stand_in::dice(77),
    );
    let now = net.now;
    let client = net.at(CLIENT).connection(handle).unwrap();
    client.send_message(now, b"?", Duration::ZERO).unwrap();
    net.run_for(1.0);
    assert_eq!(net.closed(CLIENT), Some(Closed::Reset));
    assert!(net.at(CLIENT).is_empty());
}

/// The server sends with what the client announced, if it permits that, and the client's receiving
/// end learns it: TFRC and TEAR without their receiver halves would never leave their first rate.
#[test]
fn a_client_chooses_what_a_server_that_permits_it_sends_with() {
    let cases = [
        (Permit::Listed, "tear-reliable", "tear-reliable"),
        (Permit::Listed, "rrtp+tfrc(min-rto=100ms)", "rrtp+tfrc(min-rto=100ms)"),
        (Permit::Own, "rrtp+bbr", "rrtp+cubic"),
        // Listens to nothing; is simulated only; is nothing at all.
        (Permit::Listed, "rrtp+fixed", "rrtp+cubic"),
        (Permit::Listed, "vegas", "rrtp+cubic"),
        (Permit::Listed, "gentle(", "rrtp+cubic"),
    ];
    for (permit, announced, sent_with) in cases {
        let mut net = Whole::new(4);
        let read =
            |label: &str| Protocol::read(&Spec::parse(label).unwrap(), Preset::Rfc, 1500).unwrap();
        let own = ConnectionConfig { protocol: read("rrtp+cubic"), ..connection() };
        let server = PortConfig { permit, connection: own, ..config(2, Clients::Any) };
        *net.at(SERVER) = Ports::new(server, dice(5));
        let protocol = match announced {
            "gentle(" => Protocol::custom_media(
                announced,
                read("rrtp+tfrc").datagram(),
                move |e| read("rrtp+tfrc").controller(e),
                None,
            ),
            label => read(label),
        };
        let wanted = Connect {
            connection: ConnectionConfig { protocol, ..connection() },
            ..wish(SERVER, ServerKey::Any)
        };
        let now = net.now;
        let handle = net.at(CLIENT).connect(now, wanted).unwrap();
        net.run_for(0.5);
        let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
        let c = net.at(SERVER).connection(server).unwrap();
        assert_eq!(c.protocol(), sent_with, "{announced}");
        let id = c.open(true).unwrap();
        let (text, mut written, mut got) = (vec![7; 400_000], 0, 0);
        for _ in 0..100 {
            let c = net.at(SERVER).connection(server).unwrap();
            written += c.write(id, &text[written..]).unwrap();
            net.run_for(0.05);
            let client = net.at(CLIENT).connection(handle).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(Read::Bytes(n)) = client.read(id, &mut buffer) {
                got += n;
            }
        }
        assert_eq!(got, text.len(), "{announced}");
    }
}
