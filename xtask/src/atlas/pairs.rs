//! Every two protocols on one bottleneck. A pair is simulated in one order; the figures in the other are its mirror image.

use super::data::Atlas;
use narrows_lab::networks::{BenchPart, Figures, Results, draw};

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
    /// Name of the network on which the harm is greatest, and the protocol under test that was simulated there.
    pub worst: String,
    pub simulated: String,
}

/// The matrix by rows: each protocol beside each.
pub fn matrix(atlas: &Atlas) -> Vec<PairFigures> {
    let pairs = atlas.columns().flat_map(|a| atlas.columns().map(move |b| (a, b)));
    pairs.filter_map(|(protocol, beside)| figures(atlas, protocol, beside)).collect()
}

/// Adds the figures of pairs in the order that was not simulated.
pub fn mirror(results: &mut Results) {
    let mut mirrored = Results::new();
    for (key, of_network) in &*results {
        let name = key.strip_prefix(&key_of(""));
        let Some((number, other)) = name.and_then(|name| name.split_once(' ')) else { continue };
        if other == draw::ALONE {
            continue;
        }
        for (protocol, figures) in of_network {
            let of_pair = mirrored.entry(key_of(&format!("{number} {protocol}"))).or_default();
            of_pair.insert(other.into(), swapped(figures));
        }
    }
    for (key, of_network) in mirrored {
        let of_pair = results.entry(key).or_default();
        for (protocol, figures) in of_network {
            of_pair.entry(protocol).or_insert(figures);
        }
    }
}

fn key_of(name: &str) -> String {
    format!("{} {name}", BenchPart::Pairs.name())
}

/// The figures with those of both flows exchanged.
fn swapped(figures: &Figures) -> Figures {
    let other = |name: &str| match name {
        "own Mbit/s" => "others Mbit/s".to_string(),
        "others Mbit/s" => "own Mbit/s".into(),
        "own starved" => "starved".into(),
        "starved" => "own starved".into(),
        _ => name.into(),
    };
    figures.iter().map(|(name, value)| (other(name), *value)).collect()
}

/// `None` without any bottleneck.
fn figures(atlas: &Atlas, protocol: &str, beside: &str) -> Option<PairFigures> {
    let of_network = |name: &str, protocol: &str, figure: &str| {
        let found = atlas.measured.results.get(&key_of(name))?.get(protocol)?.get(figure);
        found.copied()
    };
    let mut shares = Vec::new();
    let mut harms = Vec::new();
    let mut starved = Vec::new();
    let mut worst: Option<(f64, usize)> = None;
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
            worst = Some((harm, number));
        }
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let number = worst?.1;
    let name = draw::pair_name(number, Some(beside));
    let digests = atlas.measured.digests.get(&key_of(&name));
    let is_simulated = digests.is_some_and(|of| of.contains_key(protocol));
    let mirror_image = || draw::pair_name(number, Some(protocol));
    Some(PairFigures {
        protocol: protocol.into(),
        beside: beside.into(),
        share: mean(&shares),
        harm: mean(&harms),
        starved: mean(&starved),
        worst: if is_simulated { name } else { mirror_image() },
        simulated: if is_simulated { protocol.into() } else { beside.into() },
    })
}
