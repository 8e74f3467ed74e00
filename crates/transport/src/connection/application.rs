//! Negotiation of the application protocol. The client offers a list in its FINISH. The server chooses one before the
//! connection begins, and names it in its packets until one of them is acknowledged. If no packet names a protocol, the
//! server does not support the negotiation, or has no application protocols.

use super::{Closed, Connection};
use crate::streams::Side;
use narrows_base::Time;
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
}

impl Connection {
    /// The agreed application protocol, or `Some(None)` if neither end names any. `None` at a client that offered
    /// several, until the server's choice arrives.
    pub fn application(&self) -> Option<Option<&str>> {
        self.agreement.agreed()
    }

    /// Handles APPLICATION, in which the server names its choice among the client's offers.
    pub(super) fn on_application(&mut self, now: Time, name: &[u8]) {
        let agreement = &mut *self.agreement;
        if agreement.side == Side::Server || !agreement.is_pending {
            return;
        }
        let chosen = agreement.offered.iter().find(|offered| offered.as_bytes() == name);
        match chosen {
            Some(chosen) => {
                agreement.agreed = Some(chosen.into());
                (agreement.is_pending, agreement.news) = (false, true);
            }
            None => self.fault(now, 1, "an application protocol that was not offered"),
        }
    }

    /// Closes a client's connection if a packet without the server's choice arrived: it would name one if there were
    /// any.
    pub(super) fn on_no_application(&mut self, now: Time) {
        let agreement = &*self.agreement;
        if agreement.side == Side::Client && agreement.is_pending {
            let reason = refusal(&agreement.offered, &ApplicationProtocols::default());
            let why = Closed::NoCommonProtocol { reason: reason.clone() };
            self.begin_closing(now, NO_COMMON_PROTOCOL, &reason, why);
        }
    }

    /// Writes APPLICATION in every packet until one of them is acknowledged.
    #[inline]
    pub(super) fn say_application(&mut self, writer: &mut FrameWriter<'_>) {
        if !self.agreement.is_pending || self.agreement.side == Side::Client {
            return;
        }
        if self.payload.announced {
            self.agreement.is_pending = false;
        } else if let Some(name) = &self.agreement.agreed {
            // There is space, because the first packets are empty.
            let _ = writer.frame(&Frame::Extension { kind: APPLICATION, body: name.as_bytes() });
        }
    }
}
