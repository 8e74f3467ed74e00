//! `narrows.scorecard`.

use crate::controller;
use crate::errors::SpecError;
use crate::work;
use narrows_lab::execute::RunControl;
use narrows_lab::networks::NetworkScorecard;
use narrows_lab::parallel::cores;
use narrows_report::network_scorecard;
use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(scorecard, m)?)
}

/// Scores a protocol on random networks; returns the command's table and its JSON.
#[pyfunction]
fn scorecard(
    py: Python<'_>,
    protocol: String,
    networks: usize,
    seed: u64,
    jobs: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let asked = NetworkScorecard { protocol, networks, seed };
    let jobs = jobs.unwrap_or_else(cores);
    work::run(py, progress, |watch| {
        let control = RunControl { stop: &watch.stop, progress: &|f| watch.tell(f), jobs };
        let scores =
            asked.measure(&control).map_err(|e| controller::error(e, SpecError::new_err))?;
        // Interrupted work has an exception, which replaces this result.
        let Some(scores) = scores else { return Ok((String::new(), "{}".into())) };
        let json = network_scorecard::json(&asked, &scores);
        Ok((network_scorecard::table(&scores), json.to_string()))
    })
}
