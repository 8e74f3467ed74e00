//! `--live` for simulations: the page that shows runs and sweeps.

use crate::failure::Failure;
use crate::live::stay;
pub use crate::live::{LiveArgs as Page, PacedLive as PacedPage};
use narrows_lab::execute::RunObserver;
use narrows_lab::measure::{Better, MEASURES, Measure};
use narrows_lab::options::sweep::TableSelection;
use narrows_lab::sweep::CheckedSweep;
use narrows_lab::sweep::found::StoredResult;
use narrows_lab::sweep::grid::Parameter;
use narrows_live::LivePage;
use narrows_live::board::{Board, BoardAbout};
use narrows_live::feed::Feed;
use narrows_live::simulation::Simulations;
use narrows_scenario::Plan;
use std::sync::Arc;

/// A page that is open if `--live` is set.
pub struct WatchedRun {
    feed: Option<Arc<Feed>>,
    page: Option<LivePage>,
}

impl WatchedRun {
    /// Opens the page, if it is wanted.
    pub fn open(page: &Page) -> Result<WatchedRun, Failure> {
        let feed = page.feed();
        let page = page.open(feed.as_ref(), None)?;
        Ok(WatchedRun { feed, page })
    }

    /// The observer of a plan's runs; `detail` is the link or the file.
    pub fn runs<'a>(
        &'a self,
        plan: &'a Plan,
        detail: &str,
        page: &PacedPage,
    ) -> Option<Box<dyn RunObserver + 'a>> {
        let feed = self.feed.as_ref()?;
        Some(Box::new(Simulations::new(feed, plan, detail, page.live_speed)))
    }

    /// The receiver of a sweep's points and their results.
    pub fn sweep(
        &self,
        sweep: &CheckedSweep,
        chosen: TableSelection,
    ) -> impl Fn(usize, &StoredResult) + Sync + use<> {
        let board = Arc::new(Board::new(about_board(sweep, chosen)));
        if let Some(feed) = &self.feed {
            feed.show(board.clone());
        }
        move |point, found| {
            let value = found.groups.get(chosen.group).and_then(|g| g.get(chosen.measure));
            board.found(point, value.copied().unwrap_or(f64::NAN));
        }
    }

    /// Keeps the page of complete results open until Ctrl-C.
    pub fn stay(self, is_complete: bool) {
        stay(self.page.filter(|_| is_complete));
    }
}

/// Description of the sweep for a page.
fn about_board(sweep: &CheckedSweep, chosen: TableSelection) -> BoardAbout {
    let of = |p: &Parameter| (p.name.clone(), p.values.clone());
    let measure = MEASURES.get(chosen.measure);
    let words = |m: &Measure| [m.name, m.unit, m.doc].map(String::from);
    BoardAbout {
        measure: measure.map(words).unwrap_or_default(),
        larger_is_better: measure.and_then(|m| match m.better {
            Better::More => Some(true),
            Better::Less => Some(false),
            Better::Neither => None,
        }),
        group: sweep.groups.get(chosen.group).cloned().unwrap_or_default(),
        parameters: sweep.grid.parameters.iter().map(of).collect(),
        runs: sweep.points.len() * sweep.seeds as usize,
    }
}
