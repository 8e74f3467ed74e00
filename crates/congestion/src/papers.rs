//! The controllers of the five papers as printed: the same parts as Narrows' own forms, with the papers' defaults.
//!
//! Narrows adds to most of them; each module's text lists its additions. A name that ends with [`PRINTED`] is the
//! paper's algorithm without them, even where it cannot work. Values that the paper has lost or never gives are
//! Narrows', and docs/papers.md lists them. Westwood has no additions and therefore no second name.

use crate::{jersey, limd, stpd, tear, tear_wireless, tfwc};
use narrows_base::descriptor::{ParamKind, with_default};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Status};

/// The end of a printed form's name: `tfwc-paper` is the printed form of `tfwc`.
pub const PRINTED: &str = "-paper";

/// The first of these words is the default.
const fn choice(words: &'static [&'static str]) -> ParamKind {
    ParamKind::Choice(words)
}

const STPD_PARAMS: [Param; stpd::DESCRIPTOR.params.len()] =
    with_default(stpd::DESCRIPTOR.params, "startup", choice(&["slow", "drain", "pd"]));
/// ST-PD without the drain. Its gains are Narrows' in any form: figures 3.4 and 3.5 have lost their numbers.
pub const STPD: Descriptor = Descriptor {
    name: "stpd-paper",
    summary: "the ST-PD thesis as printed: slow start, then the PD controller",
    params: &STPD_PARAMS,
    ..stpd::DESCRIPTOR
};

const TFWC_PARAMS: [Param; tfwc::DESCRIPTOR.params.len()] = {
    const N: usize = tfwc::DESCRIPTOR.params.len();
    let rate: [Param; N] =
        with_default(tfwc::DESCRIPTOR.params, "rate-mode", choice(&["on", "tcp", "off"]));
    let t0: [Param; N] = with_default(&rate, "t0", choice(&["variance", "ticks", "4rtt"]));
    let never = ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 0.9, default: 0.0 };
    with_default(&t0, "spread", never)
};
/// TFWC with rate mode, equation 5.6 and without skipped opportunities.
pub const TFWC: Descriptor = Descriptor {
    name: "tfwc-paper",
    summary: "Choi 2006 as printed: rate mode below two packets, timeout by equation 5.6",
    params: &TFWC_PARAMS,
    ..tfwc::DESCRIPTOR
};

const JERSEY_PARAMS: [Param; jersey::DESCRIPTOR.params.len()] =
    with_default(jersey::DESCRIPTOR.params, "unmarked", choice(&["radio", "queue"]));
/// Jersey that attributes every unmarked loss to the radio link.
pub const JERSEY: Descriptor = Descriptor {
    name: "jersey-paper",
    summary: "Jersey as Hu and Zha describe it: an unmarked loss never reduces the window",
    params: &JERSEY_PARAMS,
    ..jersey::DESCRIPTOR
};

const RRTP_PARAMS: [Param; limd::DESCRIPTOR.params.len()] =
    with_default(limd::DESCRIPTOR.params, "rise", choice(&["printed", "probe"]));
/// Bounded LIMD without a probe.
pub const RRTP: Descriptor = Descriptor {
    name: "rrtp-paper",
    summary: "the RRTP thesis on a shared network, as printed: its rate does not rise without a hint",
    params: &RRTP_PARAMS,
    ..limd::DESCRIPTOR
};

/// The send rate follows the receive rate; the averages are those of bounded LIMD.
pub const RRTP_LASTHOP: Descriptor = Descriptor {
    name: "rrtp-lasthop-paper",
    summary: "the RRTP thesis on a channel of its own, as printed: the send rate over r",
    source: "the RRTP thesis, section 3.4.2",
    senses: "gaps of arrivals over gaps of departures",
    sets: "pacing rate",
    params: &[],
    status: Status::Differs(
        "keeps a hinted rate as the thesis states; without a hint the rate cannot rise (docs/papers.md)",
    ),
};

const TEAR_PARAMS: [Param; tear::DESCRIPTOR.params.len()] = {
    const N: usize = tear::DESCRIPTOR.params.len();
    let discount: [Param; N] =
        with_default(tear::DESCRIPTOR.params, "discount", choice(&["off", "on"]));
    let yields: [Param; N] = with_default(&discount, "yield", choice(&["off", "on"]));
    with_default(&yields, "undo", choice(&["off", "on"]))
};
/// TEAR without discounting, without less than the mean after a halving, and with every halving kept.
pub const TEAR: Descriptor = Descriptor {
    name: "tear-paper",
    summary: "Jayaram 2001 as printed: a fixed mean of eight epochs sets the rate",
    params: &TEAR_PARAMS,
    ..tear::DESCRIPTOR
};

const TEAR_WIRELESS_PARAMS: [Param; tear_wireless::DESCRIPTOR.params.len()] = {
    const N: usize = tear_wireless::DESCRIPTOR.params.len();
    let fixed: [Param; N] = with_default(
        tear_wireless::DESCRIPTOR.params,
        "thresholds",
        choice(&["fixed", "adaptive"]),
    );
    let discount: [Param; N] = with_default(&fixed, "discount", choice(&["off", "on"]));
    with_default(&discount, "bound", choice(&["off", "on"]))
};
/// TEAR by delay with the thesis's thresholds alone.
pub const TEAR_WIRELESS: Descriptor = Descriptor {
    name: "tear-wireless-paper",
    summary: "Jayaram 2001 by delay, as printed: thresholds of 0.8 s and 1.2 s",
    params: &TEAR_WIRELESS_PARAMS,
    status: Status::Differs(
        "64 kbit/s radio: 37 kbit/s in packets of 1500 B, 23 of 576 B; Jayaram 2001, figure 7.1: 40",
    ),
    ..tear_wireless::DESCRIPTOR
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONTROLLERS, find};
    use narrows_base::{Settings, Spec};

    /// A printed form differs from Narrows' own in its defaults only, and in these.
    #[test]
    fn a_printed_form_is_our_form_with_these_options() {
        let of = [
            ("stpd-paper", "stpd(startup=slow)"),
            ("tfwc-paper", "tfwc(rate-mode=on,t0=variance,spread=0)"),
            ("jersey-paper", "jersey(unmarked=radio)"),
            ("rrtp-paper", "limd(rise=printed)"),
            ("tear-paper", "tear(discount=off,yield=off,undo=off)"),
            ("tear-wireless-paper", "tear-wireless(thresholds=fixed,discount=off,bound=off)"),
        ];
        for (printed, own) in of {
            let (printed, own) = (find(printed).unwrap(), Spec::parse(own).unwrap());
            let entry = find(&own.name).unwrap();
            let (own, params) = (entry.read(&own).unwrap(), printed.descriptor.params);
            let defaults = Settings::defaults(params);
            assert_eq!(params.len(), entry.descriptor.params.len());
            for p in params {
                match p.kind {
                    ParamKind::Choice(words) => {
                        assert_eq!(defaults.choice(p.name), own.choice(p.name), "{}", p.name);
                        let ours = entry.descriptor.params.iter().find(|q| q.name == p.name);
                        let Some(ParamKind::Choice(all)) = ours.map(|q| q.kind) else {
                            panic!("{} is no choice of {}", p.name, entry.descriptor.name)
                        };
                        let sorted = |words: &[&'static str]| {
                            let mut words = words.to_vec();
                            words.sort_unstable();
                            words
                        };
                        assert_eq!(sorted(words), sorted(all), "{}", p.name);
                    }
                    ParamKind::Number { .. } => {
                        assert_eq!(defaults.number(p.name), own.number(p.name), "{}", p.name);
                    }
                    ParamKind::Integers => {}
                }
            }
        }
        let printed = CONTROLLERS.iter().filter(|e| e.descriptor.name.ends_with(PRINTED));
        assert_eq!(printed.count(), of.len() + 1, "and rrtp-lasthop-paper");
    }
}
