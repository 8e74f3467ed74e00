//! Links and scenarios as users write them, checked and translated for the simulator.
//!
//! ```text
//!   one line ─────link─────────╮
//!                              ├─> Scenario ─plan─> Plan ─network─> sim::NetworkSpec
//!   TOML file ─scenario_file───╯  (model)       (checked)      (one per variant and seed)
//! ```

pub mod access_link;
pub mod families;
mod jitter;
pub mod keys;
pub mod link;
pub mod link_direction;
mod link_text;
pub mod links;
pub mod output_file;
pub mod plan;
pub mod route;
pub mod scenario;
pub mod scenario_file;
pub mod text_file;
pub mod timeline;
pub mod trace_convert;
pub mod user_links;
pub mod values;

pub use link::BottleneckLink;
pub use plan::Plan;
pub use scenario::Scenario;
