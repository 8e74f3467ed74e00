//! The address token for the client, sent until a packet with it is acknowledged.

use narrows_wire::Token;

/// A server's address token for the client.
#[derive(Debug)]
pub(super) struct OutgoingToken {
    /// Not yet sent, or lost.
    due: Option<Token>,
    /// In flight.
    sent: Option<Token>,
    /// Whether it leaves only together with other frames.
    waits: bool,
}

impl OutgoingToken {
    /// A token to send. If `waits`, it leaves only together with other frames.
    pub fn new(token: Token, waits: bool) -> OutgoingToken {
        OutgoingToken { due: Some(token), sent: None, waits }
    }
    /// The token to send now, if any.
    pub fn due(&self) -> Option<&Token> {
        self.due.as_ref()
    }
    /// Marks the token as in flight.
    pub fn on_sent(&mut self) {
        self.sent = self.due.take();
    }
    /// Permits a packet for the token alone.
    pub fn hurry(&mut self) {
        self.waits = false;
    }
    /// Whether the token needs a packet.
    pub fn must_leave(&self) -> bool {
        self.due.is_some() && !self.waits
    }
    /// Called when a packet with the token is acknowledged: whether no other token waits.
    pub fn has_arrived(&self) -> bool {
        self.due.is_none()
    }
    /// Called when a packet with the token is lost. The token is sent again, unless a newer one waits.
    pub fn on_lost(&mut self) {
        self.due = self.due.take().or(self.sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packet with the last token is lost after the client's address has changed. Only the new token is of use.
    #[test]
    fn a_lost_token_does_not_displace_a_newer_one() {
        let old = Token([1; 36]);
        let new = Token([2; 36]);
        let mut token = OutgoingToken::new(old, true);
        assert!(!token.must_leave() && !token.has_arrived());
        token.hurry();
        assert!(token.must_leave());
        token.on_sent();
        assert!(!token.must_leave() && token.has_arrived());
        token.on_lost();
        assert!(token.must_leave() && token.due == Some(old), "a lost one leaves again");
        let mut token = OutgoingToken { due: Some(new), sent: Some(old), waits: false };
        token.on_lost();
        assert_eq!(token.due, Some(new));
    }
}
