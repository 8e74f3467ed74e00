//! Without the feature `full` there is no page: options without a flag, and observers of nothing.

use crate::failure::Failure;
use clap::Args;
use narrows_lab::execute::RunObserver;
use narrows_lab::options::sweep::TableSelection;
use narrows_lab::sweep::CheckedSweep;
use narrows_lab::sweep::found::StoredResult;
use narrows_scenario::Plan;

#[derive(Args)]
pub struct Page {}

#[derive(Args)]
pub struct PacedPage {
    #[command(flatten)]
    pub page: Page,
}

pub struct WatchedRun;

impl WatchedRun {
    pub fn open(_: &Page) -> Result<WatchedRun, Failure> {
        Ok(WatchedRun)
    }

    pub fn runs(&self, _: &Plan, _: &str, _: &PacedPage) -> Option<Box<dyn RunObserver>> {
        None
    }

    pub fn sweep(
        &self,
        _: &CheckedSweep,
        _: TableSelection,
    ) -> impl Fn(usize, &StoredResult) + Sync + use<> {
        |_, _| ()
    }

    pub fn stay(self, _: bool) {}
}
