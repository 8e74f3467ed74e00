//! What happens while a run goes on: the same options for `compare`, `run` and `sweep`.

use clap::Args;

/// Changes of links, and what applications say of their paths.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Timeline {
    /// At a time, what becomes of the link, as in 30s:rate=384kbit/s,delay=150ms; keys are rate, delay, loss; again for more
    #[arg(long, value_name = "TIME:[LINK:]KEY=VALUE,...")]
    pub change: Vec<String>,
    /// At a time, what applications say of their path (rrtp, media), as in 30s:rate=384kbit/s,rtt=300ms; keys are rate,
    /// rtt, loss; again for more
    #[arg(long, value_name = "TIME:[GROUP:]KEY=VALUE,...")]
    pub reconfigure: Vec<String>,
}

impl Timeline {
    /// As a scenario takes it.
    pub fn told(&self) -> narrows_scenario::timeline::Timeline {
        narrows_scenario::timeline::Timeline {
            changes: self.change.clone(),
            reconfigurations: self.reconfigure.clone(),
        }
    }
}
