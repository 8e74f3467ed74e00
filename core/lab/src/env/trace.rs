//! The record of an environment's episode, for pictures.

use crate::env::step::EpisodeStep;

/// The columns of a trace, in this order.
pub const COLUMNS: [&str; 7] = [
    "time_s",
    "delivery_mbit_s",
    "send_mbit_s",
    "rtt_s",
    "window_packets",
    "queue_packets",
    "loss",
];

/// A row per step, the opening included.
#[derive(Clone, Debug, Default)]
pub struct EpisodeTrace {
    rows: Vec<[f64; COLUMNS.len()]>,
}

impl EpisodeTrace {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }
    pub(crate) fn push(&mut self, s: &EpisodeStep) {
        self.rows.push([
            s.time_s(),
            s.delivery_rate(),
            s.send_rate(),
            s.rtt_s(),
            s.window(),
            s.queue(),
            s.loss(),
        ]);
    }
    /// The rows, each as [`COLUMNS`].
    pub fn rows(&self) -> &[[f64; COLUMNS.len()]] {
        &self.rows
    }
}
