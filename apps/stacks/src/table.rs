//! The same transfer over several links: the table without a subcommand.

use crate::{STACKS, selected};
use narrows_base::{Duration, Spec};
use narrows_lab::compare::Question;
use narrows_scenario::Plan;
use narrows_sim::SourceSpec;
use std::path::Path;

/// Links of a run without `--link`.
const LINKS: [&str; 6] = [
    "20Mbit/s,25ms",
    "20Mbit/s,25ms,loss=1%",
    "20Mbit/s,25ms,loss=5%",
    "20Mbit/s,25ms,loss=10%",
    "20Mbit/s,25ms,jitter=20ms",
    "20Mbit/s,25ms,reorder=5%/10ms",
];

/// Options of the table.
#[derive(Clone, Debug, Default)]
pub struct TransferTable {
    /// As for `narrows compare --link`; without any, six links.
    pub links: Vec<String>,
    /// Protocols and stacks; empty for all.
    pub only: Vec<String>,
    /// Length of a run.
    pub seconds: f64,
    /// Bytes of a file; without, data have no end.
    pub bytes: Option<u64>,
    /// Seed of the links' draws.
    pub seed: u64,
}

impl TransferTable {
    /// Prints a row per protocol and a column per link: Mbit/s and the mean RTT in ms.
    ///
    /// # Errors
    /// An invalid link or protocol, or an error of the simulator.
    pub fn print(&self) -> Result<(), String> {
        let links: Vec<&str> = match self.links.is_empty() {
            true => LINKS.to_vec(),
            false => self.links.iter().map(String::as_str).collect(),
        };
        let protocols = selected(&self.only, |_| true)?;
        // Wrong links are reported before the first run.
        for link in &links {
            self.plan("cubic", link)?;
        }
        let heads: Vec<String> = links.iter().map(|link| format!(" `{link}` |")).collect();
        println!("| stack | protocol |{}", heads.concat());
        println!("|---|---|{}", "---|".repeat(heads.len()));
        for protocol in &protocols {
            let stack = STACKS.iter().find(|stack| (stack.protocols)().contains(protocol));
            let mut row = format!("| {} | {protocol} |", stack.map_or("", |stack| stack.name));
            for link in &links {
                let outcome = self.run(protocol, link);
                let o = outcome.map_err(|e| format!("{protocol}: {e}"))?;
                row += &format!(" {:.2}, {:.0} |", o.goodput_bps / 1e6, o.rtt_ms);
            }
            println!("{row}");
        }
        Ok(())
    }

    fn plan(&self, protocol: &str, link: &str) -> Result<Plan, String> {
        let source = match self.bytes {
            None => SourceSpec::bulk(),
            Some(bytes) => {
                let transfer = Spec::parse(&format!("transfer(size={bytes}B)"));
                let transfer = transfer.and_then(|spec| SourceSpec::read(&spec));
                transfer.map_err(|e| format!("--bytes: {e}"))?
            }
        };
        let question = Question {
            link: link.into(),
            protocols: protocol.into(),
            source,
            duration: Duration::from_secs_f64(self.seconds),
            seeds: 1,
            seed: self.seed,
            packet: 1500,
            ..Question::default()
        };
        let scenario = question.scenario(Path::new("")).map_err(|e| e.to_string())?.0;
        Plan::new(scenario).map_err(|e| e.to_string())
    }

    /// Runs one protocol over one link.
    ///
    /// # Errors
    /// An invalid link or protocol, or an error of the simulator.
    pub fn run(&self, protocol: &str, link: &str) -> Result<TransferOutcome, String> {
        let plan = self.plan(protocol, link)?;
        let network = plan.network(0, self.seed, false);
        let run = narrows_sim::run(&network, &mut |_| true).map_err(|e| e.to_string())?;
        let group = &run.groups[0];
        let flow = &group.flows[0];
        let seconds = flow.done.map_or(run.span_s, |done| done.since(flow.start).as_secs_f64());
        let bottleneck = run.links[plan.bottleneck(0)].groups.first().copied().unwrap_or_default();
        Ok(TransferOutcome {
            goodput_bps: flow.goodput_bytes as f64 * 8.0 / seconds,
            is_done: flow.done.is_some(),
            rtt_ms: group.rtt.mean().unwrap_or_default() * 1e-6,
            offered: bottleneck.offered,
            dropped: bottleneck.dropped,
        })
    }
}

/// How a transfer went.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransferOutcome {
    /// Bits per second that the receiver read, from the first packet of the handshake on.
    pub goodput_bps: f64,
    /// Whether all bytes of a file arrived.
    pub is_done: bool,
    /// Mean RTT by the acknowledgements.
    pub rtt_ms: f64,
    /// Packets that arrived at the queue.
    pub offered: u64,
    /// Of these, packets that it dropped.
    pub dropped: u64,
}
