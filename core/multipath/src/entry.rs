//! An entry of the list of schedulers.

use crate::scheduler::Scheduler;
use narrows_base::Descriptor;
use narrows_base::list::Listed;

/// A listed scheduler.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerEntry {
    /// Name, source and status.
    pub descriptor: &'static Descriptor,
    /// Builds it.
    pub build: fn() -> Box<dyn Scheduler>,
}

impl Listed for SchedulerEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}
