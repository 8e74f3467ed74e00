//! Checks link configurations that programs fill in field by field.

use crate::config::{LinkChange, LinkConfig};
use crate::queue;
use narrows_base::field::{at_most, probability};
use narrows_base::rate::MAX_RATE;
use narrows_base::{Duration, FieldError, Rate};

/// The longest delay of a link and the longest run: ten years. Nanoseconds in 64 bits reach 584 years, so sums of such
/// times do not overflow.
pub const MAX_TIME: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The largest bucket of a policer, in bytes.
const MAX_BURST: u64 = 1 << 40;

fn rate(field: &str, rate: Rate) -> Result<(), FieldError> {
    if rate.as_bps() == 0 {
        // A packet whose transmission begins at rate zero would never end, even if the rate is
        // raised later.
        return Err(FieldError::new(field, "0 bit/s: at least 1 bit/s is expected"));
    }
    if rate > MAX_RATE {
        return Err(FieldError::new(field, format!("{rate} is more than {MAX_RATE}")));
    }
    Ok(())
}

impl LinkConfig {
    /// Checks that a link can be built with this configuration.
    ///
    /// # Errors
    /// Names the field that has an impossible value.
    pub fn check(&self) -> Result<(), FieldError> {
        rate("rate", self.rate)?;
        at_most("delay", self.delay, MAX_TIME)?;
        let i = &self.impairments;
        at_most("impairments.jitter", i.jitter, MAX_TIME)?;
        at_most("impairments.reorder_by", i.reorder_by, MAX_TIME)?;
        probability("impairments.reorder", i.reorder)?;
        probability("impairments.jitter_form.correlation", i.jitter_form.correlation)?;
        if let Some(early) = &i.early {
            probability("impairments.early.share", early.share)?;
            probability("impairments.early.correlation", early.correlation)?;
            if early.gap == 0 {
                return Err(FieldError::new("impairments.early.gap", "0: at least 1 is expected"));
            }
        }
        probability("impairments.duplicate", i.duplicate)?;
        probability("impairments.corrupt", i.corrupt)?;
        if let Some(policer) = &i.policer {
            rate("impairments.policer.rate", policer.rate)?;
            if policer.burst == 0 || policer.burst > MAX_BURST {
                let why = format!("{} bytes: 1 to {MAX_BURST} are expected", policer.burst);
                return Err(FieldError::new("impairments.policer.burst", why));
            }
        }
        if i.mtu == Some(0) {
            return Err(FieldError::new("impairments.mtu", "0: at least 1 byte is expected"));
        }
        queue::limit(&self.queue).map_err(|e| FieldError::new("queue.aqm", e.to_string()))?;
        Ok(())
    }
}

impl LinkChange {
    /// Checks that a link can apply this change.
    ///
    /// # Errors
    /// The new value is impossible.
    pub fn check(&self) -> Result<(), FieldError> {
        match self {
            LinkChange::Rate(new) => rate("rate", *new),
            LinkChange::Delay(delay) => at_most("delay", *delay, MAX_TIME),
            LinkChange::Mtu(0) => Err(FieldError::new("mtu", "0: at least 1 byte is expected")),
            LinkChange::Loss(_) | LinkChange::Mtu(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EarlyConfig, Impairments};
    use crate::{JitterForm, Link, PolicerConfig, QueueConfig, QueueLimit};
    use narrows_base::{Packet, RandomKey, Spec};

    #[test]
    fn impossible_value_of_a_link_names_its_field() {
        let good = || LinkConfig::plain(Rate::from_bps(1_000_000), Duration::from_millis(1));
        let impaired = |impairments| LinkConfig { impairments, ..good() };
        let usual = Impairments::default;
        let policed = |bps, burst| {
            let policer = Some(PolicerConfig { rate: Rate::from_bps(bps), burst });
            impaired(Impairments { policer, ..usual() })
        };
        let early = |share, correlation, gap| {
            let early = Some(EarlyConfig { share, correlation, gap });
            impaired(Impairments { early, ..usual() })
        };
        for (field, config) in [
            ("rate", LinkConfig { rate: Rate::from_bps(0), ..good() }),
            ("rate", LinkConfig { rate: Rate::from_bps(u64::MAX), ..good() }),
            ("delay", LinkConfig { delay: Duration::MAX, ..good() }),
            ("impairments.jitter", impaired(Impairments { jitter: Duration::MAX, ..usual() })),
            (
                "impairments.reorder_by",
                impaired(Impairments { reorder_by: Duration::MAX, ..usual() }),
            ),
            ("impairments.reorder", impaired(Impairments { reorder: f64::NAN, ..usual() })),
            (
                "impairments.jitter_form.correlation",
                impaired(Impairments {
                    jitter_form: JitterForm { correlation: 2.0, ..JitterForm::default() },
                    ..usual()
                }),
            ),
            ("impairments.early.share", early(f64::NAN, 0.0, 1)),
            ("impairments.early.correlation", early(0.0, -1.0, 1)),
            ("impairments.early.gap", early(0.0, 0.0, 0)),
            ("impairments.duplicate", impaired(Impairments { duplicate: 7.0, ..usual() })),
            ("impairments.corrupt", impaired(Impairments { corrupt: -0.1, ..usual() })),
            ("impairments.mtu", impaired(Impairments { mtu: Some(0), ..usual() })),
            ("impairments.policer.rate", policed(0, 1500)),
            ("impairments.policer.burst", policed(1000, 0)),
            ("impairments.policer.burst", policed(1000, u64::MAX)),
            (
                "queue.aqm",
                LinkConfig {
                    queue: QueueConfig {
                        limit: QueueLimit::Unlimited,
                        aqm: Some(Spec::named("rde")),
                    },
                    ..good()
                },
            ),
        ] {
            assert_eq!(config.check().unwrap_err().field, field);
            let refused =
                Link::<Packet>::new(&config, RandomKey::from_seed(1)).unwrap_err().to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
        assert!(good().check().is_ok());
        assert_eq!(LinkChange::Rate(Rate::from_bps(0)).check().unwrap_err().field, "rate");
        assert_eq!(LinkChange::Delay(Duration::MAX).check().unwrap_err().field, "delay");
    }
}
