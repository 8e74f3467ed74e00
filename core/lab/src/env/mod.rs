//! Environments for learning congestion control.
//!
//! An [`Environment`] is one flow over one simulated link. An *action* sets the flow's window, its pacing rate or both.
//! A step simulates the link for one round trip or a given time. The *observation* has values that a sender can
//! measure: delivery rate, RTTs, losses, packets in flight. A [`VectorEnvironment`] has thousands of environments. It
//! steps all of them on all cores, into arrays of the caller. Each episode has a link of its own, drawn from ranges
//! ([`LinkDistribution`]).
//!
//! All results are a function of the seed, with any number of threads.
//!
//! ```
//! use narrows_lab::env::{Environment, Task};
//!
//! let task = Task::new(&narrows_lab::env::EnvironmentSettings { link: "10Mbit/s..20Mbit/s,10ms".into(), ..Default::default() })?;
//! let mut environment = Environment::new(task.into());
//! let mut observation = vec![0.0; environment.task().observations().len()];
//! environment.reset(7, &mut observation)?;
//! let mut throughput = 0.0;
//! for _ in 0..50 {
//!     let step = environment.step(&[0.1], &mut observation)?;
//!     throughput = environment.last_step().throughput();
//! }
//! assert!(throughput > 0.9, "the window has grown until the link is full: {throughput}");
//! # Ok::<(), narrows_lab::env::EnvError>(())
//! ```

mod action;
mod controller;
mod distribution;
mod environment;
mod episode;
mod error;
mod observation;
mod reward;
mod step;
mod task;
mod trace;
mod vector;

pub use action::{ACTIONS, Action};
pub use distribution::LinkDistribution;
pub use environment::{Environment, StepOutcome};
pub use episode::Episode;
pub use error::EnvError;
pub use observation::{OBSERVATIONS, Observation};
pub use reward::{REWARDS, Reward};
pub use step::EpisodeStep;
pub use task::{
    DEFAULT_LINK, EnvironmentSettings, MAX_COMPETITORS, MAX_STEPS, StepLength, Task, Transport,
};
pub use trace::{COLUMNS, EpisodeTrace};
pub use vector::{Autoreset, MAX_FLOWS, Stepped, VectorEnvironment};
