//! Timers of many connections, one element each. A connection that postpones its timer costs
//! nothing until the earlier time passes (then it is queried again), and an idle connection costs
//! nothing at all.

use narrows_base::Time;
use std::collections::BTreeSet;

/// Who is to be woken when.
#[derive(Debug, Default)]
pub(super) struct Alarms(BTreeSet<(Time, u32)>);

impl Alarms {
    /// Wakes `who` at `due` or before; `armed` is its own note of what is set here for it.
    pub(super) fn arm(&mut self, who: u32, armed: &mut Time, due: Time) {
        if due < *armed {
            self.disarm(who, armed);
            self.0.insert((due, who));
            *armed = due;
        }
    }
    /// Never wakes it.
    pub(super) fn disarm(&mut self, who: u32, armed: &mut Time) {
        if !armed.is_never() {
            self.0.remove(&(*armed, who));
            *armed = Time::NEVER;
        }
    }
    /// The first alarm; never if there is none.
    pub(super) fn first(&self) -> Time {
        self.0.first().map_or(Time::NEVER, |(due, _)| *due)
    }
    /// Takes an alarm that has come; its owner's note is to be set to never.
    pub(super) fn take(&mut self, now: Time) -> Option<u32> {
        if self.first() > now {
            return None;
        }
        self.0.pop_first().map(|(_, who)| who)
    }
    /// How many are set.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
