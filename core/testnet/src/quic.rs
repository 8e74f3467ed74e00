//! A node made of a state machine of quinn's form. noq is a fork of quinn, so one text serves both; where they differ,
//! the module of each defines `receive`, `smoothed_rtt`, `window` and `BATCH`.

/// Defines `QuicNode`, `Application` and `Transfer` for a stack.
macro_rules! quic_node {
    ($proto:ident, $name:literal) => {
        use crate::{Datagram, Ecn, Node};
        use bytes::{Bytes, BytesMut};
        use std::collections::VecDeque;
        use std::net::SocketAddr;
        use std::time::Instant;
        use $proto::{
            Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event, Side,
            StreamEvent, StreamId, Transmit, VarInt,
        };

        /// Bytes written to a stream at once.
        const BLOCK: [u8; 16 << 10] = [0; 16 << 10];
        /// Streams of endless data.
        const STREAMS: usize = 32;

        /// The user of a connection.
        pub trait Application {
            /// Its turn: after arrivals and timers, before packets are sent.
            fn turn(&mut self, now: Instant, connection: &mut Connection);
            /// Whether it has finished.
            fn done(&self) -> bool;
            /// A number that scripts check; see [`Node::variable`].
            fn variable(&self, name: &str) -> Option<f64> {
                let _ = name;
                None
            }
            /// An instruction of a script; see [`Node::command`].
            fn command(&mut self, text: &str) -> bool {
                let _ = text;
                false
            }
        }

        #[doc = concat!("An endpoint of ", $name, " with one connection, and the application that uses it.")]
        #[derive(Debug)]
        pub struct QuicNode<A> {
            endpoint: Endpoint,
            local: SocketAddr,
            connection: Option<(ConnectionHandle, Connection)>,
            outgoing: VecDeque<Datagram>,
            buffer: Vec<u8>,
            /// The application above the connection.
            pub application: A,
        }

        impl<A: Application> QuicNode<A> {
            /// A server at this address. It accepts one connection.
            pub fn server(local: SocketAddr, endpoint: Endpoint, application: A) -> QuicNode<A> {
                let outgoing = VecDeque::new();
                let buffer = Vec::new();
                QuicNode { endpoint, local, connection: None, outgoing, buffer, application }
            }

            /// A client at this address, with the connection that its endpoint has begun.
            pub fn client(
                local: SocketAddr,
                endpoint: Endpoint,
                connection: (ConnectionHandle, Connection),
                application: A,
            ) -> QuicNode<A> {
                let server = QuicNode::server(local, endpoint, application);
                QuicNode { connection: Some(connection), ..server }
            }

            /// The connection; absent before a server accepts.
            pub fn connection(&mut self) -> Option<&mut Connection> {
                self.connection.as_mut().map(|(_, connection)| connection)
            }

            fn queue(&mut self, transmit: &Transmit) {
                let mut payload = std::mem::take(&mut self.buffer);
                payload.truncate(transmit.size);
                let source = transmit.src_ip.unwrap_or(self.local.ip());
                let source = SocketAddr::new(source, self.local.port());
                let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
                let datagram = Datagram::udp(source, transmit.destination, payload).with_ecn(ecn);
                self.outgoing.push_back(datagram.with_segment_size(transmit.segment_size));
            }
        }

        impl<A: Application> Node for QuicNode<A> {
            fn handle(&mut self, now: Instant, datagram: Datagram) {
                let ecn = EcnCodepoint::from_bits(datagram.ecn.bits());
                let bytes = Bytes::from(datagram.payload);
                let bytes = bytes.try_into_mut().unwrap_or_else(|b| BytesMut::from(&b[..]));
                let remote = datagram.source;
                let local = datagram.destination.ip();
                let buffer = &mut self.buffer;
                match receive(&mut self.endpoint, now, remote, local, ecn, bytes, buffer) {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        let own = self.connection.as_mut().filter(|(own, _)| *own == handle);
                        if let Some((_, connection)) = own {
                            connection.handle_event(event);
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                        let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
                        self.connection = accepted.ok();
                    }
                    Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                    Some(DatagramEvent::Response(transmit)) => self.queue(&transmit),
                    None => {}
                }
                self.buffer.clear();
            }

            fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
                if let Some(datagram) = self.outgoing.pop_front() {
                    return Some(datagram);
                }
                let (handle, connection) = self.connection.as_mut()?;
                if connection.poll_timeout().is_some_and(|at| at <= now) {
                    connection.handle_timeout(now);
                }
                self.application.turn(now, connection);
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
                let transmit = connection.poll_transmit(now, BATCH, &mut self.buffer)?;
                self.queue(&transmit);
                self.outgoing.pop_front()
            }

            fn next_timeout(&mut self) -> Option<Instant> {
                self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
            }

            fn done(&self) -> bool {
                self.application.done()
            }

            /// `rtt` (smoothed, in seconds) and `cwnd` (in bytes) of the connection, else the application's.
            fn variable(&self, name: &str) -> Option<f64> {
                let connection = self.connection.as_ref().map(|(_, connection)| connection);
                match name {
                    "rtt" => Some(connection.map_or(0.0, smoothed_rtt)),
                    "cwnd" => connection.map(window),
                    _ => self.application.variable(name),
                }
            }

            fn command(&mut self, _now: Instant, text: &str) -> bool {
                self.application.command(text)
            }
        }

        /// Sends bytes to another `Transfer`.
        ///
        /// Variables: `bytes` read or written, `finished` (1 when all has arrived and was acknowledged). The sender closes
        /// the connection. Commands of a sender made by [`open`](Transfer::open): `write N` adds bytes, `stop` closes the
        /// connection.
        #[derive(Debug)]
        pub struct Transfer {
            side: Side,
            /// Streams of a sender that accept bytes.
            writable: VecDeque<StreamId>,
            /// Bytes to send; the receiver's is 0.
            size: u64,
            /// Whether the stream ends after them.
            ends: bool,
            is_stopped: bool,
            /// Bytes written or read.
            pub bytes: u64,
            /// When all was acknowledged, or read.
            pub finished: Option<Instant>,
            /// Why the connection ended, if by an error.
            pub error: Option<String>,
        }

        impl Transfer {
            /// The client's side, which sends so many bytes on one stream.
            pub fn send(size: u64) -> Transfer {
                Transfer { side: Side::Client, size, ..Transfer::receive() }
            }

            /// The client's side, whose bytes come by commands. Endless data, `write 18446744073709551615` before
            /// the handshake has ended, take 32 streams: the default window of a stream allows 100 Mbit/s at 100 ms.
            pub fn open() -> Transfer {
                Transfer { ends: false, ..Transfer::send(0) }
            }

            /// The server's side, which reads.
            pub fn receive() -> Transfer {
                Transfer {
                    side: Side::Server,
                    writable: VecDeque::new(),
                    size: 0,
                    ends: true,
                    is_stopped: false,
                    bytes: 0,
                    finished: None,
                    error: None,
                }
            }

            fn write(&mut self, connection: &mut Connection) {
                while let Some(id) = self.writable.front().copied() {
                    let left = (self.size - self.bytes).min(BLOCK.len() as u64) as usize;
                    if left == 0 {
                        if self.ends {
                            let _ = connection.send_stream(id).finish();
                            self.writable.clear();
                        }
                        return;
                    }
                    match connection.send_stream(id).write(&BLOCK[..left]) {
                        Ok(written) => self.bytes += written as u64,
                        Err(_) => {
                            self.writable.pop_front();
                        }
                    }
                }
            }

            fn read(&mut self, now: Instant, id: StreamId, connection: &mut Connection) {
                let mut stream = connection.recv_stream(id);
                let Ok(mut chunks) = stream.read(true) else { return };
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => self.bytes += chunk.bytes.len() as u64,
                        Ok(None) => {
                            self.finished = self.finished.or(Some(now));
                            break;
                        }
                        Err(_) => break,
                    }
                }
                let _ = chunks.finalize();
            }
        }

        impl Application for Transfer {
            fn turn(&mut self, now: Instant, connection: &mut Connection) {
                while let Some(event) = connection.poll() {
                    match event {
                        Event::Connected if self.side == Side::Client => {
                            let streams = if self.size == u64::MAX && !self.ends { STREAMS } else { 1 };
                            let opened = (0..streams).map_while(|_| connection.streams().open(Dir::Uni));
                            self.writable = opened.collect();
                        }
                        Event::ConnectionLost { reason } if self.finished.is_none() => {
                            self.error = Some(reason.to_string());
                        }
                        Event::Stream(StreamEvent::Opened { dir }) => {
                            while let Some(id) = connection.streams().accept(dir) {
                                self.read(now, id, connection);
                            }
                        }
                        Event::Stream(StreamEvent::Readable { id }) => self.read(now, id, connection),
                        Event::Stream(StreamEvent::Writable { id }) => self.writable.push_back(id),
                        Event::Stream(StreamEvent::Finished { .. }) => {
                            self.finished = Some(now);
                            connection.close(now, VarInt::from_u32(0), Bytes::new());
                        }
                        _ => {}
                    }
                }
                if self.is_stopped && self.finished.is_none() {
                    self.finished = Some(now);
                    connection.close(now, VarInt::from_u32(0), Bytes::new());
                }
                self.write(connection);
            }

            fn done(&self) -> bool {
                self.finished.is_some() || self.error.is_some()
            }

            fn variable(&self, name: &str) -> Option<f64> {
                match name {
                    "bytes" => Some(self.bytes as f64),
                    "finished" => Some(f64::from(u8::from(self.finished.is_some()))),
                    _ => None,
                }
            }

            fn command(&mut self, text: &str) -> bool {
                if self.ends {
                    return false;
                }
                let bytes = text.strip_prefix("write ").and_then(|n| n.trim().parse::<u64>().ok());
                self.size = self.size.saturating_add(bytes.unwrap_or_default());
                self.is_stopped |= text == "stop";
                bytes.is_some() || text == "stop"
            }
        }
    };
}
pub(crate) use quic_node;
