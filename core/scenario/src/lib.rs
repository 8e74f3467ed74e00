//! Links and scenarios as users write them, checked and translated for the simulator.
//!
//! ```text
//!   one line ─────link─────────╮
//!                              ├─> Scenario ─plan─> Plan ─network─> sim::NetworkSpec
//!   TOML file ─scenario_file───╯  (model)       (checked)      (one per variant and seed)
//! ```
//!
//! Without the feature `simulator`, which is on by default, there are only links as text, and no links of the user.

pub mod access_link;
pub mod capture_file;
pub mod change_keys;
#[cfg(feature = "simulator")]
pub mod families;
mod jitter;
pub mod keys;
pub mod link;
pub mod link_direction;
mod link_text;
pub mod links;
#[cfg(feature = "simulator")]
pub mod output_file;
mod pcapng;
#[cfg(feature = "simulator")]
pub mod plan;
#[cfg(feature = "simulator")]
pub mod route;
#[cfg(feature = "simulator")]
pub mod scenario;
#[cfg(feature = "simulator")]
pub mod scenario_file;
pub mod text_file;
#[cfg(feature = "simulator")]
pub mod timeline;
pub mod trace_convert;
#[cfg(feature = "simulator")]
pub mod user_links;
pub mod values;

pub use link::BottleneckLink;
#[cfg(feature = "simulator")]
pub use plan::Plan;
#[cfg(feature = "simulator")]
pub use scenario::Scenario;
