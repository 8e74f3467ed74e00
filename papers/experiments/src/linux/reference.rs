//! The reference file's contents.

use serde::Deserialize;
use std::collections::BTreeMap;

/// `reference.json`.
#[derive(Deserialize, Debug)]
pub struct LinuxReference {
    /// Which kernel, and how it ran.
    pub kernel: String,
    pub links: BTreeMap<String, ReferenceLink>,
    pub cells: Vec<BulkCell>,
    pub transfers: Vec<ReferenceTransfer>,
    pub shares: Vec<Share>,
}

/// A link: rate and delay each way.
#[derive(Deserialize, Debug)]
pub struct ReferenceLink {
    pub rate_kbps: u64,
    pub queue_packets: u64,
    pub delay_ms: f64,
    /// How long a bulk flow ran.
    pub seconds: f64,
}

/// A bulk flow on a link: a list of numbers for each seed.
#[derive(Deserialize, Debug)]
pub struct BulkCell {
    pub link: String,
    /// Names of the algorithm: the kernel's, and the simulator's.
    pub kernel: String,
    pub ours: String,
    pub loss: String,
    /// Per seed: goodput in bit/s, retransmissions, timeouts, mean SRTT in ms, mean queue in packets, mean window (the
    /// file's `columns`).
    pub runs: Vec<Vec<f64>>,
}

/// A transfer: seconds from `connect` to the receiver's last byte, for each.
#[derive(Deserialize, Debug)]
pub struct ReferenceTransfer {
    pub link: String,
    pub kernel: String,
    pub ours: String,
    pub loss: String,
    pub bytes: u64,
    pub seconds: Vec<f64>,
}

/// Numbers of each run of a [`Share`].
pub const SHARE_COLUMNS: usize = 6;

/// Two flows on a link, by the kernel's names of their algorithms.
#[derive(Deserialize, Debug)]
pub struct Share {
    pub link: String,
    pub first: String,
    pub second: String,
    /// By how much the second one's round trip is longer.
    pub extra_ms: f64,
    /// Both starts in seconds, the first one's share, both mean windows and the mean queue in packets (the file's
    /// `share_columns`).
    pub runs: Vec<[f64; SHARE_COLUMNS]>,
}

/// Our name of an algorithm of the kernel's.
pub fn ours(kernel: &str) -> &str {
    match kernel {
        "westwood" => "westwood+",
        other => other,
    }
}
