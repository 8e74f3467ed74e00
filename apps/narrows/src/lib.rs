//! Congestion controllers, transport endpoints and links as pure state machines: simulated, or run for real over UDP.
//! This crate re-exports the others, so that programs depend on one.
//!
//! ```
//! use narrows::base::Spec;
//! use narrows::sim::{dumbbell, run};
//! use narrows::sim::protocol::{FlowProtocol, Preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cubic = FlowProtocol::read(&Spec::named("cubic"), Preset::Rfc, 1000)?;
//! // Two endless flows over 10 Mbit/s for 5 s.
//! let result = run(&dumbbell(2, 10, 5, cubic), &mut |_| true)?;
//! let bits: u64 = result.groups[0].flows.iter().map(|f| 8 * f.goodput_bytes).sum();
//! let goodput = bits as f64 / result.span_s;
//! assert!((5e6..10e6).contains(&goodput), "{goodput}");
//! # Ok(())
//! # }
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | `sim` (default) | [`sim`], the simulator: with its dependencies eleven crates, no C compiler |
//! | `net` | `net`, `wire`, `transport`: rrtp over UDP, the relay; needs a C compiler, for the ciphers |
//! | `files` | `files`, `peers`: list, get, put over rrtp or TCP; keys and lists of clients |
//! | `emulator` | `emulator`: the kernel's packets over emulated links, in network namespaces (Linux) |
//! | `lab` | `scenario`, `lab`: links and scenarios as text, comparisons, sweeps, measures |
//! | `report` | `report`: results as pages, figures, Parquet, CSV and JSON |
//! | `record` | `record`, `speed`: recordings and measurements of real transfers |
//! | `cli` | `run`: the command, to be called from a `main` of one's own, with additions in a [`Registry`] |

pub use narrows_base as base;
pub use narrows_congestion as congestion;
pub use narrows_link as link;
pub use narrows_recovery as recovery;
#[cfg(feature = "net")]
pub use narrows_transport as transport;

#[cfg(feature = "cli")]
pub use narrows_cli::run;
#[cfg(feature = "emulator")]
pub use narrows_emulator as emulator;
#[cfg(feature = "files")]
pub use narrows_files as files;
#[cfg(feature = "lab")]
pub use narrows_lab as lab;
#[cfg(feature = "net")]
pub use narrows_net as net;
#[cfg(feature = "files")]
pub use narrows_peers as peers;
#[cfg(feature = "record")]
pub use narrows_record as record;
#[cfg(feature = "report")]
pub use narrows_report as report;
#[cfg(feature = "lab")]
pub use narrows_scenario as scenario;
#[cfg(feature = "sim")]
pub use narrows_sim as sim;
#[cfg(feature = "sim")]
pub use narrows_sim::Registry;
#[cfg(feature = "record")]
pub use narrows_speed as speed;
#[cfg(feature = "net")]
pub use narrows_wire as wire;
