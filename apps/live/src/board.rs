//! A sweep on the page: the parameters, the number of completed runs, and the mean of a measure at each point so far.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most recorded changes. A browser that has missed more gets all points.
const MAX_CHANGES: usize = 4096;

/// Description of a sweep.
#[derive(Clone, Debug, Default)]
pub struct BoardAbout {
    /// The displayed measure: name, unit and meaning.
    pub measure: [String; 3],
    /// Whether larger values are better; absent if neither is.
    pub larger_is_better: Option<bool>,
    /// Group of flows that is measured.
    pub group: String,
    /// Varied parameters with their values; the first one varies slowest.
    pub parameters: Vec<(String, Vec<String>)>,
    /// Runs of all points together.
    pub runs: usize,
}

/// A sweep and the results of its points so far.
#[derive(Debug)]
pub struct Board {
    about: BoardAbout,
    state: Mutex<BoardState>,
}

#[derive(Debug)]
struct BoardState {
    /// For each point, the sum of its values and their number.
    cells: Vec<(f64, u32)>,
    done: usize,
    /// Points that changed last.
    changes: VecDeque<usize>,
    changed: u64,
}

impl Board {
    /// Without results.
    pub fn new(about: BoardAbout) -> Board {
        let points = about.parameters.iter().map(|p| p.1.len()).product();
        let cells = vec![(0.0, 0); points];
        let changes = VecDeque::new();
        Board { about, state: Mutex::new(BoardState { cells, done: 0, changes, changed: 0 }) }
    }

    /// Adds the value of one run at this point; NaN if the run has none.
    pub fn found(&self, point: usize, value: f64) {
        let mut state = self.lock();
        state.done += 1;
        state.changed += 1;
        if let Some(cell) = state.cells.get_mut(point).filter(|_| value.is_finite()) {
            cell.0 += value;
            cell.1 += 1;
        }
        if state.changes.len() == MAX_CHANGES {
            state.changes.pop_front();
        }
        state.changes.push_back(point);
    }

    /// The number of changes, and the JSON of those after `seen`; all points if `seen` is `None`, and no JSON without
    /// changes.
    pub(crate) fn since(&self, seen: Option<u64>) -> (u64, Option<Value>) {
        let state = self.lock();
        if seen == Some(state.changed) {
            return (state.changed, None);
        }
        let mean = |(sum, n): (f64, u32)| (n > 0).then(|| sum / f64::from(n));
        let cell = |point: usize| {
            let cell = state.cells.get(point).copied().unwrap_or_default();
            json!([point, mean(cell), cell.1])
        };
        let lacking = state.changed - seen.unwrap_or(0);
        let kept = usize::try_from(lacking).ok().filter(|n| *n <= state.changes.len());
        let (all, cells): (bool, Vec<Value>) = match (seen, kept) {
            (Some(_), Some(n)) => {
                let mut points: Vec<usize> = state.changes.iter().rev().take(n).copied().collect();
                points.sort_unstable();
                points.dedup();
                (false, points.into_iter().map(cell).collect())
            }
            _ => {
                let known = (0..state.cells.len())
                    .filter(|p| state.cells.get(*p).is_some_and(|cell| cell.1 > 0));
                (true, known.map(cell).collect())
            }
        };
        let mut out = json!({ "all": all, "done": state.done, "cells": cells });
        if seen.is_none() {
            let a = &self.about;
            let parameters: Vec<Value> = (a.parameters.iter())
                .map(|(name, values)| json!({ "name": name, "values": values }))
                .collect();
            let [measure, unit, meaning] = &a.measure;
            out["about"] = json!({
                "measure": measure, "unit": unit, "meaning": meaning, "group": a.group,
                "larger": a.larger_is_better, "parameters": parameters, "runs": a.runs,
            });
        }
        (state.changed, Some(out))
    }

    /// The state stays usable after a panic of another thread.
    fn lock(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        let parameters = vec![
            ("rate".into(), vec!["1Mbit/s".into(), "2Mbit/s".into()]),
            ("loss".into(), vec!["0%".into(), "1%".into(), "2%".into()]),
        ];
        Board::new(BoardAbout { parameters, runs: 12, ..BoardAbout::default() })
    }

    /// A new browser gets everything, a later request only the changed points, and without changes there is no frame.
    #[test]
    fn followers_get_changed_points() {
        let board = board();
        let (seen, first) = board.since(None);
        let first = first.unwrap();
        assert_eq!(first["about"]["parameters"][1]["values"][2], "2%");
        assert_eq!(
            (first["done"].as_u64(), first["cells"].as_array().unwrap().len()),
            (Some(0), 0)
        );
        board.found(4, 1.0);
        board.found(4, 2.0);
        board.found(5, f64::NAN);
        let (now, more) = board.since(Some(seen));
        let more = more.unwrap();
        assert_eq!(more["cells"], json!([[4, 1.5, 2], [5, null, 0]]));
        assert!(more.get("about").is_none() && more["done"] == 3);
        assert_eq!(board.since(Some(now)), (now, None));
    }

    /// Pending data for a browser is bounded by the number of points, for any number of runs.
    #[test]
    fn a_browser_that_fell_behind_gets_each_point_once() {
        let board = board();
        let (seen, _) = board.since(None);
        for n in 0..100_000 {
            board.found(n % 6, n as f64);
        }
        board.found(1_000_000, 1.0);
        let (_, all) = board.since(Some(seen));
        let all = all.unwrap();
        assert_eq!((all["all"].as_bool(), all["cells"].as_array().unwrap().len()), (Some(true), 6));
        assert_eq!(board.lock().changes.len(), MAX_CHANGES);
    }
}
