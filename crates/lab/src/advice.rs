//! What to use and why: a sentence or two from the numbers.
//!
//! 1. Goodput first, among those that keep delay and copies sane and leave others their share.
//! 2. Whoever cannot be told apart from the best (95%), or comes within 2% of it, is equally good; the
//!    least delay times copies wins.
//! 3. The reasons come from the same numbers: what was lost where, what the queue cost.

use crate::outcome::{Estimate, Outcome, ProtocolOutcome};
use crate::stats::differ;
use narrows_base::Status;

/// A mean RTT may be so many times the smallest, plus [`SLACK_S`], before it counts as bloat.
const BLOAT: f64 = 2.0;
/// Delay in seconds that nobody minds, however short the path.
const SLACK_S: f64 = 0.05;
/// More bytes sent per byte delivered than this is waste.
const WASTE: f64 = 1.5;
/// A sane protocol below this part of the best goodput is no alternative to it.
const MUCH_LESS: f64 = 0.75;
/// A difference in goodput below this is not worth any delay.
const NEAR: f64 = 0.02;
/// A larger share than this, against others, starves them.
const UNKIND: f64 = 0.75;

/// One recommendation; empty if nothing finished.
pub fn recommend(outcome: &Outcome) -> String {
    let all: Vec<&ProtocolOutcome> =
        outcome.results.iter().filter(|r| mean(r, "goodput_bps") > 0.0).collect();
    let Some(best) = most(&all) else {
        return if outcome.results.is_empty() {
            String::new()
        } else {
            "None: no protocol delivered a single byte here.".into()
        };
    };
    let floor = all.iter().map(|r| mean(r, "rtt_s_min")).fold(f64::INFINITY, f64::min);
    let sane: Vec<&ProtocolOutcome> = all
        .iter()
        .copied()
        .filter(|r| why_not(r, floor).is_none())
        .filter(|r| mean(r, "goodput_bps") >= MUCH_LESS * mean(best, "goodput_bps"))
        .collect();
    let top = most(&sane).unwrap_or(best);
    let pool = if sane.is_empty() { &all } else { &sane };
    let equals: Vec<&ProtocolOutcome> = pool
        .iter()
        .copied()
        .filter(|r| {
            let near = mean(r, "goodput_bps") >= (1.0 - NEAR) * mean(top, "goodput_bps");
            near || !differ(goodput(r), goodput(top)) || r.protocol == top.protocol
        })
        .collect();
    let chosen = equals.iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).copied().unwrap_or(top);
    let mut text = first_sentence(chosen, &equals, pool, floor);
    if chosen.protocol != best.protocol
        && differ(goodput(best), goodput(chosen))
        && let Some(why) = why_not(best, floor)
    {
        text += &format!(
            " {} delivers {} more, but {why}.",
            best.protocol,
            percent(mean(best, "goodput_bps") / mean(chosen, "goodput_bps") - 1.0)
        );
    }
    if let Some(why) = why_not(chosen, floor) {
        text += &format!(" Mind that {why}.");
    }
    if let Some(cause) = cause(&all, chosen) {
        text += &format!(" {cause}");
    }
    if chosen.status == Status::NotValidated.to_string() {
        text += &format!(" {} is not validated against published numbers yet.", chosen.protocol);
    }
    text
}

fn first_sentence(
    chosen: &ProtocolOutcome,
    equals: &[&ProtocolOutcome],
    pool: &[&ProtocolOutcome],
    floor: f64,
) -> String {
    let queueing = (mean(chosen, "rtt_s_mean") - floor).max(0.0);
    let used = mean(chosen, "utilisation");
    let mut text = format!("Use {}: {} goodput", chosen.protocol, rate(goodput(chosen)));
    if used.is_finite() {
        text += &format!(" ({} of the link in use)", percent(used));
    }
    if queueing.is_finite() {
        text += &format!(" with {} ms of queueing on average", round(queueing * 1e3));
    }
    let rest: Vec<&ProtocolOutcome> =
        equals.iter().copied().filter(|r| r.protocol != chosen.protocol).collect();
    if !rest.is_empty() {
        let names: Vec<&str> = rest.iter().take(3).map(|r| r.protocol.as_str()).collect();
        let more = if rest.len() > 3 { " and others" } else { "" };
        let all_above = |name: &str, margin: f64| {
            rest.iter().all(|r| mean(r, name) > mean(chosen, name) + margin)
        };
        let but = if all_above("rtt_s_mean", 1e-3) {
            ", but packets wait longer there"
        } else if all_above("offered_over_delivered", 0.01) {
            ", but more bytes are sent again there"
        } else {
            ""
        };
        return format!(
            "{text}; by goodput {}{more} {}{but}.",
            names.join(", "),
            if rest.iter().any(|r| differ(goodput(r), goodput(chosen))) {
                let verb = if rest.len() == 1 { "differs" } else { "differ" };
                format!("{verb} from it by {:.0}% at most", NEAR * 100.0)
            } else {
                "cannot be told from it".to_string()
            }
        );
    }
    let next: Vec<&ProtocolOutcome> =
        pool.iter().copied().filter(|r| r.protocol != chosen.protocol).collect();
    if let Some(next) = most(&next) {
        let gain = mean(chosen, "goodput_bps") / mean(next, "goodput_bps") - 1.0;
        let sure = match goodput(next).ci95 {
            Some(_) => "beyond the 95% intervals",
            None => "by a single seed, so take it with care",
        };
        if gain >= 0.0 {
            text += &format!(", {} more than the next, {} ({sure})", percent(gain), next.protocol);
        }
    }
    text + "."
}

/// What a delivered byte costs where goodput is equal: time on the way, times copies sent.
fn cost(r: &ProtocolOutcome) -> f64 {
    mean(r, "rtt_s_mean") * mean(r, "offered_over_delivered")
}

/// What is wrong with a protocol that delivers much.
fn why_not(r: &ProtocolOutcome, floor: f64) -> Option<String> {
    let rtt = mean(r, "rtt_s_mean");
    let waste = mean(r, "offered_over_delivered");
    let share = mean(r, "share");
    if rtt > BLOAT * floor + SLACK_S {
        Some(format!("packets wait {} ms on average", round((rtt - floor) * 1e3)))
    } else if waste > WASTE {
        Some(format!("it sends {waste:.1} bytes for each that arrives"))
    } else if share > UNKIND {
        Some(format!(
            "it takes {} of what all deliver and leaves the others the rest",
            percent(share)
        ))
    } else {
        None
    }
}

/// Why they differ: radio losses that are taken for congestion, or queue drops.
fn cause(all: &[&ProtocolOutcome], chosen: &ProtocolOutcome) -> Option<String> {
    let random = mean(chosen, "random_loss_rate");
    let queue = mean(chosen, "queue_loss_rate");
    // Whoever senses nothing but loss is the one that random losses mislead.
    let misled = all
        .iter()
        .copied()
        .filter(|r| senses(r) == "loss" && r.protocol != chosen.protocol)
        .filter(|r| mean(r, "goodput_bps") < 0.9 * mean(chosen, "goodput_bps"))
        .max_by(|a, b| mean(a, "goodput_bps").total_cmp(&mean(b, "goodput_bps")));
    if random > 1e-4
        && let Some(misled) = misled
    {
        return Some(format!(
            "Why: {} of the packets are lost at random; {} goes by {}, while {} goes by loss alone, \
             takes these for congestion and gets {}.",
            percent(random),
            chosen.protocol,
            senses(chosen).replace("; ", " and ").replace(", ", " and "),
            misled.protocol,
            rate(goodput(misled))
        ));
    }
    if queue > 0.01 && queue > random {
        return Some(format!("It still loses {} of its packets at the queue.", percent(queue)));
    }
    None
}

/// What the protocol's controller senses.
fn senses(r: &ProtocolOutcome) -> &'static str {
    let name = r.protocol.split('(').next().unwrap_or_default();
    let entry = narrows_flow::protocol::find(name);
    entry.and_then(narrows_flow::protocol::Entry::card).map_or("", |card| card.senses)
}

fn most<'a>(pool: &[&'a ProtocolOutcome]) -> Option<&'a ProtocolOutcome> {
    pool.iter().copied().max_by(|a, b| mean(a, "goodput_bps").total_cmp(&mean(b, "goodput_bps")))
}

fn goodput(r: &ProtocolOutcome) -> Estimate {
    r.measure("goodput_bps").unwrap_or(Estimate { mean: f64::NAN, ci95: None })
}

fn mean(r: &ProtocolOutcome, name: &str) -> f64 {
    r.measure(name).map_or(f64::NAN, |e| e.mean)
}

/// `1.43 ± 0.01 Mbit/s`.
pub fn rate(e: Estimate) -> String {
    let (scale, unit) = match e.mean {
        x if x >= 1e9 => (1e9, "Gbit/s"),
        x if x >= 1e6 => (1e6, "Mbit/s"),
        x if x >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    let value = e.mean / scale;
    let digits = if value < 10.0 { 3 } else { 1 };
    match e.ci95 {
        Some(half) => format!("{value:.digits$} ± {:.digits$} {unit}", half / scale),
        None => format!("{value:.digits$} {unit}"),
    }
}

fn percent(x: f64) -> String {
    let p = 100.0 * x;
    if p.abs() < 10.0 { format!("{p:.1}%") } else { format!("{p:.0}%") }
}

fn round(x: f64) -> String {
    if x < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, goodput: f64, rtt: f64) -> ProtocolOutcome {
        let exact = |mean| Estimate { mean, ci95: Some(mean * 1e-4) };
        let measures = [
            ("goodput_bps", goodput),
            ("utilisation", 0.9),
            ("rtt_s_min", 0.1),
            ("rtt_s_mean", rtt),
            ("offered_over_delivered", 1.0),
            ("random_loss_rate", 0.0),
            ("queue_loss_rate", 0.0),
        ];
        ProtocolOutcome {
            protocol: name.into(),
            group: "main".into(),
            digest: 0,
            flows: 1,
            seeds: 10,
            status: String::new(),
            measures: measures.map(|(n, m)| (n, exact(m))).to_vec(),
            per_flow: Vec::new(),
            series: Vec::new(),
        }
    }
    fn advice(results: Vec<ProtocolOutcome>) -> String {
        recommend(&Outcome {
            command: "compare",
            command_line: String::new(),
            seed: 1,
            link: String::new(),
            path: String::new(),
            duration_s: 60.0,
            warmup_s: 0.0,
            capacity_bps: 1.5e6,
            results,
            recommendation: String::new(),
            notes: Vec::new(),
        })
    }

    #[test]
    fn a_percent_of_goodput_is_not_worth_a_full_queue() {
        let text = advice(vec![result("veno", 1.38e6, 0.24), result("stpd", 1.36e6, 0.11)]);
        assert!(text.starts_with("Use stpd") && text.contains("2% at most"), "{text}");
        let text = advice(vec![result("veno", 1.38e6, 0.24), result("stpd", 1.2e6, 0.11)]);
        assert!(text.starts_with("Use veno"), "{text}");
    }
}
