//! Presents the results of comparisons, sweeps and real transfers: tables for a terminal, HTML pages, SVG figures,
//! Parquet, CSV and JSON.

#[cfg(feature = "parquet")]
mod arrow_schema;
pub mod columns;
#[cfg(feature = "files")]
pub mod figure;
pub mod html;
pub mod json;
pub mod network_scorecard;
#[cfg(feature = "files")]
pub mod output;
pub mod palette;
#[cfg(feature = "files")]
pub mod picture;
pub mod scorecard;
pub mod seeds;
pub mod series;
pub mod summary;
pub mod sweep;
mod thin;
pub mod variables;

/// The version that made a result.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
