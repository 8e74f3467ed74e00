//! The interface through which an endpoint uses [`Connection`], so that the endpoint can be tested without one.

use crate::connection::{Connection, ConnectionEvent, NewConnection, Transmit};
use narrows_base::Time;
use narrows_congestion::Dispersion;
use narrows_wire::{ConnectionId, Token};
use std::net::SocketAddr;

/// A connection as its endpoint uses it. Methods are those of [`Connection`], unless documented here.
pub trait ManagedConnection: Sized {
    /// Begins a connection whose keys are known. It must begin with an ack-eliciting packet (a PING if there are no
    /// data), and repeat it until a report arrives. The client repeats FINISH until a packet of the server opens, so a
    /// server must send one even if its application does not.
    fn begin(now: Time, beginning: NewConnection<'_>) -> Self;
    /// Handles a short packet with the ID of this path. Returns whether it was authentic.
    fn receive_on(
        &mut self,
        now: Time,
        path: u8,
        from: SocketAddr,
        ecn: u8,
        datagram: &mut [u8],
    ) -> bool;
    /// A further path for which this end needs a connection ID.
    fn wanted_path(&mut self) -> Option<u8> {
        None
    }
    /// Sets this end's connection ID for a further path; false if it is not used.
    fn give_path_id(&mut self, now: Time, path: u8, id: ConnectionId) -> bool {
        let _ = (now, path, id);
        false
    }
    /// The dispersion of the handshake's probes.
    fn on_dispersion(&mut self, now: Time, dispersion: &Dispersion);
    /// The next datagrams to send.
    fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit>;
    /// When to call `on_timeout`.
    fn next_timeout(&self) -> Time;
    /// Handles a timer that is due.
    fn on_timeout(&mut self, now: Time);
    /// The next event, if any.
    fn event(&mut self) -> Option<ConnectionEvent>;
    /// Starts closing with this code and reason.
    fn close(&mut self, now: Time, code: u64, reason: &str);
    /// Handles a RESET with this token from the peer's address.
    fn on_reset(&mut self, token: &[u8; 16]);
    /// The peer's address.
    fn remote(&self) -> SocketAddr;
    /// The server's address token, if one arrived since the last call.
    fn take_token(&mut self) -> Option<Token> {
        None
    }
    /// Reads an EARLY-START's frames; false if they are not permitted there.
    fn take_early(&mut self, frames: &[u8]) -> bool {
        let _ = frames;
        false
    }
    /// Sends this token, because the client's address has changed.
    fn give_another_token(&mut self, token: Token) {
        let _ = token;
    }
    /// Whether it can be dropped.
    fn is_drained(&self) -> bool;
    /// Packets sent with an unknown outcome.
    fn in_flight(&self) -> u64;
    /// Approximate bytes on the heap.
    fn memory(&self) -> usize;
    /// Bytes of streams and messages acknowledged by the peer, plus those that the application received.
    fn moved(&self) -> u64;
    /// Label of the protocol for sending.
    fn protocol(&self) -> &str;
}

impl ManagedConnection for Connection {
    fn begin(now: Time, b: NewConnection<'_>) -> Connection {
        Connection::new(now, b)
    }
    fn receive_on(
        &mut self,
        now: Time,
        path: u8,
        from: SocketAddr,
        ecn: u8,
        datagram: &mut [u8],
    ) -> bool {
        Connection::receive_on(self, now, path, from, ecn, datagram)
    }
    fn wanted_path(&mut self) -> Option<u8> {
        Connection::wanted_path(self)
    }
    fn give_path_id(&mut self, now: Time, path: u8, id: ConnectionId) -> bool {
        Connection::give_path_id(self, now, path, id)
    }
    fn on_dispersion(&mut self, now: Time, dispersion: &Dispersion) {
        Connection::on_dispersion(self, now, dispersion);
    }
    fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        Connection::transmit(self, now, buffer, segments)
    }
    fn next_timeout(&self) -> Time {
        Connection::next_timeout(self)
    }
    fn on_timeout(&mut self, now: Time) {
        Connection::on_timeout(self, now);
    }
    fn event(&mut self) -> Option<ConnectionEvent> {
        Connection::event(self)
    }
    fn close(&mut self, now: Time, code: u64, reason: &str) {
        Connection::close(self, now, code, reason);
    }
    fn on_reset(&mut self, token: &[u8; 16]) {
        Connection::on_reset(self, token);
    }
    fn remote(&self) -> SocketAddr {
        Connection::remote(self)
    }
    fn take_token(&mut self) -> Option<Token> {
        Connection::take_token(self)
    }
    fn take_early(&mut self, frames: &[u8]) -> bool {
        Connection::take_early(self, frames)
    }
    fn give_another_token(&mut self, token: Token) {
        Connection::give_another_token(self, token);
    }
    fn is_drained(&self) -> bool {
        Connection::is_drained(self)
    }
    fn in_flight(&self) -> u64 {
        self.in_flight()
    }
    fn memory(&self) -> usize {
        size_of::<Connection>() + Connection::memory(self)
    }
    fn moved(&self) -> u64 {
        Connection::moved(self)
    }
    fn protocol(&self) -> &str {
        Connection::protocol(self)
    }
}
