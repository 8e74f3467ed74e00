//! What each score means, in a sentence.

use narrows_lab::networks::scores::Score;

/// A part of labels of scores, and the meaning of those that have it. The first one in a label counts.
pub const MEANINGS: [[&str; 2]; 17] = [
    [
        "goodput / capacity",
        "Goodput over the capacity that losses, outages, a policer and web traffic leave: mean, 10th percentile and worst \
         of the networks.",
    ],
    ["below .7 of the best", "Number of networks with a goodput below 0.7 of the best protocol's."],
    [
        "beside itself",
        "Mixes in which all flows use the protocol. Jain's index is 1 if all have the same rate, and 1/n if one of n has all.",
    ],
    [
        "mean queue",
        "Mean length of the bottleneck's queue during a run, in time at the link's rate: median and 95th percentile of the \
         networks.",
    ],
    [
        "RTT p95 - least",
        "95th percentile of a run's RTT less its least RTT: how late packets are; median of the networks.",
    ],
    [
        "dropped by the queue",
        "Packets dropped by the queue over packets that reached it, mean of the networks.",
    ],
    [
        "ln goodput",
        "Goodput and delay in one number: ln(goodput / capacity) less half of ln(mean RTT / least RTT). The best value is 0.",
    ],
    [
        "no more harm",
        "Share of the mixes in which the protocol does no more harm than CUBIC in its place: both sides keep 0.8 of an \
         equal share, or of their rate with CUBIC, and no more flows starve.",
    ],
    [
        "starve",
        "Share of the flows with less than a tenth of an equal share: the protocol's own, or those beside it.",
    ],
    [
        "their rate / beside CUBIC",
        "Rate of the flows beside the protocol over their rate beside CUBIC: below 1, the protocol takes more from them.",
    ],
    ["capacity used", "Share of the capacity that all flows use together, mean of the mixes."],
    [
        "share beside another",
        "Part of the goodput of two flows that the protocol's flow has, mean of all other protocols and bottlenecks. An \
         equal share is 0.5.",
    ],
    [
        "time / ",
        "Completion time of a transfer over that of the named protocol on the same network, geometric mean: below 1 is \
         faster.",
    ],
    ["not done", "Share of the transfers that did not end within the run, of at least 20 s."],
    [
        "RTT / bbr's",
        "Mean RTT over that of bbr on the same recorded link, geometric mean of the links.",
    ],
    ["RTT", "Mean RTT of a run, or its 95th percentile, mean of the recorded links."],
    [
        "goodput: ",
        "Goodput over the capacity on the networks with this property, or on this recorded link, mean.",
    ],
];

/// The meanings of these scores, each once, in the order of the scores.
pub fn of(scores: &[Score]) -> Vec<[&'static str; 2]> {
    let mut all = Vec::new();
    for score in scores {
        let found = MEANINGS.into_iter().find(|[part, _]| score.label.contains(part));
        all.extend(found.filter(|found| !all.contains(found)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::{AtlasVersion, drawn};
    use narrows_lab::networks::{ATLAS_PARTS, BenchNetwork, BenchPart, scores};

    #[test]
    fn every_score_of_the_atlas_has_a_meaning() {
        let version = AtlasVersion { commit: "1".into(), protocols: vec!["cubic".into()], seed: 1 };
        let mut found = Vec::new();
        for (part, _) in ATLAS_PARTS {
            let mut networks = drawn(part, &version, 20);
            if part == BenchPart::Traces {
                let mut recorded = drawn(BenchPart::Networks, &version, 1);
                recorded.iter_mut().for_each(|network: &mut BenchNetwork| network.part = part);
                networks = recorded;
            }
            let scores = scores::of(part, &networks);
            for score in &scores {
                let is_in = MEANINGS.iter().any(|[part, _]| score.label.contains(part));
                assert!(is_in, "{}", score.label);
            }
            found.extend(of(&scores));
        }
        let unused = MEANINGS.iter().find(|meaning| !found.contains(meaning));
        assert_eq!(unused, None);
    }
}
