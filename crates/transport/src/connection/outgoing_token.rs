//! An address token on its way to the client: sent until it has arrived.

use narrows_wire::Token;

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
    /// What is to be sent.
    pub fn due(&self) -> Option<&Token> {
        self.due.as_ref()
    }
    /// It leaves.
    pub fn on_sent(&mut self) {
        self.sent = self.due.take();
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
        token.on_sent();
        assert!(!token.must_leave() && token.has_arrived());
        token.on_lost();
        assert!(token.must_leave() && token.due == Some(old), "a lost one leaves again");
        let mut token = OutgoingToken { due: Some(new), sent: Some(old), waits: false };
        token.on_lost();
        assert_eq!(token.due, Some(new));
    }
}
