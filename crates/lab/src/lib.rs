//! Questions, scenarios, runs, measures and what is made of them.
//!
//! ```text
//!   flags ──compare──╮
//!                    ├─> Scenario ─plan─> Plan ─execute─> Runs ─collect─> Outcome ─> table, JSON,
//!   file ─scenario_file╯  (model)       (checked)        (numbers)     (means, CIs)   CSV, report
//! ```

pub mod access_link;
mod arrow_schema;
pub mod catalogue;
pub mod collect;
pub mod columns;
pub mod compare;
pub mod execute;
pub mod experiment;
pub mod families;
pub mod figure;
pub mod interval;
pub mod json;
pub mod keys;
pub mod link;
pub mod link_direction;
pub mod links;
pub mod measure;
pub mod outcome;
pub mod output;
pub mod parquet;
pub mod picture;
pub mod plan;
pub mod real;
pub mod recommendation;
pub mod report;
pub mod response;
pub mod route;
pub mod scenario;
pub mod scenario_file;
pub mod seeds;
pub mod stats;
pub mod summary;
pub mod sweep;
pub mod text_file;
pub mod variables;

pub use compare::Question;
pub use link::Link;
pub use narrows_sim::SourceSpec;
pub use outcome::Outcome;
pub use plan::Plan;
pub use scenario::Scenario;
