//! Scenario files: TOML in, TOML out.
//!
//! Every error names the line. For unknown names a similar one is suggested. The format is
//! described in `docs/scenarios.md`.

mod count;
mod link;
mod read;
mod template;
mod write;

pub use read::{load, packet, parse, preset};
pub use template::{Template, TemplateTarget, split_key, taken, with_parameter};
pub use write::text;

/// A value in a file, and its position.
type Text = toml::Spanned<String>;
