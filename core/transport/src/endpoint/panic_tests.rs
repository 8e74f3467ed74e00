//! A congestion controller that panics ends its own connection, and no other.

use super::stub::{CLIENT, SERVER, StubNetwork, config, connection, random, wish};
use super::{Clients, ConnectRequest, Connections, EndpointConfig, Handle, ServerKey};
use crate::Protocol;
use crate::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use crate::streams::{Read, StreamEvent};
use narrows_base::{Duration, Time};
use narrows_congestion::{Ack, Controller, Feedback, PathEvent, PathHints, SendLimits, Sent};

/// The call that panics.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Call {
    New,
    Sent,
    Ack,
    Tick,
    NextTick,
    SendLimits,
    Feedback,
    PathEvent,
}

const CALLS: [Call; 8] = [
    Call::New,
    Call::Sent,
    Call::Ack,
    Call::Tick,
    Call::NextTick,
    Call::SendLimits,
    Call::Feedback,
    Call::PathEvent,
];

/// A window of ten packets, and a panic in `call` once 20 packets have left.
#[derive(Clone)]
struct Faulty {
    call: Call,
    sent: u64,
}

impl Faulty {
    fn pass(&self, call: Call) {
        assert!(self.call != call || self.sent < 20, "a mistake in {call:?}");
    }
}

impl Controller for Faulty {
    fn on_sent(&mut self, _: &Sent) {
        self.sent += 1;
        self.pass(Call::Sent);
    }
    fn on_ack(&mut self, _: &Ack) {
        self.pass(Call::Ack);
    }
    fn on_tick(&mut self, _: Time) {
        self.pass(Call::Tick);
    }
    fn next_tick(&self) -> Time {
        self.pass(Call::NextTick);
        if self.sent < 20 { Time::NEVER } else { Time::ZERO }
    }
    fn send_limits(&self) -> SendLimits {
        self.pass(Call::SendLimits);
        SendLimits::unpaced(10.0)
    }
    fn feedback_to_receiver(&self) -> Feedback {
        self.pass(Call::Feedback);
        Feedback::NONE
    }
    fn on_path_event(&mut self, _: Time, _: &PathEvent) {
        self.pass(Call::PathEvent);
    }
}

fn faulty(call: Call) -> ConnectionConfig {
    let like = Protocol::with_controller("cubic").unwrap();
    let make = move |_: &_| -> Box<dyn Controller> {
        assert!(call != Call::New, "a mistake in New");
        Box::new(Faulty { call, sent: 0 })
    };
    let protocol = Protocol::custom("mine(version=2)", like.config().clone(), make, None);
    ConnectionConfig { protocol: protocol.unwrap(), ..connection() }
}

/// Stream bytes that the server received.
fn drain(net: &mut StubNetwork<Connection>, looked: &mut usize) -> usize {
    let mut got = 0;
    for (_, handle, event) in net.events.split_off(*looked) {
        if let ConnectionEvent::Stream(StreamEvent::Readable(id)) = event
            && let Some(connection) = net.at(SERVER).connection(handle)
        {
            let mut buffer = [0; 4096];
            while let Ok(Read::Bytes(n)) = connection.read(id, &mut buffer) {
                got += n;
            }
        } else {
            net.events.push((SERVER.parse().unwrap(), handle, event));
            *looked += 1;
        }
    }
    got
}

fn closed(net: &StubNetwork<Connection>, handle: Handle) -> Option<Closed> {
    net.events.iter().find_map(|e| match &e.2 {
        ConnectionEvent::Closed(why) if e.1 == handle => Some(why.clone()),
        _ => None,
    })
}

#[test]
fn a_controller_that_panics_ends_its_own_connection() {
    for call in CALLS {
        let mut net = StubNetwork::<Connection>::new(1);
        let good = net.connect(ServerKey::Any);
        net.run_for(0.2);
        let now = net.now;
        let wanted = ConnectRequest { connection: faulty(call), ..wish(SERVER, ServerKey::Any) };
        let bad = net.at(CLIENT).connect(now, wanted).unwrap();
        net.run_for(0.2);
        let mut streams = Vec::new();
        for handle in [good, bad] {
            let opened =
                net.at(CLIENT).connection(handle).and_then(|c| Some((handle, c.open(true)?)));
            streams.extend(opened);
        }
        let mut looked = net.events.len();
        let mut got = 0;
        let mut written = 0;
        for _ in 0..100 {
            for (handle, id) in &streams {
                let hints = PathHints::default();
                let now = net.now;
                let write = net.at(CLIENT).with(*handle, |c| {
                    c.reconfigure(now, &hints, Default::default());
                    c.write(*id, &[7; 3000]).unwrap_or(0)
                });
                if let Some(Ok(count)) = write
                    && *handle == good
                {
                    written += count;
                }
            }
            net.run_for(0.05);
            got += drain(&mut net, &mut looked);
        }
        let Some(Closed::Panicked { controller, message }) = closed(&net, bad) else {
            panic!("{call:?}: {:?}", closed(&net, bad))
        };
        assert_eq!(controller, "mine(version=2)");
        assert_eq!(message, format!("a mistake in {call:?}"));
        assert!(closed(&net, good).is_none(), "{call:?}");
        assert!(written > 100_000 && got >= written, "{call:?}: {got} of {written}");
        assert_eq!(net.at(CLIENT).len(), 1, "{call:?}: the port has forgotten it");
        assert!(net.at(CLIENT).connection(bad).is_none());
        // The peer gets a RESET for its next packet.
        net.run_for(40.0);
        assert_eq!(net.at(SERVER).len(), net.at(CLIENT).len(), "{call:?}");
    }
}

/// The same at a server, which continues to serve its other clients.
#[test]
fn server_survives_a_panicking_controller() {
    let mut net = StubNetwork::<Connection>::new(2);
    let server = EndpointConfig { connection: faulty(Call::New), ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    net.connect(ServerKey::Any);
    net.run_for(5.0);
    // No state remains, and the client gets a RESET.
    assert_eq!((net.at(SERVER).len(), net.at(SERVER).counts.len()), (0, 0));
    assert_eq!(net.closed(CLIENT), Some(Closed::Reset));
    net.at(SERVER).config.connection = connection();
    let good = net.connect(ServerKey::Any);
    net.run_for(0.5);
    assert!(closed(&net, good).is_none() && net.at(SERVER).len() == 1);
    assert!(net.now < Time::ZERO + Duration::from_secs(200));
}
