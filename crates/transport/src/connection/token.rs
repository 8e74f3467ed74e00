//! The address token, which a server gives in its first packet, and again in another if that one is lost; and a new one
//! when the client's address has changed.

use super::Connection;
use super::outgoing_token::OutgoingToken;
use super::payload::SentFrames;
use crate::streams::Side;
use narrows_wire::frame::TOKEN;
use narrows_wire::{Frame, FrameWriter, Token};

impl Connection {
    /// Writes it, if it is to leave.
    #[inline]
    pub(super) fn give_token(&mut self, writer: &mut FrameWriter<'_>, frames: &mut SentFrames) {
        let payload_source = self.sender.payload_source_mut();
        let Some(token) = &mut payload_source.token else { return };
        let Some(due) = token.due() else { return };
        if writer.frame(&Frame::Extension { kind: TOKEN, body: &due.0 }).is_ok() {
            token.on_sent();
            frames.has_token = true;
        }
    }

    /// One came; the newest counts. A server has no use for one.
    pub(super) fn on_token(&mut self, body: &[u8]) {
        if let (Side::Client, Ok(token)) = (self.agreement.side, body.try_into()) {
            self.token = Some(Box::new(Token(token)));
        }
    }

    /// A token for the client's present address, in place of the last.
    pub fn give_another_token(&mut self, token: Token) {
        if self.is_open() {
            let token = Box::new(OutgoingToken::new(token, false));
            self.sender.payload_source_mut().token = Some(token);
        }
    }

    /// What the server gave for the next handshake, once.
    pub fn take_token(&mut self) -> Option<Token> {
        self.token.take().map(|token| *token)
    }
}
