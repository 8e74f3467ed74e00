//! The tree of a multicast and the layers of its receivers.

use narrows_base::{Duration, Time};

/// A stretch of a tree without a fork.
pub(super) struct Branch {
    /// Branches and receivers at its end.
    pub children: Vec<u32>,
    pub leaves: Vec<u32>,
    /// All receivers behind it, as indices of `members`.
    pub behind: Vec<usize>,
}

/// A receiver, and its joined layers as the forks know them.
pub(super) struct GroupMember {
    pub flow: u32,
    /// Time from the receiver to the sender.
    pub delay: Duration,
    pub level: usize,
    pub next: (Time, usize),
}

impl GroupMember {
    pub fn level(&self, now: Time) -> usize {
        if now >= self.next.0 { self.next.1 } else { self.level }
    }
}

/// All multicasts of a run; empty in most.
#[derive(Default)]
pub(super) struct Multicast {
    pub branches: Vec<Branch>,
    pub members: Vec<GroupMember>,
    /// The sending flow of each session, and the range of its receivers in `members`.
    pub sessions: Vec<(u32, std::ops::Range<usize>)>,
}

impl Multicast {
    /// The flow that counts for a packet of a branch: its first receiver behind it.
    pub fn flow_of(&self, branch: usize) -> Option<u32> {
        let member = *self.branches.get(branch)?.behind.first()?;
        self.members.get(member).map(|m| m.flow)
    }
    /// The receivers of a sending flow and the number of layers that each has joined.
    pub fn receivers(&self, sender: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
        let session = self.sessions.iter().find(|s| s.0 == sender);
        let members = session.map_or(&[][..], |s| &self.members[s.1.clone()]);
        members.iter().map(|m| (m.flow, m.next.1))
    }
}
