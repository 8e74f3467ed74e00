//! Many environments: threads, seeds, resets.

use super::{Autoreset, Stepped, VectorEnvironment};
use crate::env::{Environment, EnvironmentSettings, MAX_COMPETITORS, Task};
use std::sync::Arc;

const N: usize = 24;
const STEPS: u32 = 10;

fn task() -> Arc<Task> {
    let settings = EnvironmentSettings {
        link: "1Mbit/s..20Mbit/s log,5ms..40ms,loss=0..3%".into(),
        steps: STEPS,
        ..EnvironmentSettings::default()
    };
    Arc::new(Task::new(&settings).unwrap())
}

fn seeds() -> Vec<u64> {
    (40..40 + N as u64).collect()
}

/// Results of `steps` steps of a vector: rows of observations, rewards, ends, and last observations.
struct VectorResults {
    observations: Vec<Vec<f32>>,
    rewards: Vec<Vec<f64>>,
    truncated: Vec<Vec<bool>>,
    last: Vec<Vec<f32>>,
}

fn play(vector: &mut VectorEnvironment, steps: usize) -> VectorResults {
    let width = vector.task().observations().len();
    let mut played =
        VectorResults { observations: vec![], rewards: vec![], truncated: vec![], last: vec![] };
    for step in 0..steps {
        let mut observations = vec![0.0; N * width];
        let mut rewards = vec![0.0; N];
        let mut truncated = vec![false; N];
        let mut last = vec![0.0; N * width];
        let actions: Vec<f32> = (0..N).map(|i| ((i + step) % 5) as f32 * 0.2 - 0.3).collect();
        let out = Stepped {
            observations: &mut observations,
            rewards: &mut rewards,
            truncated: &mut truncated,
            final_observations: Some(&mut last),
        };
        vector.step(&actions, out).unwrap();
        played.observations.push(observations);
        played.rewards.push(rewards);
        played.truncated.push(truncated);
        played.last.push(last);
    }
    played
}

fn begun(threads: usize, autoreset: Autoreset) -> (VectorEnvironment, Vec<f32>) {
    let mut vector = VectorEnvironment::new(task(), N, threads, autoreset).unwrap();
    let mut first = vec![0.0; N * vector.task().observations().len()];
    vector.reset(Some(&seeds()), None, &mut first).unwrap();
    (vector, first)
}

/// Protects: over resets, the number of threads does not change a bit of the results.
#[test]
fn any_number_of_threads_gives_the_same() {
    let run = |threads| {
        let (mut vector, first) = begun(threads, Autoreset::SameStep);
        let played = play(&mut vector, 35);
        (first, played.observations, played.rewards, played.last)
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == one, "{threads} threads");
    }
    let links: Vec<String> = {
        let (vector, _) = begun(2, Autoreset::SameStep);
        vector.environments().iter().map(|e| e.link().unwrap()).collect()
    };
    let mut different = links.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), N, "each has a link of its own: {links:?}");
}

/// Protects: an environment of a vector is the environment alone with its seed.
#[test]
fn each_is_the_environment_alone() {
    let (mut vector, first) = begun(2, Autoreset::SameStep);
    let played = play(&mut vector, STEPS as usize);
    let width = vector.task().observations().len();
    for (i, seed) in seeds().into_iter().enumerate() {
        let mut alone = Environment::new(task());
        let mut seen = vec![0.0; width];
        let row = i * width..(i + 1) * width;
        alone.reset(seed, &mut seen).unwrap();
        assert_eq!(seen, first[row.clone()]);
        for step in 0..STEPS as usize {
            let action = ((i + step) % 5) as f32 * 0.2 - 0.3;
            let out = alone.step(&[action], &mut seen).unwrap();
            assert_eq!(out.reward, played.rewards[step][i]);
            assert_eq!(out.truncated, played.truncated[step][i]);
            let rows = if out.truncated { &played.last } else { &played.observations };
            assert_eq!(seen, rows[step][row.clone()]);
        }
    }
}

/// Protects: Gymnasium's three ways to reset. With the next step, an ended episode costs a call with reward 0; with the
/// same step it costs no call. Both then see the same new episode. With `Disabled`, a mask selects the environments.
#[test]
fn resets_come_when_the_mode_says() {
    let steps = STEPS as usize;
    let (mut next, _) = begun(2, Autoreset::NextStep);
    let (mut same, _) = begun(2, Autoreset::SameStep);
    let next = play(&mut next, steps + 2);
    let same = play(&mut same, steps + 1);
    assert_eq!(next.truncated[steps - 1], vec![true; N]);
    assert_eq!(same.truncated[steps - 1], vec![true; N]);
    assert_eq!(next.observations[steps - 1], same.last[steps - 1], "the last of the episode");
    assert_eq!(next.observations[steps], same.observations[steps - 1], "the first of the new one");
    assert_eq!(next.rewards[steps], vec![0.0; N]);
    assert_eq!(next.truncated[steps], vec![false; N]);

    let (mut vector, _) = begun(1, Autoreset::Disabled);
    let last = play(&mut vector, steps).observations.pop().unwrap();
    let mut mask = vec![false; N];
    mask[3] = true;
    let mut again = last.clone();
    vector.reset(None, Some(&mask), &mut again).unwrap();
    let width = vector.task().observations().len();
    assert_ne!(again[3 * width..4 * width], last[3 * width..4 * width]);
    assert_eq!(again[..3 * width], last[..3 * width]);
    assert_eq!(again[4 * width..], last[4 * width..]);
}

/// Protects: an action that is not finite is refused before any environment is stepped, and the environment is named.
/// Arrays of wrong lengths are refused, and so are more flows than fit into memory.
#[test]
fn wrong_actions_are_refused_before_a_step() {
    let (mut vector, first) = begun(2, Autoreset::NextStep);
    let before: Vec<f64> = vector.environments().iter().map(|e| e.last_step().time_s()).collect();
    let mut seen = first.clone();
    let mut step = |actions: &[f32], rewards: usize| {
        let mut rewards = vec![0.0; rewards];
        let mut truncated = vec![false; N];
        let out = Stepped {
            observations: &mut seen,
            rewards: &mut rewards,
            truncated: &mut truncated,
            final_observations: None,
        };
        vector.step(actions, out).unwrap_err().to_string()
    };
    let mut actions = vec![0.0; N];
    actions[7] = f32::NAN;
    assert!(step(&actions, N).contains("environment 7: action 'window_change' is NaN"));
    assert!(step(&[0.0], N).contains("actions: 1 numbers instead of 24"));
    assert!(step(&[0.0; N], N - 1).contains("rewards"));
    let after: Vec<f64> = vector.environments().iter().map(|e| e.last_step().time_s()).collect();
    assert_eq!(before, after);
    for (n, threads) in [(0, 1), (usize::MAX, 1), (1, 1 << 40)] {
        assert!(VectorEnvironment::new(task(), n, threads, Autoreset::NextStep).is_err());
    }
    let crowd = EnvironmentSettings {
        against: Some(format!("cubic:{MAX_COMPETITORS}")),
        ..EnvironmentSettings::default()
    };
    let crowd = Arc::new(Task::new(&crowd).unwrap());
    let e = VectorEnvironment::new(crowd, 1000, 1, Autoreset::NextStep).unwrap_err();
    assert!(e.to_string().contains("num_envs: 1000 is not a number from 1 to 999"), "{e}");
}
