//! The network of a simulation with real packets: the kernel's TCP over an emulated link between two namespaces, with a
//! result of the simulator's form. Root only.
//!
//! Link, seed and starting times are the specification's: loss and delay of the n-th packet at the link are those of
//! the n-th simulated packet. There are no access links, and hosts have their own real delays.

mod flow;
mod result;

use flow::{FlowPlan, KernelTcpFlow};
use narrows_base::Time;
use narrows_emulator::{EmulatedLink, LinkOptions, LinkStats, Namespace};
use narrows_kernel::TcpInfo;
use narrows_net::relay::Lateness;
use narrows_sim::{Histogram, NetworkSpec, RunResult};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between samples of the connections.
const LOOK: Duration = Duration::from_millis(10);
/// Before the first start: threads are there then.
const LEAD: Duration = Duration::from_millis(50);

/// The run to repeat with real packets.
#[derive(Clone, Copy, Debug)]
pub struct KernelTcp<'a> {
    /// Flows and links. Only endless sources; no routes over more than this link.
    pub network: &'a NetworkSpec,
    /// The forward and the reverse link, among the network's.
    pub link: [usize; 2],
    /// The kernel's name of each group's congestion control.
    pub congestion: &'a [String],
}

/// A sample of one connection.
#[derive(Clone, Copy, Debug)]
struct TcpSample {
    at: Time,
    flow: usize,
    info: TcpInfo,
}

/// A sample of the link.
#[derive(Clone, Debug)]
struct LinkLook {
    at: Time,
    stats: LinkStats,
    most_waiting: usize,
}

/// All samples of a run.
struct TcpSamples {
    looks: Vec<TcpSample>,
    link: Vec<LinkLook>,
    /// Looks per group that showed a new state.
    rtt: Vec<Histogram>,
    lateness: Lateness,
}

impl KernelTcp<'_> {
    /// Runs it in real time; `None` if it was stopped. Beside the result, how late the emulated link was.
    ///
    /// # Errors
    /// Missing rights, a congestion control that the kernel does not have, in one line.
    pub fn run(&self, stop: &AtomicBool) -> Result<Option<(RunResult, Lateness)>, String> {
        let text = |e: narrows_emulator::Error| e.to_string();
        let a = Namespace::create("a").map_err(text)?;
        let b = Namespace::create("b").map_err(text)?;
        for end in [&a, &b] {
            // Each connection finds out for itself.
            let path = "/proc/sys/net/ipv4/tcp_no_metrics_save";
            let _ = end.enter(|| std::fs::write(path, "1")).map_err(text)?;
        }
        let [forward, reverse] = self.link.map(|at| &self.network.links[at]);
        let mut options = LinkOptions::new((*forward.config).clone(), (*reverse.config).clone());
        options.seed = self.network.seed;
        options.name = forward.name.clone();
        for (way, at) in self.link.into_iter().enumerate() {
            let of_this = self.network.changes.iter().filter(|c| c.1 == at);
            options.changes[way] = of_this.map(|c| (c.0, c.2.clone())).collect();
        }
        let link = EmulatedLink::between(&a, &b, options).map_err(text)?;
        let begin = Instant::now() + LEAD;
        let flows = self.flows(&link, begin, [&a, &b])?;
        let over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let started = flows.iter().try_for_each(|flow| {
                let thread = std::thread::Builder::new;
                thread().spawn_scoped(scope, || flow.receive(&over))?;
                thread().spawn_scoped(scope, || flow.send(&over)).map(|_| ())
            });
            let seen = started.map(|()| self.watch(&link, &flows, begin, stop));
            over.store(true, Ordering::Release);
            seen
        });
        let seen = seen.map_err(|e| format!("the system starts no more threads: {e}"))?;
        let Some(seen) = seen else { return Ok(None) };
        flows.iter().try_for_each(KernelTcpFlow::check)?;
        let lateness = seen.lateness;
        Ok(Some((self.result(&flows, &seen), lateness)))
    }

    fn flows(
        &self,
        link: &EmulatedLink,
        begin: Instant,
        [a, b]: [&Namespace; 2],
    ) -> Result<Vec<KernelTcpFlow>, String> {
        let address = |end: &narrows_emulator::LinkEnd| end.addresses.first().copied();
        let a = (a, address(link.a()));
        let b = (b, address(link.b()));
        let mut flows = Vec::new();
        for (group, spec) in self.network.groups.iter().enumerate() {
            for flow in &spec.flows {
                // Data go through the link, or come back over it.
                let forward = flow.forward.contains(&(self.link[0] as u32));
                let (from, to) = if forward { (a, b) } else { (b, a) };
                let address = to.1.ok_or("the link has no address")?;
                let plan = FlowPlan {
                    group,
                    congestion: self.congestion[group].clone(),
                    start: flow.start,
                    stop: flow.stop.min(self.network.end),
                    begin,
                    measure_from: self.network.measure_from,
                    end: self.network.end,
                };
                flows.push(KernelTcpFlow::new(plan, from.0, to.0, address)?);
            }
        }
        Ok(flows)
    }

    /// Looks at everything until the end.
    fn watch(
        &self,
        link: &EmulatedLink,
        flows: &[KernelTcpFlow],
        begin: Instant,
        stop: &AtomicBool,
    ) -> Option<TcpSamples> {
        let observer = link.observer();
        let mut seen = TcpSamples {
            looks: Vec::new(),
            link: Vec::new(),
            rtt: vec![Histogram::default(); self.network.groups.len()],
            lateness: Lateness::default(),
        };
        let mut last = vec![TcpInfo::default(); flows.len()];
        for look in 0_u32.. {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let due = begin + LOOK * look;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let since = Instant::now().saturating_duration_since(begin);
            let at = Time::from_secs_f64(since.as_secs_f64());
            let measured = at >= self.network.measure_from;
            for (n, flow) in flows.iter().enumerate() {
                let Some(info) = flow.info() else { continue };
                let is_new = std::mem::replace(&mut last[n], info) != info;
                if measured && is_new && info.rtt_us > 0 {
                    seen.rtt[flow.group()].record(u64::from(info.rtt_us) * 1000);
                }
                seen.looks.push(TcpSample { at, flow: n, info });
            }
            let most_waiting = observer.look().max.into_iter().max().unwrap_or(0);
            seen.link.push(LinkLook { at, stats: link.stats(), most_waiting });
            if at >= self.network.end {
                break;
            }
        }
        let stats = link.stats();
        let ways = [stats.forward.lateness, stats.reverse.lateness];
        seen.lateness = ways.into_iter().max_by(|a, b| a.p99_s.total_cmp(&b.p99_s))?;
        Some(seen)
    }
}
