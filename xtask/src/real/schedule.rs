//! Several measurements at once, within a budget of the links' rates.
//!
//! Slow links need a few percent of a core, and most of a run is waiting. The longest begin first and shorter ones fill
//! the gaps. A run above the budget, or one that must run alone, has the machine to itself.

use std::sync::mpsc::channel;

/// The least that a run counts, bit/s: its threads wake up even on the slowest link.
const MIN_BPS: f64 = 1e6;

/// A measurement: its index, its rate and its duration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScheduledRun {
    pub number: usize,
    pub rate_bps: f64,
    pub seconds: f64,
    /// Whether it must run alone, regardless of its rate.
    pub alone: bool,
}

impl ScheduledRun {
    fn weight(&self) -> f64 {
        self.rate_bps.max(MIN_BPS)
    }
    fn is_alone(&self, budget: f64) -> bool {
        self.alone || self.weight() > budget
    }
}

/// The order in which jobs are tried: those that share the machine first, the longest first, the fastest links first
/// among equals, else in the given order.
fn ordered(jobs: &[ScheduledRun], budget: f64) -> Vec<ScheduledRun> {
    let mut waiting = jobs.to_vec();
    waiting.sort_by(|a, b| {
        let alone = a.is_alone(budget).cmp(&b.is_alone(budget));
        if a.is_alone(budget) && b.is_alone(budget) {
            // The order does not change the total time, and alternating treats the compared protocols alike.
            return alone;
        }
        let seconds = b.seconds.total_cmp(&a.seconds);
        alone.then(seconds).then(b.weight().total_cmp(&a.weight()))
    });
    waiting
}

/// The first of the waiting that may begin beside those that run.
fn next(waiting: &[ScheduledRun], running: &[ScheduledRun], budget: f64) -> Option<usize> {
    if running.iter().any(|j| j.is_alone(budget)) {
        return None;
    }
    let used: f64 = running.iter().map(ScheduledRun::weight).sum();
    waiting.iter().position(|j| match j.is_alone(budget) {
        true => running.is_empty(),
        false => used + j.weight() <= budget,
    })
}

/// Begin of each job if all have their planned durations, and the end of the last, s.
pub fn plan(jobs: &[ScheduledRun], budget: f64) -> (Vec<(ScheduledRun, f64)>, f64) {
    let mut waiting = ordered(jobs, budget);
    let mut running: Vec<(f64, ScheduledRun)> = Vec::new();
    let mut begun = Vec::new();
    let mut now = 0.0;
    let mut end = 0.0f64;
    loop {
        let jobs: Vec<ScheduledRun> = running.iter().map(|r| r.1).collect();
        if let Some(i) = next(&waiting, &jobs, budget) {
            let job = waiting.remove(i);
            begun.push((job, now));
            end = end.max(now + job.seconds);
            running.push((now + job.seconds, job));
            continue;
        }
        let Some(first) = running.iter().map(|r| r.0).min_by(f64::total_cmp) else { break };
        now = first;
        running.retain(|r| r.0 > now);
    }
    (begun, end)
}

/// Runs all jobs, each on its own thread. `finished` is called at the end of each, with the jobs that have not ended.
pub fn run<R: Send>(
    jobs: &[ScheduledRun],
    budget: f64,
    work: impl Fn(&ScheduledRun) -> Result<R, String> + Sync,
    mut finished: impl FnMut(&ScheduledRun, Result<R, String>, &[ScheduledRun]),
) {
    let mut waiting = ordered(jobs, budget);
    let mut running: Vec<ScheduledRun> = Vec::new();
    let (ended, ends) = channel();
    let work = &work;
    std::thread::scope(|scope| {
        loop {
            if let Some(i) = next(&waiting, &running, budget) {
                let job = waiting.remove(i);
                running.push(job);
                let ended = ended.clone();
                scope.spawn(move || {
                    // A panic of one job must neither stop the others nor leave the loop waiting.
                    let done =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&job)));
                    let result = done.unwrap_or_else(|_| Err("the measurement died".into()));
                    let _ = ended.send((job, result));
                });
                continue;
            }
            if running.is_empty() {
                break;
            }
            let Ok((job, result)) = ends.recv() else { break };
            running.retain(|r| r.number != job.number);
            finished(&job, result, &[&running[..], &waiting].concat());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: usize, mbps: f64, seconds: f64) -> ScheduledRun {
        ScheduledRun { number, rate_bps: mbps * 1e6, seconds, alone: false }
    }

    fn mixed() -> Vec<ScheduledRun> {
        let mut jobs: Vec<ScheduledRun> = (0..60)
            .map(|n| {
                let (mbps, seconds) =
                    [(20.0, 20.0), (1.5, 60.0), (0.144, 60.0), (100.0, 20.0)][n % 4];
                job(n, mbps, seconds)
            })
            .collect();
        jobs[1].alone = true;
        jobs
    }

    #[test]
    fn the_budget_holds_at_every_moment_and_everything_runs_once() {
        let budget = 45e6;
        let (begun, end) = plan(&mixed(), budget);
        let mut numbers: Vec<usize> = begun.iter().map(|b| b.0.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..60).collect::<Vec<_>>());
        for (job, at) in &begun {
            let beside: Vec<&ScheduledRun> = begun
                .iter()
                .filter(|(j, t)| t <= at && t + j.seconds > *at)
                .map(|(j, _)| j)
                .collect();
            let rates: f64 = beside.iter().map(|j| j.rate_bps).sum();
            if job.alone || job.rate_bps > budget {
                assert_eq!(beside.len(), 1, "{job:?}");
            } else {
                assert!(rates <= budget, "{rates} at {at}");
            }
        }
        // The slow ones 60 s beside each other, then 15 of 20 Mbit/s two by two; alone 15 of 100 Mbit/s
        // and one that wants to be.
        assert_eq!(end, 60.0 + 8.0 * 20.0 + 15.0 * 20.0 + 60.0);
    }

    #[test]
    fn longest_runs_start_first_in_a_fixed_order() {
        let (begun, _) = plan(&mixed(), 45e6);
        let sharing: Vec<f64> = begun.iter().filter(|b| b.1 == 0.0).map(|b| b.0.seconds).collect();
        assert!(sharing.windows(2).all(|w| w[0] >= w[1]), "{sharing:?}");
        assert_eq!(begun, plan(&mixed(), 45e6).0);
    }

    #[test]
    fn failed_run_is_reported_and_the_rest_continue() {
        let jobs = [job(0, 1.0, 0.0), job(1, 1.0, 0.0), job(2, 100.0, 0.0)];
        let mut seen = Vec::new();
        run(
            &jobs,
            2e6,
            |j| match j.number {
                0 => Err("no".into()),
                1 => panic!("for the test"),
                _ => Ok(1),
            },
            |j, r, _| seen.push((j.number, r)),
        );
        seen.sort_by_key(|s| s.0);
        let died = Err("the measurement died".to_string());
        assert_eq!(seen, [(0, Err("no".into())), (1, died), (2, Ok(1))]);
    }
}
