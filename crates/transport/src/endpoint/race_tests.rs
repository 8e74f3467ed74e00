//! A conversation that comes again: nothing opens twice, and who is connected stays so.

use super::attackers::{NEIGHBOUR, connect, is_alive, net, speak};
use super::hostile_tests::drain;
use super::stub::{CLIENT, Net, SERVER, StubConnection};
use super::{Clients, Handle, ServerKey};
use narrows_base::Duration;

/// An honest client whose connection is to go on, whatever others do.
fn honest(net: &mut Net<StubConnection>) -> Handle {
    let handle = connect(net, NEIGHBOUR);
    net.run_for(1.0);
    handle
}

fn still_talks(net: &mut Net<StubConnection>, handle: Handle) {
    let before = net.at(SERVER).len();
    speak(net, NEIGHBOUR, handle);
    net.run_for(1.0);
    assert!(is_alive(net, NEIGHBOUR, handle));
    assert_eq!(net.at(SERVER).len(), before);
}

/// Every packet of a connection again, in both orders, while it lives, when it is closed and long after.
#[test]
fn a_conversation_that_is_replayed_opens_and_ends_nothing() {
    let mut net = net(3, Clients::Any);
    let handle = net.connect(ServerKey::Any);
    net.run_for(1.0);
    speak(&mut net, CLIENT, handle);
    net.run_for(1.0);
    let client = CLIENT.parse().unwrap();
    let said: Vec<Vec<u8>> =
        net.seen.iter().filter(|s| s.0 == client).map(|s| s.2.clone()).collect();
    assert!(said.len() >= 4, "SYN, START, FINISH, data");
    let replay = |net: &mut Net<StubConnection>| {
        let before = net.at(SERVER).len();
        let mut answers = 0;
        for packet in said.iter().chain(said.iter().rev()) {
            let now = net.now;
            net.at(SERVER).receive(now, client, 0, &mut packet.clone());
            let sent = drain(net.at(SERVER), now);
            // A SYN has its answer, as any stranger's.
            answers += sent.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            assert_eq!(net.at(SERVER).len(), before, "a copy opened or ended a connection");
        }
        let bytes: usize = said.iter().map(Vec::len).sum();
        assert!(answers <= 2 * bytes, "{answers} bytes of answers to {} copied", 2 * bytes);
    };
    replay(&mut net);
    assert!(is_alive(&mut net, CLIENT, handle));
    let now = net.now;
    net.at(CLIENT).close(now, handle, 0, "");
    net.run_for(1.0);
    replay(&mut net);
    for seconds in [5.0, 15.0, 60.0] {
        net.now += Duration::from_secs_f64(seconds);
        net.run_for(0.1);
        replay(&mut net);
    }
    let newcomer = honest(&mut net);
    still_talks(&mut net, newcomer);
}
