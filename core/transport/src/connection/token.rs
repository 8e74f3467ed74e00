//! Address tokens. A server sends one in its first packet, again if that is lost, and a new one when the client's
//! address has changed.

use super::Connection;
use super::outgoing_token::OutgoingToken;
use super::payload::SentFrames;
use crate::streams::Side;
use narrows_wire::frame::TOKEN;
use narrows_wire::{Frame, FrameWriter, Token};

impl Connection {
    /// Writes the token, if it is due.
    #[inline]
    pub(super) fn give_token(&mut self, writer: &mut FrameWriter<'_>, frames: &mut SentFrames) {
        let payload = &mut self.payload;
        let Some(token) = &mut payload.token else { return };
        let Some(due) = token.due() else { return };
        if writer.frame(&Frame::Extension { kind: TOKEN, body: &due.0 }).is_ok() {
            token.on_sent();
            frames.has_token = true;
        }
    }

    /// Stores a received token in place of an older one. A server ignores it.
    pub(super) fn on_token(&mut self, body: &[u8]) {
        if let (Side::Client, Ok(token)) = (self.agreement.side, body.try_into()) {
            self.token = Some(Box::new(Token(token)));
        }
    }

    /// Sends a token for the client's present address, in place of the last.
    pub fn give_another_token(&mut self, token: Token) {
        if self.is_open() {
            let token = Box::new(OutgoingToken::new(token, false));
            self.payload.token = Some(token);
        }
    }

    /// The server's token for the next handshake; `None` once taken.
    pub fn take_token(&mut self) -> Option<Token> {
        self.token.take().map(|token| *token)
    }
}
