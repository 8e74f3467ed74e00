//! Every two protocols on one bottleneck.

use super::Atlas;
use narrows_lab::networks::{BenchPart, draw};

/// A protocol beside another: means over the bottlenecks.
pub struct PairFigures {
    pub protocol: String,
    pub beside: String,
    /// Part of the goodput of both that the protocol has.
    pub share: f64,
    /// Share of its goodput alone that the other loses (Ware et al. 2019).
    pub harm: f64,
    /// Share of the bottlenecks on which the other has less than a tenth of an equal share.
    pub starved: f64,
    /// Name of the network on which the harm is greatest.
    pub worst: String,
}

/// The matrix by rows: each protocol beside each.
pub fn matrix(atlas: &Atlas) -> Vec<PairFigures> {
    let protocols = &atlas.version.protocols;
    let pairs = protocols.iter().flat_map(|a| protocols.iter().map(move |b| (a, b)));
    pairs.filter_map(|(protocol, beside)| figures(atlas, protocol, beside)).collect()
}

/// `None` without any bottleneck.
fn figures(atlas: &Atlas, protocol: &str, beside: &str) -> Option<PairFigures> {
    let of_network = |name: &str, protocol: &str, figure: &str| {
        let key = format!("{} {name}", BenchPart::Pairs.name());
        let found = atlas.measured.results.get(&key)?.get(protocol)?.get(figure);
        found.copied()
    };
    let mut shares = Vec::new();
    let mut harms = Vec::new();
    let mut starved = Vec::new();
    let mut worst: Option<(f64, String)> = None;
    for number in 0.. {
        let name = draw::pair_name(number, Some(beside));
        let Some(own) = of_network(&name, protocol, "own Mbit/s") else { break };
        let other = of_network(&name, protocol, "others Mbit/s")?;
        let alone = of_network(&draw::pair_name(number, None), beside, "own Mbit/s")?;
        let harm = (1.0 - other / alone.max(1e-9)).max(0.0);
        shares.push(own / (own + other).max(1e-9));
        harms.push(harm);
        starved.push(of_network(&name, protocol, "starved")?);
        if worst.as_ref().is_none_or(|(most, _)| harm > *most) {
            worst = Some((harm, name));
        }
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    Some(PairFigures {
        protocol: protocol.into(),
        beside: beside.into(),
        share: mean(&shares),
        harm: mean(&harms),
        starved: mean(&starved),
        worst: worst?.1,
    })
}
