//! `reference.json`: the results of ns-2.

use serde::Deserialize;

/// `reference.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ns2Reference {
    pub simulator: String,
    pub how: String,
    pub n1: Vec<SingleFlow>,
    pub n2: Vec<Lossy>,
    pub n3: Vec<Lossy>,
    pub n4: Mix,
    pub dumbbells: Vec<Dumbbell>,
    /// Results that depend on the order of simultaneous events, and so are not compared.
    pub ties: String,
    pub why: Vec<Why>,
}

/// One flow, without random draws.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleFlow {
    pub limit: u64,
    pub variant: String,
    pub ours: String,
    pub goodput_mbps: f64,
    pub drops: u64,
    pub retransmitted: u64,
    /// Least, most and mean from 10 s on.
    pub cwnd: [f64; 3],
    pub queue: [f64; 3],
}

/// One flow with random loss: goodput over capacity.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lossy {
    pub variant: String,
    pub ours: String,
    pub p: String,
    pub goodput: f64,
    pub sd: f64,
    pub seeds: u32,
    pub timeouts: Option<f64>,
    pub retransmitted: Option<f64>,
}

/// TCP and TFRC flows on one link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Number of flows of each kind, and of TCP flows in the reverse direction.
    pub flows: u32,
    /// The TCP that is compared, and the one beside it.
    pub ours: String,
    pub beside: String,
    pub rows: Vec<MixRow>,
    /// Paragraphs below the table.
    pub notes: Vec<String>,
}

/// TCP's share on a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixRow {
    pub mbps: String,
    pub limit: u64,
    pub theta: f64,
    pub sd: f64,
    pub seeds: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    pub name: String,
    pub flows: u32,
    pub mbps: u64,
    pub seconds: u64,
    pub delivered: u64,
    pub sent: u64,
    pub retransmitted: u64,
}

/// Why a row differs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// `n1`, `n2`, `n3`, `n4` or `dumbbell`.
    pub table: String,
    pub variant: String,
    /// The row's limit, p, rate or name.
    pub at: String,
    pub why: String,
}
