//! The dumbbells: packets delivered.

use super::page::ComparisonPage;
use super::reference::Dumbbell;
use narrows_base::Spec;
use narrows_lab::parallel::parallel;
use narrows_sim::dumbbell;
use narrows_sim::protocol::{FlowProtocol, Preset};
use std::fmt::Write as _;

impl ComparisonPage {
    pub(super) fn dumbbells(&mut self, rows: &[Dumbbell], jobs: usize) -> Result<(), String> {
        self.begin("Dumbbells");
        self.out.push_str(
            "N SACK flows over 10 ms with a buffer of one BDP, access links of 1 Gbit/s and 1 ms, flow i \
             starts at i/N seconds. Packets delivered in order must agree within 2%. Counts as ns-2 / \
             ours.\n\n\
             | case | flows | link | time | delivered | difference | sent | retransmitted | |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        let read = Spec::parse("sack").and_then(|s| FlowProtocol::read(&s, Preset::Ns2, 1000));
        let sack = read.map_err(|e| e.to_string())?;
        let results = parallel(rows.len(), jobs, |i| {
            let r = &rows[i];
            let network = dumbbell(r.flows, r.mbps, r.seconds, sack.clone());
            let result = narrows_sim::run(&network, &mut |_| true).map_err(|e| e.to_string())?;
            let flows = &result.groups[0].flows;
            let sum = |f: fn(&narrows_sim::FlowResult) -> u64| flows.iter().map(f).sum::<u64>();
            // ns-2 counts the packets whose acknowledgements its senders have received.
            Ok([sum(|f| f.acknowledged), sum(|f| f.sent_packets), sum(|f| f.retransmissions)])
        })?;
        let mut notes = Vec::new();
        for (r, [delivered, sent, again]) in rows.iter().zip(results) {
            let off = delivered as f64 / r.delivered as f64 - 1.0;
            let verdict = self.verdict(off.abs() <= 0.02, "dumbbell", "Sack1", &r.name, &mut notes);
            let _ = writeln!(
                self.out,
                "| {} | {} | {} Mbit/s | {} s | {} / {delivered} | {:+.2}% | {} / {sent} | {} / {again} | {verdict} |",
                r.name,
                r.flows,
                r.mbps,
                r.seconds,
                r.delivered,
                100.0 * off,
                r.sent,
                r.retransmitted,
            );
        }
        self.notes(&notes);
        Ok(())
    }
}
