//! A bottleneck link, both directions, with each flow's own links before and after it.
//!
//! ```text
//!   sender --access--> [queue | rate] --delay--> (loss) --egress--> receiver
//!          <--access--          reverse-…         <--egress--
//! ```

use crate::access_link::AccessLink;
use crate::link_direction::{LinkDirection, bdp_packets};
use crate::values;
use narrows_base::{Duration, SpecError};
use narrows_link::QueueLimit;

/// Limit on the default host delay: a tick of an old scheduler (100 Hz), however slow the link is.
pub const MAX_HOST_DELAY: Duration = Duration::from_millis(10);

/// A bottleneck with each flow's own links before and after it.
#[derive(Clone, Debug)]
pub struct BottleneckLink {
    /// The direction of data.
    pub forward: LinkDirection,
    /// The direction of acknowledgements.
    pub reverse: LinkDirection,
    /// Each flow's own link before the bottleneck.
    pub access: Option<AccessLink>,
    /// Each flow's own link after the bottleneck.
    pub egress: Option<AccessLink>,
    /// Each data packet leaves its host up to this much later; `None` for the default.
    pub host_delay: Option<Duration>,
}

impl BottleneckLink {
    /// The sum of all one-way delays in both directions; ranges count with their middle.
    pub fn base_rtt(&self) -> Duration {
        let own = |side: &Option<AccessLink>| {
            side.map_or(Duration::ZERO, |s| s.mean_delay().saturating_mul(2))
        };
        self.forward.delay + self.reverse.delay + own(&self.access) + own(&self.egress)
    }

    /// The bottleneck alone, for real relays and emulators with one link per direction. The delays of `access` and
    /// `egress` (the middle of ranges) are added to its own. Since these links are faster than the bottleneck, their
    /// only other effect on one flow is the spacing of its packets.
    ///
    /// # Errors
    /// One of them is slower than the bottleneck.
    pub fn folded(mut self) -> Result<BottleneckLink, SpecError> {
        for (name, side) in [("access", self.access.take()), ("egress", self.egress.take())] {
            let Some(side) = side else { continue };
            for way in [&mut self.forward, &mut self.reverse] {
                way.delay += side.mean_delay();
                if (side.least_rate().as_bps() as f64) < way.mean_bps() {
                    return Err(SpecError::new(format!(
                        "{name}= must be faster than the link here: there is one link each way, which \
                         takes over its delay"
                    )));
                }
            }
        }
        Ok(self)
    }

    /// The default host delay: one packet's transmission time on the bottleneck, at most [`MAX_HOST_DELAY`].
    pub fn usual_host_delay(&self, packet_bytes: u32) -> Duration {
        let seconds = 8.0 * f64::from(packet_bytes) / self.forward.mean_bps();
        Duration::from_secs_f64(seconds.min(MAX_HOST_DELAY.as_secs_f64()))
    }

    /// The same link with its queues as numbers of packets or bytes, never in BDPs.
    #[must_use]
    pub fn resolved(self, packet_bytes: u32) -> BottleneckLink {
        let rtt = self.base_rtt();
        let [forward, reverse] =
            [self.forward, self.reverse].map(|way| way.resolved(rtt, packet_bytes));
        BottleneckLink { forward, reverse, ..self }
    }

    /// One line for readers: rate, base RTT, BDP, buffer, loss.
    pub fn describe(&self, packet_bytes: u32) -> String {
        let rtt = self.base_rtt();
        let bdp = bdp_packets(self.forward.mean_bps(), rtt, packet_bytes, 1.0);
        let rate = match &self.forward.trace {
            Some((_, t)) => format!("{:.3} Mbit/s on average (trace)", t.mean_bps() / 1e6),
            None => values::rate_text(self.forward.rate),
        };
        let buffer = match self.forward.limit(rtt, packet_bytes) {
            QueueLimit::Unlimited => "unlimited".to_string(),
            QueueLimit::Packets(n) => format!("{n} packets"),
            QueueLimit::Bytes(n) => format!("{n} B"),
            QueueLimit::Either { packets, bytes } => format!("{packets} packets or {bytes} B"),
        };
        let managed =
            self.forward.aqm.as_ref().map_or(String::new(), |aqm| format!(" under {aqm}"));
        let loss = if self.forward.loss.is_empty() {
            "no random loss".to_string()
        } else {
            format!("loss {}", short_loss(&self.forward))
        };
        format!(
            "{rate}, base RTT {rtt}, bandwidth-delay product {bdp} packets, buffer {buffer}{managed}, {loss}"
        )
    }
}

fn short_loss(way: &LinkDirection) -> String {
    let text = values::loss_text(&way.loss);
    match text.strip_prefix("uniform(").and_then(|t| t.strip_suffix(')')) {
        Some(p) if !p.contains(['(', '+', '=']) => p.to_string(),
        _ => text,
    }
}
