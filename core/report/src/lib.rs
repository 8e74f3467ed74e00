//! Presents the results of comparisons, sweeps and real transfers: tables for a terminal, HTML pages, SVG figures,
//! Parquet, CSV and JSON.

mod arrow_schema;
pub mod columns;
pub mod figure;
pub mod html;
pub mod json;
pub mod output;
pub mod parquet;
pub mod picture;
pub mod scorecard;
pub mod seeds;
pub mod summary;
pub mod sweep;
pub mod variables;

/// The version that made a result.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
