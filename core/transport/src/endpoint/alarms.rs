//! Timers of many connections, one entry each. If a connection postpones its timer, the entry stays
//! until the earlier time passes, when the connection is queried again. So an idle connection costs
//! no work.

use narrows_base::Time;
use std::collections::BTreeSet;

/// Slots with the times of their alarms.
#[derive(Debug, Default)]
pub(super) struct Alarms(BTreeSet<(Time, u32)>);

impl Alarms {
    /// Wakes slot `who` at `due` or earlier. `armed` is the slot's copy of the time set here.
    pub(super) fn arm(&mut self, who: u32, armed: &mut Time, due: Time) {
        if due < *armed {
            self.disarm(who, armed);
            self.0.insert((due, who));
            *armed = due;
        }
    }
    /// Removes the alarm of slot `who`.
    pub(super) fn disarm(&mut self, who: u32, armed: &mut Time) {
        if !armed.is_never() {
            self.0.remove(&(*armed, who));
            *armed = Time::NEVER;
        }
    }
    /// Time of the first alarm; `Time::NEVER` without alarms.
    pub(super) fn first(&self) -> Time {
        self.0.first().map_or(Time::NEVER, |(due, _)| *due)
    }
    /// Takes an alarm that is due. The caller must set the slot's `armed` to never.
    pub(super) fn take(&mut self, now: Time) -> Option<u32> {
        if self.first() > now {
            return None;
        }
        self.0.pop_first().map(|(_, who)| who)
    }
    /// Number of alarms.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
