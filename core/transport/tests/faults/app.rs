//! The applications: the client sends a request on each of several streams, and the server responds
//! with as many bytes as the request names. Both act only on events.

use super::world::{EndIndex, World};
use narrows_base::{Duration, Time};
use narrows_transport::connection::{Closed, Connection, ConnectionEvent, PathStatus};
use narrows_transport::endpoint::{ConnectRequest, Endpoint, Handle};
use narrows_transport::streams::{Read, StreamEvent};
use std::collections::{BTreeMap, BTreeSet};

/// Byte `at` of stream `id`; the directions differ.
fn byte(seed: u64, id: u64, answer: bool, at: u64) -> u8 {
    let key = seed.wrapping_mul(31).wrapping_add(id * 2 + u64::from(answer));
    ((at ^ (at >> 8) ^ (at >> 16)).wrapping_mul(31).wrapping_add(key.wrapping_mul(77)) >> 1) as u8
}

/// One direction of a stream.
#[derive(Debug, Default)]
pub struct Half {
    pub wanted: u64,
    pub done: u64,
    pub ended: bool,
}

/// A stream at one end.
#[derive(Debug, Default)]
pub struct Work {
    pub send: Half,
    pub receive: Half,
    /// The request's first bytes, which give the length of the response.
    pub head: Vec<u8>,
}

/// Bytes at the beginning of a request.
pub const HEAD: u64 = 8;

impl Work {
    pub fn write(&mut self, seed: u64, answer: bool, id: u64, head: u64, c: &mut Connection) {
        let send = &mut self.send;
        while send.done < send.wanted {
            let most = (send.wanted - send.done).min(4096);
            let data = |at: u64| match head.to_be_bytes().get(at as usize) {
                Some(b) if !answer => *b,
                _ => byte(seed, id, answer, at),
            };
            let chunk: Vec<u8> = (send.done..send.done + most).map(data).collect();
            match c.write(id, &chunk) {
                Ok(0) | Err(_) => return,
                Ok(n) => send.done += n as u64,
            }
        }
        if !send.ended {
            send.ended = c.finish(id).is_ok();
        }
    }
    /// Reads the available bytes and compares them.
    pub fn read(&mut self, seed: u64, answer: bool, id: u64, c: &mut Connection) {
        let mut buffer = [0; 8192];
        while !self.receive.ended {
            match c.read(id, &mut buffer) {
                Ok(Read::Bytes(n)) => {
                    for (at, b) in (self.receive.done..).zip(&buffer[..n]) {
                        if at < HEAD && !answer {
                            self.head.push(*b);
                        } else {
                            assert_eq!(*b, byte(seed, id, answer, at), "byte {at} of stream {id}");
                        }
                    }
                    self.receive.done += n as u64;
                }
                Ok(Read::End) => self.receive.ended = true,
                _ => return,
            }
        }
    }
}

type Served = BTreeMap<u64, Work>;

/// State of one connection attempt of the client.
#[derive(Debug)]
pub struct Attempt {
    handle: Handle,
    work: BTreeMap<u64, Work>,
    is_connected: bool,
    pub is_whole: bool,
    pub closed: Option<Closed>,
}

/// Both applications.
#[derive(Debug)]
pub struct App {
    seed: u64,
    /// Bytes of each request and of its response.
    pub wanted: Vec<(u64, u64)>,
    /// Status of each path of the client, path 0 first.
    pub paths: Vec<PathStatus>,
    pub attempts: Vec<Attempt>,
    /// The server's open connections.
    pub served: BTreeMap<Handle, Served>,
    /// Reasons for the end of connections at the server.
    pub ends: Vec<Closed>,
    /// Received messages, which must be different.
    messages: BTreeSet<(Handle, Vec<u8>)>,
    looked: usize,
    /// Whether both ends update their keys as often as permitted, and the number of updates.
    changes_keys: bool,
    pub updates: u64,
}

impl App {
    pub fn new(seed: u64, wanted: Vec<(u64, u64)>, changes_keys: bool) -> App {
        App {
            seed,
            wanted,
            paths: Vec::new(),
            attempts: Vec::new(),
            served: BTreeMap::new(),
            ends: Vec::new(),
            messages: BTreeSet::new(),
            looked: 0,
            changes_keys,
            updates: 0,
        }
    }
    /// The server's process ended and lost its state.
    pub fn forget_server(&mut self) {
        self.served.clear();
        self.messages.clear();
    }
    /// Begins an attempt.
    pub fn connect(&mut self, world: &mut World, wish: ConnectRequest) {
        let Some((local, port)) = world.port(EndIndex::CLIENT) else { return };
        let handle = port.connect(local, wish).expect("few connections");
        self.attempts.push(Attempt {
            handle,
            work: BTreeMap::new(),
            is_connected: false,
            is_whole: false,
            closed: None,
        });
    }

    /// For the message of a failure: the state of all connections.
    pub fn state(&self, world: &mut World) -> String {
        let mut lines = format!("{self:?}");
        let client = self.attempts.last().map(|a| (EndIndex::CLIENT, a.handle));
        for (end, handle) in
            client.into_iter().chain(self.served.keys().map(|h| (EndIndex::SERVER, *h)))
        {
            let Some((_, port)) = world.port(end) else { continue };
            let Some(c) = port.connection(handle) else { continue };
            lines += &format!("\n{end:?}: {c:?} {:?}", c.stats());
            c.watch(&mut |name, value| lines += &format!(" {name} {value}"));
        }
        lines
    }

    /// Handles the events so far.
    pub fn look(&mut self, world: &mut World) {
        for (end, handle, event) in world.events.split_off(self.looked) {
            let Some((local, port)) = world.port(end) else { continue };
            if let Some(c) = port.connection(handle) {
                assert_eq!(c.stats().unproved, 0, "a report of an honest peer that nothing proves");
            }
            if self.changes_keys && port.connection(handle).is_some_and(|c| c.update_keys()) {
                self.updates += 1;
            }
            match end {
                EndIndex::SERVER => self.at_server(port, handle, event),
                _ => self.at_client(local, port, handle, event),
            }
        }
        self.looked = world.events.len();
    }

    fn at_client(
        &mut self,
        now: Time,
        port: &mut Endpoint,
        handle: Handle,
        event: ConnectionEvent,
    ) {
        let Some(attempt) = self.attempts.iter_mut().find(|a| a.handle == handle) else {
            panic!("an event of an unknown connection: {event:?}");
        };
        assert_eq!(attempt.closed, None, "{event:?} after the end");
        if let ConnectionEvent::Closed(why) = event {
            attempt.closed = Some(why);
            return;
        }
        let Some(c) = port.connection(handle) else { return };
        match event {
            ConnectionEvent::Connected(key) => {
                assert_eq!(key, *narrows_wire::StaticKey::new([2; 32]).unwrap().public());
                attempt.is_connected = true;
                for n in 0..3u8 {
                    let expiry = Duration::from_secs(u64::from(n));
                    c.send_message(now, &[n; 100], expiry).expect("few and short");
                }
                for (up, down) in &self.wanted {
                    let Some(id) = c.open(false) else { continue };
                    let send = Half { wanted: HEAD + up, ..Half::default() };
                    let work = attempt.work.entry(id).or_insert(Work { send, ..Work::default() });
                    work.write(self.seed, false, id, *down, c);
                }
                assert_eq!(attempt.work.len(), self.wanted.len(), "as many as are permitted");
                for (path, status) in (0..).zip(&self.paths) {
                    assert!(c.set_path_status(now, path, *status), "an agreed path");
                }
                for path in 1..self.paths.len() as u8 {
                    assert!(port.open_path(now, handle, path), "an agreed path");
                }
            }
            ConnectionEvent::Stream(StreamEvent::Readable(id) | StreamEvent::Writable(id)) => {
                let at = attempt.work.keys().position(|k| *k == id).expect("a stream of ours");
                let down = self.wanted[at].1;
                if let Some(work) = attempt.work.get_mut(&id) {
                    work.write(self.seed, false, id, down, c);
                    work.read(self.seed, true, id, c);
                }
            }
            _ => {}
        }
        let answers = attempt.work.values().map(|w| &w.receive);
        if attempt.is_connected && answers.clone().all(|r| r.ended) && !attempt.is_whole {
            let wanted: Vec<u64> = self.wanted.iter().map(|w| w.1).collect();
            let got: Vec<u64> = answers.map(|r| r.done).collect();
            assert_eq!(got, wanted, "all ended, not all whole");
            attempt.is_whole = true;
            port.close(now, handle, 256, "done");
        }
    }

    fn at_server(&mut self, port: &mut Endpoint, handle: Handle, event: ConnectionEvent) {
        if let ConnectionEvent::Connected(_) = event {
            let before = self.served.insert(handle, BTreeMap::new());
            assert!(before.is_none(), "connected twice");
            return;
        }
        let work = self.served.get_mut(&handle).expect("an event of an unknown connection");
        if let ConnectionEvent::Closed(why) = event {
            self.ends.push(why);
            self.served.remove(&handle);
            return;
        }
        let Some(c) = port.connection(handle) else { return };
        let mut ready = Vec::new();
        match event {
            ConnectionEvent::Stream(StreamEvent::Opened) => {
                while let Some(id) = c.accept() {
                    work.insert(id, Work::default());
                    ready.push(id);
                }
            }
            ConnectionEvent::Stream(StreamEvent::Readable(id) | StreamEvent::Writable(id)) => {
                ready.push(id)
            }
            ConnectionEvent::Message => {
                while let Some(message) = c.receive_message() {
                    assert!(message.len() == 100 && message.iter().all(|b| *b == message[0]));
                    assert!(self.messages.insert((handle, message)), "a message came twice");
                }
            }
            _ => {}
        }
        for id in ready {
            let Some(one) = work.get_mut(&id) else { continue };
            one.read(self.seed, false, id, c);
            if one.receive.ended {
                let head = one.head.as_slice().try_into().expect("a request has a beginning");
                one.send.wanted = u64::from_be_bytes(head);
                one.write(self.seed, true, id, 0, c);
            }
        }
    }
}
