//! Progress messages while measurements run.

use super::schedule::{ScheduledRun, plan};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

const STEPS: u64 = 1000;

/// A bar, if the error stream is a terminal.
pub struct MeasurementBar {
    bar: ProgressBar,
    begun: Instant,
    budget_bps: f64,
    /// Those that have not ended.
    left: RefCell<Vec<ScheduledRun>>,
}

impl MeasurementBar {
    /// Prints the expected duration.
    pub fn begin(
        jobs: &[ScheduledRun],
        budget_bps: f64,
        attempt: u32,
        path: &Path,
    ) -> MeasurementBar {
        let (_, wall_s) = plan(jobs, budget_bps);
        let again = if attempt == 1 { "" } else { " again, one by one: the relay was late" };
        eprintln!(
            "{} runs{again}; about {:.0} minutes, at most {:.0} Mbit/s of links at once; each is kept in {}",
            jobs.len(),
            (wall_s / 60.0).ceil(),
            budget_bps * 1e-6,
            path.display()
        );
        // indicatif hides it by itself where the error stream is no terminal.
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {percent:>3}%") {
            bar.set_style(style);
        }
        MeasurementBar { bar, begun: Instant::now(), budget_bps, left: RefCell::new(jobs.to_vec()) }
    }

    /// A job has ended.
    pub fn ended(&self, job: &ScheduledRun) {
        self.left.borrow_mut().retain(|j| j.number != job.number);
    }

    /// Prints the running jobs, with the seconds that they have run.
    pub fn tick(&self, running: &[(ScheduledRun, f64)]) {
        let left = self.left.borrow();
        let rest: Vec<ScheduledRun> = left
            .iter()
            .map(|j| match running.iter().find(|r| r.0.number == j.number) {
                Some((job, passed)) => {
                    ScheduledRun { seconds: (job.seconds - passed).max(0.1), ..*job }
                }
                None => *j,
            })
            .collect();
        let (passed, to_come) =
            (self.begun.elapsed().as_secs_f64(), plan(&rest, self.budget_bps).1);
        self.bar.set_position((passed / (passed + to_come).max(1e-9) * STEPS as f64) as u64);
        self.bar.set_message(format!(
            "{} runs left, {} at once, {:.0} min",
            left.len(),
            running.len(),
            (to_come / 60.0).ceil()
        ));
    }

    /// A line above the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
