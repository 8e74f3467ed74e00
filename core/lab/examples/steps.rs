//! Environment steps per second, beside the engine alone on the same links: 10 Mbit/s, packets of 1,500 bytes,
//! steps of one RTT, links kept full by a fixed window. `python/benchmarks/env_steps.py` is its
//! counterpart in Python. Arguments: RTT in ms, environments, steps, threads (0: one per core), rounds, and `alone` for
//! the engine alone.
//!
//! `cargo run --release -p narrows-lab --features env --example steps -- 20 1024 400 2 5`

use narrows_congestion::{Ack, Controller, SendLimits};
use narrows_lab::env::{Autoreset, EnvironmentSettings, Stepped, Task, VectorEnvironment};
use narrows_sim::NetworkSpec;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Instant;

/// A window that never changes.
#[derive(Clone)]
struct Fixed(f64);

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.0)
    }
}

fn main() {
    let args_text: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<usize> = args_text.iter().filter_map(|a| a.parse().ok()).collect();
    let number = |i: usize, usual: usize| args.get(i).copied().unwrap_or(usual);
    let rtt_ms = number(0, 20);
    let n = number(1, 1024);
    let steps = number(2, 400);
    let threads = number(3, 0);
    let rounds = number(4, 5);
    let settings = EnvironmentSettings {
        link: format!("10Mbit/s,{}us", rtt_ms * 500),
        packet: 1500,
        actions: vec!["window".into()],
        steps: steps as u32,
        ..EnvironmentSettings::default()
    };
    let task = Arc::new(Task::new(&settings).expect("legal settings"));
    // The link holds one BDP; half a BDP waits.
    let window = (1.5 * 10e6 * rtt_ms as f64 * 1e-3 / 12_000.0).ceil();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let mut networks: Vec<NetworkSpec> =
        (0..n as u64).map(|seed| task.network(seed).expect("a link")).collect();
    for network in &mut networks {
        let protocol = network.groups[0].protocol.clone();
        network.groups[0].protocol = protocol.wrapped(move |_, _| Box::new(Fixed(window)));
    }

    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        let packets: u64 = pool.install(|| {
            let one = |network: &NetworkSpec| narrows_sim::run(network, &mut |_| true);
            networks.par_iter().map(|network| one(network).expect("a run").delivered_packets).sum()
        });
        let alone = (n * steps) as f64 / begin.elapsed().as_secs_f64();
        if args_text.iter().any(|a| a == "alone") {
            println!("alone={alone:.0}");
            continue;
        }
        let stepped = environments(&task, n, threads, steps, window as f32);
        ratios.push(stepped / alone);
        println!(
            "engine alone {alone:.0} steps/s ({packets} packets), environments {stepped:.0} steps/s, ratio {:.2}",
            stepped / alone
        );
    }
    if ratios.is_empty() {
        return;
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "rtt_ms={rtt_ms} envs={n} steps={steps} median_ratio={:.3} peak_kib={}",
        ratios[ratios.len() / 2],
        peak_kib()
    );
}

/// Steps per second, resets included.
fn environments(task: &Arc<Task>, n: usize, threads: usize, steps: usize, window: f32) -> f64 {
    let made = VectorEnvironment::new(task.clone(), n, threads, Autoreset::SameStep);
    let mut vector = made.expect("a vector");
    let width = task.observations().len();
    let mut observations = vec![0.0; n * width];
    let mut rewards = vec![0.0; n];
    let mut truncated = vec![false; n];
    let mut last = vec![0.0; n * width];
    let actions = vec![window; n];
    let seeds: Vec<u64> = (0..n as u64).collect();
    let begin = Instant::now();
    vector.reset(Some(&seeds), None, &mut observations).expect("a reset");
    for _ in 0..steps {
        let out = Stepped {
            observations: &mut observations,
            rewards: &mut rewards,
            truncated: &mut truncated,
            final_observations: Some(&mut last),
        };
        vector.step(&actions, out).expect("a step");
    }
    (n * steps) as f64 / begin.elapsed().as_secs_f64()
}

/// Peak memory of this process in KiB; 0 if the system does not report it.
fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
