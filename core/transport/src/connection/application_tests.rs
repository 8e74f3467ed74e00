//! The server's choice of the application protocol, over paths that lose it.

use super::pair_tests::{Net, Pair, config};
use super::{Closed, ConnectionConfig, ConnectionEvent};
use crate::streams::{Read, Side};
use narrows_base::{Duration, Time};
use narrows_wire::ApplicationProtocols;

fn with(names: &[&str]) -> ConnectionConfig {
    let applications = ApplicationProtocols::new(names).unwrap();
    ConnectionConfig { applications, ..config("rrtp+cubic") }
}

/// The first packets are lost, delayed, duplicated and damaged. The server sends data at once, and the client's address
/// changes. The client must learn the server's choice, and must not mistake a packet without it for a refusal.
#[test]
fn the_servers_choice_arrives_over_a_bad_path() {
    for seed in 0..40 {
        let net = Net { loss: 0.3, late: 0.2, twice: 0.1, damaged: 0.1, ..Net::good() };
        let mut pair = Pair::of(&with(&["a", "b"]), &with(&["c", "b"]), net, seed);
        if seed % 2 == 0 {
            pair.old_at = Some(pair.client_at);
            pair.client_at = "203.0.113.9:6000".parse().unwrap();
        }
        let id = pair.server.open(true).unwrap();
        pair.server.write(id, &[7; 20_000]).unwrap();
        pair.server.finish(id).unwrap();
        let question = pair.client.open(true).unwrap();
        pair.client.write(question, b"?").unwrap();
        let mut came = 0;
        let mut buffer = vec![0; 1 << 16];
        let until = pair.now + Duration::from_secs(50);
        let whole = pair.run(until, |pair| {
            while pair.client.accept().is_some() {}
            while let Ok(Read::Bytes(n)) = pair.client.read(id, &mut buffer) {
                came += n;
            }
            came == 20_000
        });
        assert!(whole, "seed {seed}: {came} bytes, {:?}", pair.events);
        assert_eq!(pair.client.application(), Some(Some("b")), "seed {seed}");
        assert_eq!(pair.server.application(), Some(Some("b")), "seed {seed}");
    }
}

/// A server without support for application protocols ignores the client's offer.
#[test]
fn client_leaves_server_without_a_common_application_protocol() {
    let mut pair = Pair::of(&with(&["chat"]), &with(&[]), Net::good(), 1);
    let id = pair.server.open(true).unwrap();
    pair.server.write(id, b"220 ready").unwrap();
    pair.run_for(1.0);
    let closed = pair.events.iter().find_map(|(side, event)| match event {
        ConnectionEvent::Closed(why) if *side == Side::Client => Some(why.clone()),
        _ => None,
    });
    let Some(Closed::NoCommonProtocol { reason }) = closed else { panic!("{:?}", pair.events) };
    assert!(reason.contains("offers: chat; the server speaks: none"), "{reason}");
    let told = ConnectionEvent::Closed(Closed::ByPeer { code: 10, reason });
    assert!(pair.events.contains(&(Side::Server, told)));
}

#[test]
fn a_choice_that_was_not_offered_ends_the_connection() {
    let mut pair = Pair::of(&with(&["a"]), &with(&["a"]), Net::good(), 1);
    pair.client.on_application(Time::from_secs_f64(50.0), b"b");
    let fault = pair.client.event();
    assert!(
        matches!(fault, Some(ConnectionEvent::Closed(Closed::Fault { code: 1, .. }))),
        "{fault:?}"
    );
}
