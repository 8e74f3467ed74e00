//! Negotiation of the application protocol. The client offers a list in its FINISH. The server chooses one before the
//! connection begins, and names it in its packets until one of them is acknowledged. If no packet names a protocol, the
//! server does not support the negotiation, or has no application protocols.

use crate::streams::Side;
use narrows_wire::frame::APPLICATION;
use narrows_wire::{ApplicationProtocols, Frame, FrameWriter};

/// CLOSE code: the ends have no application protocol in common.
pub(crate) const NO_COMMON_PROTOCOL: u64 = 10;
/// Limit on the reason in bytes: a refusal is at most three times as long as the shortest FINISH.
const MAX_REASON: usize = 190;

/// The reason sent with a refusal.
pub(crate) fn refusal(offered: &ApplicationProtocols, spoken: &ApplicationProtocols) -> String {
    let mut reason = format!(
        "no common application protocol (the client offers: {offered}; the server speaks: {spoken})"
    );
    // The text is ASCII, so any byte is a character boundary.
    reason.truncate(MAX_REASON);
    reason
}

/// The state of the negotiation at this end.
#[derive(Debug)]
pub(super) struct Agreement {
    offered: ApplicationProtocols,
    agreed: Option<Box<str>>,
    /// Client: it offered a list and the server's choice has not arrived. Server: its choice has not been acknowledged.
    is_pending: bool,
    pub side: Side,
    /// Whether the application must be notified.
    pub news: bool,
}

impl Agreement {
    pub fn new(side: Side, ours: &ApplicationProtocols, peers: &ApplicationProtocols) -> Agreement {
        let agreed: Option<Box<str>> = match side {
            Side::Server => ours.agree(peers).ok().flatten().map(Into::into),
            // If the server refuses the only protocol offered, there is no connection.
            Side::Client if ours.iter().count() == 1 => ours.iter().next().map(Into::into),
            Side::Client => None,
        };
        let is_pending = match side {
            Side::Server => agreed.is_some(),
            Side::Client => !ours.is_empty(),
        };
        Agreement { offered: ours.clone(), agreed, is_pending, side, news: false }
    }

    /// The agreed protocol; `Some(None)` without one, and `None` while the negotiation is pending.
    pub fn agreed(&self) -> Option<Option<&str>> {
        match &self.agreed {
            Some(name) => Some(Some(name)),
            None if self.is_pending => None,
            None => Some(None),
        }
    }

    /// Client: the server names its choice. Returns false if it was not offered.
    pub fn on_choice(&mut self, name: &[u8]) -> bool {
        if self.side == Side::Server || !self.is_pending {
            return true;
        }
        let chosen = self.offered.iter().find(|offered| offered.as_bytes() == name);
        let Some(chosen) = chosen else { return false };
        self.agreed = Some(chosen.into());
        self.is_pending = false;
        self.news = true;
        true
    }
    /// Client: the reason for closing after a packet without the server's choice, which would name one if there were
    /// any.
    pub fn missing_choice(&self) -> Option<String> {
        let is_missing = self.side == Side::Client && self.is_pending;
        is_missing.then(|| refusal(&self.offered, &ApplicationProtocols::default()))
    }
    /// Server: writes APPLICATION in every packet until one of them is acknowledged (`is_announced`).
    #[inline]
    pub fn write(&mut self, is_announced: bool, writer: &mut FrameWriter<'_>) {
        if !self.is_pending || self.side == Side::Client {
            return;
        }
        if is_announced {
            self.is_pending = false;
        } else if let Some(name) = &self.agreed {
            // There is space, because the first packets are empty.
            let _ = writer.frame(&Frame::Extension { kind: APPLICATION, body: name.as_bytes() });
        }
    }
}
