//! The protocols of the five papers as printed, even where they cannot work. A program adds them to its lists by
//! [`add`], through the same [`Registry`] as parts of its own. The command, the Python package and the experiments do.
//!
//! Narrows adds to most of the papers' algorithms. A name that ends with [`PRINTED`] is the algorithm without these
//! additions: the same parts with other defaults, or bounded LIMD (`limd`), which is only here. Values that the paper
//! has lost or never gives are Narrows', and docs/papers.md lists them. Westwood has no additions and therefore no
//! second name.
//!
//! ```
//! narrows_printed::add(narrows_sim::Registry::new()).install()?;
//! assert!(narrows_sim::protocol::find("tfwc-paper").is_ok());
//! # Ok::<(), narrows_base::SpecError>(())
//! ```

mod limd;

use narrows_base::descriptor::ParamKind;
use narrows_base::{Descriptor, Param, Status};
use narrows_congestion::ControllerEntry;
use narrows_sim::Registry;
use narrows_sim::protocol::built_in;
use narrows_sim::protocol::{PRINTED, ProtocolEntry};
use std::sync::LazyLock;

/// A protocol as printed: Narrows' form with other defaults.
struct PrintedForm {
    /// Without [`PRINTED`]: the name of Narrows' form of the protocol.
    own: &'static str,
    /// The controller of which it is a form.
    of: &'static str,
    summary: &'static str,
    /// Parameters and their defaults.
    defaults: &'static [(&'static str, &'static str)],
    /// By the rows of the experiments that run the printed form.
    status: Status,
}

const FORMS: [PrintedForm; 7] = [
    // Its gains are Narrows' in any form: figures 3.4 and 3.5 have lost their numbers.
    PrintedForm {
        own: "stpd",
        of: "stpd",
        summary: "the ST-PD thesis as printed: slow start, then the PD controller",
        defaults: &[("startup", "slow")],
        status: Status::Differs(
            "window, queue and throughput as in figures 3.8 to 3.13, 4.8 and 4.21 of the thesis; late comers get more than their share (s0-f3.17, s0-f5.20)",
        ),
    },
    PrintedForm {
        own: "tfwc",
        of: "tfwc",
        summary: "Choi 2006 as printed: rate mode below two packets, timeout by equation 5.6",
        defaults: &[("rate-mode", "on"), ("t0", "variance"), ("spread", "0")],
        status: Status::Differs(
            "loss intervals and windows of the paper (s1-f6.2 to s1-f6.6); beside it TCP starves on slow lines and with many flows (s1-f6.7, s1-f6.8)",
        ),
    },
    PrintedForm {
        own: "jersey",
        of: "jersey",
        summary: "Jersey as Hu and Zha describe it: an unmarked loss never reduces the window",
        defaults: &[("unmarked", "radio")],
        status: Status::Differs(
            "with routers that warn, more goodput than Westwood, as Hu and Zha claim (s2-jersey); without them its window does not fall when a buffer overflows",
        ),
    },
    PrintedForm {
        own: "rrtp",
        of: "limd",
        summary: "the RRTP thesis on a shared network, as printed: its rate does not rise without a hint",
        defaults: &[("rise", "printed")],
        status: Status::Differs(
            "told its share it is as fair as the thesis has it (s3-t5.1) and keeps the link busy (s3-t4.2); the rate cannot rise by itself (s3-limd)",
        ),
    },
    PrintedForm {
        own: "rrtp-lasthop",
        of: "limd-lasthop",
        summary: "the RRTP thesis on a channel of its own, as printed: the send rate over r",
        defaults: &[],
        status: Status::Differs(
            "keeps a hinted rate as the thesis states (s3-t4.2); without a hint the rate cannot rise; given RTT and loss rate change nothing (s3-f4.6)",
        ),
    },
    PrintedForm {
        own: "tear",
        of: "tear",
        summary: "Jayaram 2001 as printed: a fixed mean of eight epochs sets the rate",
        defaults: &[("discount", "off"), ("yield", "off"), ("undo", "off")],
        status: Status::Differs(
            "beside one TCP as Jayaram 2001 (s4-f4.5); beside several it takes more than its share where losses are random (s4-f4.9)",
        ),
    },
    PrintedForm {
        own: "tear-wireless",
        of: "tear-wireless",
        summary: "Jayaram 2001 by delay, as printed: thresholds of 0.8 s and 1.2 s",
        defaults: &[("thresholds", "fixed"), ("discount", "off"), ("bound", "off")],
        status: Status::Differs(
            "64 kbit/s radio: 37 kbit/s in packets of 1500 B, 23 of 576 B; Jayaram 2001, figure 7.1: 40",
        ),
    },
];

/// The controllers: `limd`, and the printed forms.
pub static CONTROLLERS: LazyLock<Vec<ControllerEntry>> = LazyLock::new(|| {
    let forms = FORMS.iter().filter_map(PrintedForm::controller);
    [limd::ENTRY].into_iter().chain(forms).collect()
});

/// Adds the papers' controllers and protocols to a registry.
pub fn add(registry: Registry) -> Registry {
    let registry = CONTROLLERS.iter().fold(registry, |r, entry| r.controller(*entry));
    FORMS.iter().filter_map(PrintedForm::protocol).fold(registry, Registry::protocol)
}

impl PrintedForm {
    fn name(&self) -> &'static str {
        // Leaked once per process.
        String::leak(format!("{}{PRINTED}", self.own))
    }

    fn controller(&self) -> Option<ControllerEntry> {
        // Reading the whole list would end the time in which parts can be added.
        let listed = narrows_congestion::CONTROLLERS.built_in().iter();
        let mut all = listed.chain(&[limd::ENTRY, limd::LASTHOP]);
        let mut entry = *all.find(|e| e.descriptor.name == self.of)?;
        entry.descriptor = Box::leak(Box::new(Descriptor {
            name: self.name(),
            summary: self.summary,
            params: with_defaults(entry.descriptor.params, self.defaults),
            status: self.status,
            ..*entry.descriptor
        }));
        Some(entry)
    }

    /// Narrows' form of the protocol over the printed controller. The RRTP thesis repairs by NACKs.
    fn protocol(&self) -> Option<ProtocolEntry> {
        let mut entry = *built_in().find(|p| p.name == self.own)?;
        entry.name = self.name();
        entry.summary = self.summary;
        entry.controller = entry.name;
        Some(if self.own.starts_with("rrtp") { entry.with_nacks() } else { entry })
    }
}

/// The same parameters with other defaults. A parameter or word that does not exist changes nothing; a test finds it.
fn with_defaults(params: &'static [Param], defaults: &[(&str, &'static str)]) -> &'static [Param] {
    let mut all = params.to_vec();
    for (name, value) in defaults {
        for param in all.iter_mut().filter(|p| p.name == *name) {
            match &mut param.kind {
                ParamKind::Choice(words) => {
                    let others = words.iter().filter(|word| *word != value);
                    *words = Vec::leak([*value].into_iter().chain(others.copied()).collect());
                }
                ParamKind::Number { default, .. } => *default = value.parse().unwrap_or(*default),
                ParamKind::Integers => {}
            }
        }
    }
    Vec::leak(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;
    use narrows_congestion::fuzz::{FuzzCase, variants};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: 200,
            ..Default::default()
        })]

        #[test]
        fn no_legal_events_break_any_controller(
            case in proptest::collection::vec(any::<u8>(), 0..3000)
                .prop_map(|b| FuzzCase::from_bytes(&b)),
        ) {
            for entry in CONTROLLERS.iter() {
                for settings in variants(entry) {
                    case.put(entry, &settings);
                }
            }
        }
    }

    /// Every column of limd's series is in its list of variables, and the list has no other.
    #[test]
    fn every_series_of_limd_is_listed() {
        let mut shown = BTreeSet::new();
        for seed in 0..40 {
            let mut random = RandomKey::from_seed(seed).stream();
            let bytes: Vec<u8> = (0..3000).map(|_| random.bits() as u8).collect();
            for settings in variants(&limd::ENTRY) {
                shown.extend(FuzzCase::from_bytes(&bytes).put(&limd::ENTRY, &settings));
            }
        }
        let listed: BTreeSet<&str> = limd::ENTRY.variables.iter().map(|v| v.name).collect();
        assert_eq!(listed, shown);
    }
}
