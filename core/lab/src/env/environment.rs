//! One environment: a flow over a link, a step at a time.

use crate::env::action::Action;
use crate::env::controller::{StepController, StepCounts};
use crate::env::error::EnvError;
use crate::env::step::EpisodeStep;
use crate::env::task::{ENVIRONMENT, Task};
use crate::env::trace::EpisodeTrace;
use narrows_base::{Duration, RandomKey, SpecError, Time};
use narrows_congestion::Controller;
use narrows_sim::{SimError, Simulation};
use std::any::Any;
use std::sync::Arc;

/// Index of the flow whose limits are set; competitors follow it.
const AGENT: usize = 0;
const FORWARD: usize = 0;

/// Result of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepOutcome {
    /// The weighted sum of the reward's terms.
    pub reward: f64,
    /// Whether this was the episode's last step. Episodes end only by time, so they are truncated, never terminated.
    pub truncated: bool,
}

/// One flow over one link.
#[derive(Debug)]
pub struct Environment {
    task: Arc<Task>,
    random_key: RandomKey,
    episodes: u64,
    running: Option<RunningEpisode>,
    trace: Option<EpisodeTrace>,
}

/// An episode that is under way.
#[derive(Debug)]
struct RunningEpisode {
    simulation: Simulation<'static>,
    key: RandomKey,
    step: EpisodeStep,
    steps: u32,
    sums: EpisodeSums,
}

/// Sums over the steps of an episode.
#[derive(Clone, Copy, Debug, Default)]
struct EpisodeSums {
    delivered: u64,
    lost: u64,
    acks: u64,
    rtt_s: f64,
    seconds: f64,
    reward: f64,
}

impl Environment {
    /// An environment that has not been reset yet; seed 0.
    pub fn new(task: Arc<Task>) -> Environment {
        let random_key = RandomKey::from_seed(0).named(ENVIRONMENT);
        Environment { task, random_key, episodes: 0, running: None, trace: None }
    }

    /// The settings of the environment.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Whether an episode has begun.
    pub fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Keeps a trace of each episode from the next reset on.
    pub fn keep_trace(&mut self) {
        self.trace = Some(EpisodeTrace::default());
    }
    /// The trace of the episode, if one is kept.
    pub fn trace(&self) -> Option<&EpisodeTrace> {
        self.trace.as_ref()
    }

    /// Its random draws now follow from this seed.
    pub fn seed(&mut self, seed: u64) {
        self.random_key = RandomKey::from_seed(seed).named(ENVIRONMENT);
        self.episodes = 0;
    }

    /// Seeds it, begins an episode and writes the first observation.
    ///
    /// # Errors
    /// As [`begin`](Environment::begin).
    pub fn reset(&mut self, seed: u64, observation: &mut [f32]) -> Result<(), EnvError> {
        self.seed(seed);
        self.begin(observation)
    }

    /// Begins the next episode: draws a link, and simulates the handshake and the round trip of the initial window. The
    /// first observation describes that time.
    ///
    /// # Errors
    /// The observation's length differs from the task's, the drawn link is invalid, or the simulation was aborted.
    pub fn begin(&mut self, observation: &mut [f32]) -> Result<(), EnvError> {
        self.check(observation.len())?;
        let key = self.random_key.numbered(self.episodes);
        let (network, episode, first) = self.task.episode(key)?;
        let mut simulation = Simulation::owned(network).map_err(aborted)?;
        let limits = Action::begin(self.task.actions(), &episode);
        let seconds = first.since(Time::ZERO).as_secs_f64();
        let counts = StepCounts::default();
        own(simulation.controller_mut(AGENT)).limits = limits;
        let step = EpisodeStep {
            counts,
            episode,
            seconds,
            time_s: 0.0,
            limits,
            window: limits.cwnd,
            window_before: limits.cwnd,
            max_delivery: 0.0,
            queue: 0,
        };
        let mut running =
            RunningEpisode { simulation, key, step, steps: 0, sums: EpisodeSums::default() };
        running.play(first)?;
        self.episodes += 1;
        if let Some(trace) = &mut self.trace {
            trace.clear();
            trace.push(&running.step);
        }
        write(&self.task, &running.step, observation);
        self.running = Some(running);
        Ok(())
    }

    /// Sets the limits by `actions`, one number for each of the task's actions, simulates a step and writes the
    /// observation. After the last step of an episode, the caller must call [`begin`](Environment::begin) or
    /// [`reset`](Environment::reset) first.
    ///
    /// # Errors
    /// The number of actions or observations differs from the task's, an action is not finite, a reset is missing, or
    /// the simulation was aborted.
    pub fn step(
        &mut self,
        actions: &[f32],
        observation: &mut [f32],
    ) -> Result<StepOutcome, EnvError> {
        self.check(observation.len())?;
        check_actions(&self.task, 0, actions)?;
        let Some(running) = self.running.as_mut() else { return Err(EnvError::NotReset(0)) };
        if running.steps >= self.task.steps() {
            return Err(EnvError::Ended(0));
        }
        std::hint::black_box(running.simulation.fetch());
        running.act(self.task.actions(), actions);
        let until = running.simulation.now() + running.step.episode.step;
        running.play(until)?;
        running.steps += 1;
        let step = &running.step;
        let reward = self.task.reward(step);
        running.sums.add(step, reward);
        if let Some(trace) = &mut self.trace {
            trace.push(step);
        }
        let truncated = running.steps == self.task.steps();
        write(&self.task, step, observation);
        Ok(StepOutcome { reward, truncated })
    }

    /// Whether its episode has had its last step.
    pub fn has_ended(&self) -> bool {
        self.running.as_ref().is_some_and(|r| r.steps >= self.task.steps())
    }

    /// Results of the last step; after a reset, those of the opening.
    ///
    /// # Panics
    /// If the environment has never been reset.
    pub fn last_step(&self) -> &EpisodeStep {
        &self.running.as_ref().expect("an environment that has been reset").step
    }

    /// The link of the episode, as text that [`BottleneckLink::parse`](narrows_scenario::BottleneckLink::parse) reads.
    ///
    /// # Errors
    /// It has not been reset.
    pub fn link(&self) -> Result<String, EnvError> {
        let running = self.running.as_ref().ok_or(EnvError::NotReset(0))?;
        Ok(self.task.link(running.key)?.to_string())
    }

    /// Means over the steps of the episode so far: throughput over capacity, RTT over base RTT, share lost, reward per
    /// step. NaN before the first step.
    pub fn means(&self) -> [f64; 4] {
        let Some(r) = &self.running else { return [f64::NAN; 4] };
        let s = r.sums;
        let e = r.step.episode;
        [
            s.delivered as f64 / (e.capacity * s.seconds),
            s.rtt_s / s.acks as f64 / e.base_rtt_s,
            s.lost as f64 / (s.lost + s.delivered) as f64,
            s.reward / f64::from(r.steps),
        ]
    }

    fn check(&self, length: usize) -> Result<(), SpecError> {
        let wanted = self.task.observations().len();
        if length == wanted {
            return Ok(());
        }
        Err(SpecError::new(format!("an observation has {wanted} numbers, not {length}")))
    }
}

fn write(task: &Task, step: &EpisodeStep, observation: &mut [f32]) {
    for (at, of) in observation.iter_mut().zip(task.observations()) {
        *at = of.of(step);
    }
}

/// Checks the actions of environment number `index`.
pub(crate) fn check_actions(task: &Task, index: usize, actions: &[f32]) -> Result<(), SpecError> {
    let wanted = task.actions().len();
    if actions.len() != wanted {
        let e = format!("an action has {wanted} numbers, not {}", actions.len());
        return Err(SpecError::new(e));
    }
    match actions.iter().position(|a| !a.is_finite()) {
        None => Ok(()),
        Some(i) => Err(SpecError::new(format!(
            "environment {index}: action '{}' is {}; a finite number is expected",
            task.actions()[i].name,
            actions[i]
        ))),
    }
}

impl RunningEpisode {
    fn act(&mut self, actions: &[&'static Action], values: &[f32]) {
        let step = &mut self.step;
        let srtt_s = step.counts.srtt.as_secs_f64();
        let mut limits = step.limits;
        // Windows first: a pacing rate may be a multiple of them.
        for windows in [true, false] {
            for (action, value) in actions.iter().zip(values) {
                if action.sets_window() == windows {
                    action.apply(*value, &mut limits, srtt_s, &step.episode);
                }
            }
        }
        step.limits = limits;
        let controller = own(self.simulation.controller_mut(AGENT));
        controller.counts.clear();
        // A poll between its events could disturb a listed protocol.
        if controller.is_limited_from_outside() {
            self.simulation.change_controller(AGENT, |c| own(c).limits = limits);
        }
    }

    /// Simulates until `until` and reads the results.
    fn play(&mut self, until: Time) -> Result<(), EnvError> {
        let from = self.simulation.now();
        self.simulation.advance(until, &mut |_| true).map_err(aborted)?;
        let (counts, limits) = {
            let own = seen(self.simulation.controller(AGENT));
            (own.counts, own.send_limits())
        };
        let step = &mut self.step;
        step.counts = counts;
        step.seconds = until.since(from).max(Duration::from_nanos(1)).as_secs_f64();
        step.time_s = until.as_secs_f64();
        step.limits = limits;
        step.window_before = step.window;
        step.window = match limits.pacing_rate {
            Some(rate) if limits.cwnd >= step.episode.max_window => {
                rate.as_bps() as f64 / step.episode.packet_bits * step.rtt_s()
            }
            _ => limits.cwnd.min(step.episode.max_window),
        };
        step.max_delivery = step.max_delivery.max(step.delivery());
        step.queue = self.simulation.waiting(FORWARD);
        Ok(())
    }
}

impl EpisodeSums {
    fn add(&mut self, step: &EpisodeStep, reward: f64) {
        self.delivered += step.counts.delivered;
        self.lost += step.counts.lost;
        self.acks += step.counts.acks;
        self.rtt_s += step.counts.rtt_sum_ns as f64 * 1e-9;
        self.seconds += step.seconds;
        self.reward += reward;
    }
}

fn aborted(e: SimError) -> EnvError {
    EnvError::Simulation(0, e)
}

/// The environment's own controller, which every flow of an agent has.
fn own(c: &mut dyn Controller) -> &mut StepController {
    (c as &mut dyn Any).downcast_mut().expect("an agent's controller")
}

fn seen(c: &dyn Controller) -> &StepController {
    (c as &dyn Any).downcast_ref().expect("an agent's controller")
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
