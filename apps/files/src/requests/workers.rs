//! A bounded pool of threads that grows on demand; a thread that is idle for a while ends.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Time after which an idle thread ends.
const REST: Duration = Duration::from_secs(10);

#[derive(Default)]
struct WorkersState {
    jobs: VecDeque<Job>,
    threads: usize,
    resting: usize,
}

pub(super) struct Workers {
    max: usize,
    state: Mutex<WorkersState>,
    more: Condvar,
}

impl Workers {
    pub fn new(max: usize) -> Arc<Workers> {
        Arc::new(Workers { max, state: Mutex::default(), more: Condvar::new() })
    }

    /// Queues the job; returns it if the system has no thread for it.
    pub fn run(self: &Arc<Workers>, job: Job) -> Option<Job> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(job);
        if state.resting >= state.jobs.len() {
            self.more.notify_one();
            return None;
        }
        if state.threads >= self.max {
            // A running thread is about to become free.
            return None;
        }
        let workers = Arc::clone(self);
        let name = std::thread::Builder::new().name("narrows-request".into());
        if name.spawn(move || workers.work()).is_ok() {
            state.threads += 1;
            return None;
        }
        if state.threads > 0 { None } else { state.jobs.pop_back() }
    }

    pub fn threads(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).threads
    }

    fn work(&self) {
        let _one_less = OneLess(self);
        loop {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            while state.jobs.is_empty() {
                state.resting += 1;
                let (after, waited) =
                    self.more.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner);
                state = after;
                state.resting -= 1;
                if waited.timed_out() && state.jobs.is_empty() {
                    return;
                }
            }
            let job = state.jobs.pop_front();
            drop(state);
            if let Some(job) = job {
                job();
            }
        }
    }
}

/// Decrements the number of threads, also after a panic.
struct OneLess<'w>(&'w Workers);

impl Drop for OneLess<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).threads -= 1;
    }
}
