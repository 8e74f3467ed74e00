//! An entry of the list of protocols: which endpoint, controller and recovery a name combines.

use narrows_base::list::Listed;
use narrows_base::{Descriptor, SpecError, Status};

/// The end of a printed form's name: `tfwc-paper` is the printed form of `tfwc`.
pub const PRINTED: &str = "-paper";

/// Prefix of protocols that combine a controller with a stream over the datagram endpoint.
pub const STREAM_PREFIX: &str = "rrtp+";

/// Kinds of protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// A reliable stream over TCP, which only the simulator has.
    Tcp,
    /// A media rate over the datagram endpoint, without retransmissions.
    Media,
    /// A reliable stream over the datagram endpoint.
    Rrtp,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::Tcp => "tcp",
            Family::Media => "media",
            Family::Rrtp => "rrtp",
        })
    }
}

/// A named combination of endpoint, controller and recovery.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProtocolEntry {
    /// The name in specifications.
    pub name: &'static str,
    /// Its kind, which determines the endpoint.
    pub family: Family,
    /// A description of one line.
    pub summary: &'static str,
    /// The controller's name.
    pub controller: &'static str,
    /// Default loss recovery; `none` for media.
    pub recovery: &'static str,
    /// Switches of its endpoint that are on by default, in every preset.
    pub turns_on: &'static [&'static str],
    /// Default loss classifier.
    pub classifier: &'static str,
    /// The paper of which it is, such as `Choi 2006`; empty if of none of the five.
    pub paper: &'static str,
    /// Linux's congestion control of the same algorithm, if there is one.
    pub linux: Option<LinuxControl>,
}

/// A congestion control of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinuxControl {
    /// Its name there, as for the sysctl `net.ipv4.tcp_congestion_control`.
    pub name: &'static str,
    /// Whether the protocol in preset `linux` has been compared with Linux's default TCP under it (docs/validation.md).
    pub is_compared: bool,
}

impl ProtocolEntry {
    const fn of(
        family: Family,
        (name, controller): (&'static str, &'static str),
        recovery: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry {
            name,
            family,
            summary,
            controller,
            recovery,
            turns_on: &[],
            classifier: "none",
            paper: "",
            linux: None,
        }
    }
    /// A reliable stream over the TCP endpoint, with a recovery of the list in `narrows_sim`.
    pub const fn tcp(
        name: &'static str,
        controller: &'static str,
        recovery: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Tcp, (name, controller), recovery, summary)
    }
    /// A media rate over the datagram endpoint, without retransmissions.
    pub const fn media(
        name: &'static str,
        controller: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Media, (name, controller), "none", summary)
    }
    /// A reliable stream over the datagram endpoint. `rrtp+CONTROLLER` needs no entry.
    pub const fn stream(
        name: &'static str,
        controller: &'static str,
        summary: &'static str,
    ) -> ProtocolEntry {
        ProtocolEntry::of(Family::Rrtp, (name, controller), "rfc9002", summary)
    }
    /// Turns these switches of its endpoint on by default.
    #[must_use]
    pub const fn with(mut self, switches: &'static [&'static str]) -> ProtocolEntry {
        self.turns_on = switches;
        self
    }
    /// Names the paper of which it is.
    #[must_use]
    pub const fn of_paper(mut self, paper: &'static str) -> ProtocolEntry {
        self.paper = paper;
        self
    }
    /// Names the congestion control of Linux with which it was compared.
    #[must_use]
    pub const fn compared_with_linux(mut self, name: &'static str) -> ProtocolEntry {
        self.linux = Some(LinuxControl { name, is_compared: true });
        self
    }
    /// Names the congestion control of Linux that has the same algorithm.
    #[must_use]
    pub const fn in_linux(mut self, name: &'static str) -> ProtocolEntry {
        self.linux = Some(LinuxControl { name, is_compared: false });
        self
    }
    /// Repairs by the NACKs of the RRTP thesis in simulations; over sockets the sender repairs.
    #[must_use]
    pub const fn with_nacks(mut self) -> ProtocolEntry {
        self.recovery = "nack";
        self
    }
    /// Whether it is a paper's protocol without Narrows' additions: see [`PRINTED`].
    pub fn is_printed(&self) -> bool {
        self.name.ends_with(PRINTED)
    }
    /// Sets the default loss classifier, one of [`LOSS_CLASSIFIERS`](crate::loss_classifier::LOSS_CLASSIFIERS).
    #[must_use]
    pub const fn with_classifier(mut self, classifier: &'static str) -> ProtocolEntry {
        self.classifier = classifier;
        self
    }

    /// Its controller's descriptor, as this protocol uses it: checks made over TCP or with media do not count for
    /// `rrtp+NAME`.
    ///
    /// # Errors
    /// A controller that is not listed.
    pub fn descriptor(&self) -> Result<Descriptor, SpecError> {
        let descriptor = *narrows_congestion::find(self.controller)?.descriptor;
        let is_combination = self.name.starts_with(STREAM_PREFIX);
        let status = if is_combination { Status::NotValidated } else { descriptor.status };
        Ok(Descriptor { status, ..descriptor })
    }
}

impl Listed for ProtocolEntry {
    fn name(&self) -> &'static str {
        self.name
    }
}
