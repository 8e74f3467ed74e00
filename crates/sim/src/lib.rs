//! The event engine: virtual time for endpoints and links.
//!
//! A [`NetworkSpec`] says what there is; [`run`] gives a [`RunResult`]. Equal specification and
//! seed give an equal [`RunResult::digest`] on every machine and with any number of threads.

pub mod calendar;
pub mod result;
pub mod source;
pub mod spec;

mod check;
mod columns;
mod dumbbell;
mod flow;
mod histogram;
mod meter;
mod network;
mod registry;
mod series;
mod smooth;

pub use columns::COLUMNS;
pub use dumbbell::dumbbell;
pub use histogram::Histogram;
pub use network::run;
pub use registry::Registry;
pub use result::{FlowDetail, FlowResult, GroupResult, LinkGroup, LinkResult, LinkTicks};
pub use result::{QueueAverage, RunResult, Table, Verdicts};
pub use source::{SOURCES, SourceSpec};
pub use spec::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SeriesSpec, SimError};

/// The worked example of `docs/adding-a-controller.md`, compiled and run as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-controller.md")]
struct AddingAController;

#[cfg(test)]
mod tests {
    /// The page quotes the example, so that what it shows is a file that can be copied and run.
    #[test]
    fn the_page_on_adding_a_controller_quotes_its_example() {
        let page = include_str!("../../../docs/adding-a-controller.md");
        let example = include_str!("../examples/gentle.rs");
        assert!(page.contains(&format!("```rust\n{example}```")), "quote examples/gentle.rs again");
        // What it says of lists is what stands there of another controller.
        let list = include_str!("../../control/src/list.rs");
        assert!(
            list.contains(
                "Entry::new(&cubic::CARD, cubic::build).with_variables(cubic::VARIABLES),"
            )
        );
    }
}
