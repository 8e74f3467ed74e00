//! The address token, which a server gives in its first packet, and again in another if that one is lost; and a new one
//! when the client's address has changed.

use super::Connection;
use super::payload::SentFrames;
use crate::streams::Side;
use narrows_wire::frame::TOKEN;
use narrows_wire::{Frame, FrameWriter, Token};

/// A server's token on its way to the client.
#[derive(Debug)]
pub(super) struct OutgoingToken {
    /// To be sent.
    due: Option<Token>,
    /// In flight.
    sent: Option<Token>,
    /// It leaves with other frames only.
    waits: bool,
}

impl OutgoingToken {
    /// To be sent; with other frames only, if it `waits`.
    pub fn new(token: Token, waits: bool) -> OutgoingToken {
        OutgoingToken { due: Some(token), sent: None, waits }
    }
    /// It need not wait any more.
    pub fn hurry(&mut self) {
        self.waits = false;
    }
    /// Whether a packet is needed for it.
    pub fn must_leave(&self) -> bool {
        self.due.is_some() && !self.waits
    }
    /// A packet with it arrived: whether nothing is left to send.
    pub fn has_arrived(&self) -> bool {
        self.due.is_none()
    }
    /// A packet with it was lost. If there is a newer one, only that is of use.
    pub fn on_lost(&mut self) {
        self.due = self.due.take().or(self.sent);
    }
}

impl Connection {
    /// Writes it, if it is to leave.
    #[inline]
    pub(super) fn give_token(&mut self, writer: &mut FrameWriter<'_>, frames: &mut SentFrames) {
        let payload_source = self.sender.payload_source_mut();
        let Some(token) = &mut payload_source.token else { return };
        let Some(due) = token.due else { return };
        if writer.frame(&Frame::Extension { kind: TOKEN, body: &due.0 }).is_ok() {
            (token.due, token.sent) = (None, Some(due));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The packet with the last token is lost after the client's address has changed: only the new one is of use to it.
    #[test]
    fn a_lost_token_does_not_displace_a_newer_one() {
        let (old, new) = (Token([1; 36]), Token([2; 36]));
        let mut token = OutgoingToken::new(old, true);
        assert!(!token.must_leave() && !token.has_arrived());
        token.hurry();
        assert!(token.must_leave());
        (token.due, token.sent) = (None, Some(old));
        assert!(!token.must_leave() && token.has_arrived());
        token.on_lost();
        assert!(token.must_leave() && token.due == Some(old), "a lost one leaves again");
        let mut token = OutgoingToken { due: Some(new), sent: Some(old), waits: false };
        token.on_lost();
        assert_eq!(token.due, Some(new));
    }
}
