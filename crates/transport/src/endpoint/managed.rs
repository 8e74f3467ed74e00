//! The interface through which an endpoint uses [`Connection`], so that the endpoint can be tested without one.

use crate::connection::{Connection, Event, NewConnection, Transmit};
use narrows_base::Time;
use narrows_wire::Token;
use std::net::SocketAddr;

/// A connection as its endpoint sees it. Methods mean the same as those of [`Connection`].
pub trait ManagedConnection: Sized {
    /// Keys are known. It begins with a packet that asks for a report (a PING, if there is nothing
    /// better), sent again until one comes: so the client, which repeats FINISH until a packet of
    /// the server opens, gets one, and so does a server whose application is silent.
    fn begin(now: Time, beginning: NewConnection<'_>) -> Self;
    /// A short packet came; whether it was authentic.
    fn receive(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) -> bool;
    /// The next datagrams.
    fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit>;
    /// When to call `on_timeout`.
    fn next_timeout(&self) -> Time;
    /// A due time has come.
    fn on_timeout(&mut self, now: Time);
    /// What happened.
    fn event(&mut self) -> Option<Event>;
    /// Closes.
    fn close(&mut self, now: Time, code: u64, reason: &str);
    /// The peer's address said RESET with this token.
    fn on_reset(&mut self, token: &[u8; 16]);
    /// Where the peer is.
    fn remote(&self) -> SocketAddr;
    /// The address token that the server gave since this was asked last.
    fn take_token(&mut self) -> Option<Token> {
        None
    }
    /// Reads an EARLY-START's frames; false if they are not what they must be.
    fn take_early(&mut self, frames: &[u8]) -> bool {
        let _ = frames;
        false
    }
    /// The client's address has changed, and this token is for the new one.
    fn give_another_token(&mut self, token: Token) {
        let _ = token;
    }
    /// Whether it can be forgotten.
    fn is_drained(&self) -> bool;
    /// Packets sent of which nothing is known.
    fn in_flight(&self) -> u64;
    /// Bytes of the heap that it holds, about.
    fn memory(&self) -> usize;
    /// Bytes of streams and messages that it has moved, either way: what the peer is known to have,
    /// and what the application took.
    fn moved(&self) -> u64;
    /// The congestion controller that it sends with.
    fn protocol(&self) -> &str;
}

impl ManagedConnection for Connection {
    fn begin(now: Time, b: NewConnection<'_>) -> Connection {
        Connection::new(now, b)
    }
    fn receive(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) -> bool {
        Connection::receive(self, now, from, ecn, datagram)
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
    fn event(&mut self) -> Option<Event> {
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
