//! Changes during a run: the same options for `compare`, `run` and `sweep`.

use clap::Args;

/// Changes of links, and changed path hints of applications.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct TimelineOptions {
    /// Change the link at a time, as in 30s:rate=384kbit/s,delay=150ms; keys are rate, delay, loss; repeatable
    #[arg(long, hide_short_help = true, help_heading = crate::options::RARE, value_name = "TIME:[LINK:]KEY=VALUE,...")]
    pub change: Vec<String>,
    /// Change the path hints of rrtp or media at a time, as in 30s:rate=384kbit/s,rtt=300ms; keys are rate, rtt, loss;
    /// repeatable
    #[arg(long, hide_short_help = true, help_heading = crate::options::RARE, value_name = "TIME:[GROUP:]KEY=VALUE,...")]
    pub reconfigure: Vec<String>,
}

impl TimelineOptions {
    /// In the form of a scenario.
    pub fn to_timeline(&self) -> narrows_scenario::timeline::Timeline {
        narrows_scenario::timeline::Timeline {
            changes: self.change.clone(),
            reconfigurations: self.reconfigure.clone(),
        }
    }
}
