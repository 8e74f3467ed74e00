//! Narrows' controllers for the Linux kernel's TCP.
//!
//! A small eBPF congestion control (`bpf/narrows.bpf.c`) reports every acknowledgement to user space. There the
//! controllers of `narrows list controllers` set a window and a pacing rate: [`Agent`] is the
//! [`Controller`](narrows_congestion::Controller) contract's driver for it. If the limits are late, the eBPF side
//! continues as Reno by itself.
//!
//! ```no_run
//! use narrows_kernel::{Agent, Choice, BpfPrograms};
//!
//! let choice = Choice::new("rrtp")?;
//! let programs = BpfPrograms::prepare()?;
//! let agent = Agent::start(programs.register("nw_rrtp")?, choice)?;
//! // setsockopt(TCP_CONGESTION, "nw_rrtp") works until the agent is dropped.
//! # drop(agent);
//! # Ok::<(), narrows_kernel::Error>(())
//! ```
//!
//! On systems other than Linux the crate has only [`Choice`].

mod choice;
mod error;

pub use choice::Choice;
pub use error::Error;

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod bpf;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
pub mod instance;
#[cfg(target_os = "linux")]
mod native;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
pub mod status;
#[cfg(target_os = "linux")]
mod tcp_info;
#[cfg(all(test, target_os = "linux"))]
mod transfer_tests;

#[cfg(target_os = "linux")]
pub use agent::{Agent, AgentTap};
#[cfg(target_os = "linux")]
pub use bpf::object::OBJECT;
#[cfg(target_os = "linux")]
pub use bpf::{BpfPrograms, Chooser, Loaded};
#[cfg(target_os = "linux")]
pub use cgroup::Cgroup;
#[cfg(target_os = "linux")]
pub use connection::ConnectionFigures;
#[cfg(target_os = "linux")]
pub use native::Native;
#[cfg(target_os = "linux")]
pub use tcp_info::TcpInfo;
