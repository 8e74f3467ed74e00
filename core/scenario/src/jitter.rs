//! The syntax of jitter and of reordering: `jitter=normal(10ms,correlation=25%)`, `reorder=early(25%,gap=5)`.

use crate::values::{delay, time_text};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::{self, Unit};
use narrows_base::{Duration, Param, Settings, Spec, SpecError};
use narrows_link::{Distribution, EarlyConfig, Impairments, JitterForm};

/// Names of the distributions. The last one is also written without a name, as a time alone, unless its order is mixed.
const DISTRIBUTIONS: [(&str, Distribution); 6] = [
    ("uniform", Distribution::Uniform),
    ("normal", Distribution::Normal),
    ("pareto", Distribution::Pareto),
    ("paretonormal", Distribution::ParetoNormal),
    ("wifi", Distribution::Wifi),
    ("late", Distribution::Late),
];

const CORRELATION: Param = Param {
    name: "correlation",
    help: "part of the random number before in each",
    kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.0 },
    origin: "Linux netem",
};

const JITTER: [Param; 3] = [
    Param {
        name: "size",
        help: "standard deviation; of uniform and late the largest value, of wifi the mean",
        // Ten years.
        kind: ParamKind::Number { unit: Unit::Seconds, min: 0.0, max: 315_360_000.0, default: 0.0 },
        origin: "Linux netem",
    },
    CORRELATION,
    Param {
        name: "order",
        help: "kept: a packet waits for those before it; mixed: it overtakes them",
        kind: ParamKind::Choice(&["kept", "mixed"]),
        origin: "netem mixes it",
    },
];

const EARLY: [Param; 3] = [
    Param {
        name: "share",
        help: "of the packets, sent without delay",
        kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.0 },
        origin: "Linux netem",
    },
    CORRELATION,
    Param {
        name: "gap",
        help: "N: at most one of N packets is early",
        kind: ParamKind::Number { unit: Unit::Packets, min: 1.0, max: 1e15, default: 1.0 },
        origin: "tc",
    },
];

/// `10ms`, or a distribution with its size and its options.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub(crate) fn read(text: &str) -> Result<(Duration, JitterForm), SpecError> {
    if text.trim().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return Ok((delay(text)?, JitterForm::default()));
    }
    let spec = Spec::parse(text)?;
    let named = DISTRIBUTIONS.iter().find(|(name, _)| *name == spec.name);
    let (_, distribution) = *named.ok_or_else(|| {
        SpecError::unknown("jitter", &spec.name, &DISTRIBUTIONS.map(|(name, _)| name))
    })?;
    let settings = Settings::read(&spec, &JITTER)?;
    if !settings.given("size") {
        return Err(SpecError::new(format!("'{text}' has no size: {}(10ms)", spec.name)));
    }
    let form = JitterForm {
        distribution,
        correlation: settings.number("correlation"),
        overtakes: settings.choice("order") == "mixed",
    };
    Ok((Duration::from_secs_f64(settings.number("size")), form))
}

/// Writes the jitter in a form that [`read`] accepts.
pub(crate) fn text(size: Duration, form: &JitterForm) -> String {
    if *form == JitterForm::default() {
        return time_text(size);
    }
    let named = DISTRIBUTIONS.iter().find(|(_, d)| *d == form.distribution);
    let mut text = format!("{}({}", named.map_or("late", |(name, _)| name), time_text(size));
    if form.correlation > 0.0 {
        text += &format!(",correlation={}", form.correlation);
    }
    if form.overtakes {
        text += ",order=mixed";
    }
    text + ")"
}

/// Sets the reordering of `1%/5ms` or `early(25%,correlation=50%,gap=5)`.
///
/// # Errors
/// An invalid text; the message gives the expected form.
pub(crate) fn set_reorder(i: &mut Impairments, text: &str) -> Result<(), SpecError> {
    const FORMS: &str =
        "reordering is written as 1%/5ms: how often, how late; or as early(25%,gap=5)";
    if let Some((often, late)) = text.rsplit_once('/') {
        i.reorder = units::share("reorder", often)?;
        i.reorder_by = delay(late)?;
        i.early = None;
        return Ok(());
    }
    let spec = Spec::parse(text)?;
    if spec.name != "early" {
        return Err(SpecError::new(format!("'{text}': {FORMS}")));
    }
    let settings = Settings::read(&spec, &EARLY)?;
    if !settings.given("share") {
        return Err(SpecError::new(format!("'{text}' has no share: {FORMS}")));
    }
    i.reorder = 0.0;
    i.reorder_by = Duration::ZERO;
    i.early = Some(EarlyConfig {
        share: settings.number("share"),
        correlation: settings.number("correlation"),
        gap: settings.number("gap") as u64,
    });
    Ok(())
}

/// Writes the reordering in a form that [`set_reorder`] accepts; `None` without reordering.
pub(crate) fn reorder_text(i: &Impairments) -> Option<String> {
    match i.early {
        Some(early) => {
            let mut text = format!("early({}", early.share);
            if early.correlation > 0.0 {
                text += &format!(",correlation={}", early.correlation);
            }
            if early.gap > 1 {
                text += &format!(",gap={}", early.gap);
            }
            Some(text + ")")
        }
        None => (i.reorder > 0.0)
            .then(|| format!("{}/{}", units::share_text(i.reorder), time_text(i.reorder_by))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reads_back() {
        for form in [
            "10ms",
            "uniform(10ms)",
            "pareto(2ms,correlation=0.5)",
            "late(1ms,order=mixed)",
            "wifi(7ms)",
        ] {
            let (size, read_form) = read(form).unwrap();
            assert_eq!(text(size, &read_form), form);
        }
        assert_eq!(read("normal(10ms,correlation=25%)").unwrap().1.correlation, 0.25);
        for form in ["0.01/5ms", "12.3%/5ms", "early(0.25)", "early(0.25,correlation=0.5,gap=5)"] {
            let mut i = Impairments::default();
            set_reorder(&mut i, form).unwrap();
            assert_eq!(reorder_text(&i).as_deref(), Some(form));
        }
    }

    #[test]
    fn malformed_jitter_or_reordering_gives_one_line() {
        for (wrong, hint) in [
            ("normal", "no size: normal(10ms)"),
            ("normal()", "no size"),
            ("norml(10ms)", "did you mean 'normal'"),
            ("normal(10ms,correlation=2)", "correlation"),
            ("normal(-1ms)", "size"),
            ("normal(10ms,order=odd)", "order"),
            ("10", "unit"),
        ] {
            let e = read(wrong).unwrap_err().to_string();
            assert!(e.contains(hint) && e.lines().count() == 1, "{wrong}: {e}");
        }
        for (wrong, hint) in [
            ("0.5/5ms", "reorder '0.5' may be 0.5% or 50%"),
            ("5%", "early(25%,gap=5)"),
            ("early", "no share"),
            ("early(5%,gap=0)", "gap"),
        ] {
            let e = set_reorder(&mut Impairments::default(), wrong).unwrap_err().to_string();
            assert!(e.contains(hint), "{wrong}: {e}");
        }
    }
}
