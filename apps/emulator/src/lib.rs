//! The kernel's own packets over emulated links, in real time: any program, unchanged (Linux).
//!
//! ```text
//!   namespace A                                         namespace B
//!   program - kernel - TUN ──> [queue | rate] ─ delay ─ (loss) ──> TUN - kernel - program
//!                          <──            back            <──
//! ```
//!
//! [`EmulatedLink::between`] joins two [`Namespace`]s by the link stages that the simulator drives. Each direction has
//! a thread that keeps its link in virtual time. A late wake-up delays due packets a little (measured:
//! [`WayStats::lateness`]) but never costs capacity. The kernel's super-frames are split; each packet is queued,
//! marked, lost and delayed by itself. Packets that leave together are joined again for the receiver.
#![cfg(target_os = "linux")]

mod command;
mod error;
mod link;
mod packet_interface;
mod programs;
mod signals;
mod stats;
mod system;
mod tap;
mod topology;
mod way;
mod way_out;
mod wire;

pub use command::spawn;
pub use error::Error;
pub use link::{EmulatedLink, LinkEnd, LinkObserver, LinkOptions, MTU};
pub use packet_interface::{KeptRoute, PacketInterface, has_own_route};
pub use programs::Programs;
pub use signals::{ReceivedSignal, SignalReceiver, forward};
pub use stats::{LinkStats, MIN_WINDOW_PACKETS, WINDOW, WayStats};
pub use system::leftovers::{Cleaned, clean};
pub use system::namespace::Namespace;
pub use system::unsafe_calls::with_all_signals;
pub use system::user::{become_root_of_own, is_root};
pub use tap::{LinkSide, LinkTap, PassedPacket};
pub use topology::{Topology, TopologyLink};
pub use way_out::Behind;
