//! Turns a recording into an [`Outcome`], and writes the files of its end.

use crate::link::RelayLinks;
use crate::names;
use crate::recording::{MAX_CONNECTIONS, Recording};
use crate::single_run::estimates;
use crate::tap::WriterQueue;
use crate::writer::{RecordWriter, RecordedConnection, RecordedEndpoint};
use narrows_lab::collect;
use narrows_lab::measure::loss_events;
use narrows_lab::outcome::{Estimate, Outcome, ProtocolOutcome, Recommendation};
use narrows_lab::stats::jain;
use narrows_report::output;
use narrows_sim::protocol::Preset;
use narrows_transport::connection::Stats;
use std::path::Path;

impl RecordWriter {
    /// Writes series, summary and report, and returns the recording.
    pub(super) fn finish(
        mut self,
        folder: &Path,
        more: Vec<String>,
        queue: &WriterQueue,
    ) -> Result<Recording, String> {
        let (dropped, beyond) = queue.missed();
        let links = self.links.take();
        let relay = links.is_some();
        let mut notes = vec![match &links {
            None => {
                "measured on real sockets at the ends named here; goodput is what the peer's end \
                     has in order and what this end's application read, offered bytes are whole \
                     datagrams"
                    .to_string()
            }
            Some(links) => {
                let sizes = match self.about.command {
                    "relay" => "UDP payload and 28 bytes of headers",
                    _ => "IP packets, headers included",
                };
                format!("measured at the emulated link: sizes are {sizes}; {}", links.note())
            }
        }];
        notes.extend(more);
        let (datagrams, beyond_file) = self.captures.counts();
        let untold: u64 = self.kept.iter().map(|k| k.beyond).sum();
        for (count, what) in [
            (dropped, "datagrams were not recorded: the disk is slower than the network"),
            (beyond_file, "datagrams were not recorded: an end's capture has 1 GiB"),
            (untold, "packets were not recorded one by one: a connection's events have 256 MiB"),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        if self.order.late > 0 {
            notes.push(format!(
                "{} events were reported more than a second late: they have the time of the one before",
                self.order.late
            ));
        }
        if beyond > 0 {
            notes.push(format!(
                "{beyond} connections were not recorded but for their datagrams: the first \
                 {MAX_CONNECTIONS} were"
            ));
        }
        let connections = self.kept.len();
        let kept = std::mem::take(&mut self.kept);
        let figures = kept.iter().map(|k| k.series.last).collect();
        let outcome = self.outcome(kept, links, notes);
        let mut files = self.captures.finish()?;
        files.extend((1..=connections).map(|n| names::events(folder, n)));
        files.extend(output::write_report(&outcome, folder)?);
        Ok(Recording { files, outcome, datagrams, connections, relay, figures })
    }

    fn outcome(
        &self,
        kept: Vec<RecordedConnection>,
        links: Option<RelayLinks>,
        notes: Vec<String>,
    ) -> Outcome {
        let looked = links.as_ref().map_or(0.0, RelayLinks::seconds);
        let last = self.ends.values().filter_map(|e| e.span).fold(looked, |m, s| f64::max(m, s.1));
        let mut results = Vec::new();
        let mut kept: Vec<(usize, RecordedConnection)> = kept.into_iter().enumerate().collect();
        for (number, end) in &self.ends {
            let (own, rest) = kept.into_iter().partition(|(_, k)| k.endpoint == *number);
            kept = rest;
            results.extend(one(&self.about.protocol, end, own));
        }
        // If both ends are in this process, the client is first.
        results.sort_by_key(|r: &ProtocolOutcome| r.group != "client");
        results.extend(links.into_iter().flat_map(|l| l.outcomes(&self.about.ways)));
        Outcome {
            command: self.about.command,
            command_line: self.about.command_line.clone(),
            seed: 0,
            link: self.about.link.clone(),
            path: self.about.link.clone(),
            duration_s: last,
            warmup_s: 0.0,
            capacity_bps: f64::NAN,
            results,
            recommendation: Recommendation::default(),
            notes,
            variables: Vec::new(),
        }
    }
}

/// Summary of an endpoint's connections; `None` without connections.
fn one(
    protocol: &str,
    end: &RecordedEndpoint,
    kept: Vec<(usize, RecordedConnection)>,
) -> Option<ProtocolOutcome> {
    let (from, to) = end.span?;
    if kept.is_empty() {
        return None;
    }
    let all: Vec<&RecordedConnection> = kept.iter().map(|k| &k.1).collect();
    let measures = measures(&all, to - from);
    let named = |n: usize| format!("connection-{}", n + 1);
    let per_flow = kept
        .iter()
        .map(|(n, k)| (named(*n), self::measures(&[k], k.series.end - k.series.start)))
        .collect();
    let flows = kept.len();
    let series = kept.into_iter().map(|(n, k)| k.series.table(&named(n), end.name)).collect();
    Some(ProtocolOutcome {
        protocol: protocol.to_string(),
        group: end.name.to_string(),
        digest: 0,
        flows,
        seeds: 1,
        rivals: 0,
        one_trajectory: false,
        by_seed: Vec::new(),
        status: collect::status(protocol, Preset::Rfc),
        measures,
        per_flow,
        series,
    })
}

/// Those measures that exist without the simulator's knowledge, in the list's order.
fn measures(kept: &[&RecordedConnection], span: f64) -> Vec<(&'static str, Estimate)> {
    let stats = || kept.iter().map(|k| &k.series.last);
    let sum = |of: fn(&Stats) -> f64| stats().map(of).sum::<f64>();
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
    let carried: Vec<f64> = kept.iter().map(|k| k.series.carried() as f64).collect();
    let bytes: f64 = carried.iter().sum();
    let sent = sum(|s| s.counters.sent as f64);
    let arrived = sum(|s| s.bytes_arrived as f64);
    let events = sum(|s| {
        let c = &s.counters;
        loss_events(c.episodes, c.timeouts, c.sent)
    });
    let min = stats().map(|s| s.min_rtt.as_secs_f64()).filter(|r| *r > 0.0);
    let covs: Vec<f64> = kept.iter().map(|k| k.series.cov()).filter(|c| c.is_finite()).collect();
    // The ratio is meaningful only for an end that sends more than reports.
    let sends = arrived > 0.5 * bytes;
    let of = |name: &str| match name {
        "goodput_bps" => ratio(bytes * 8.0, span),
        "offered_over_delivered" if sends => ratio(sum(|s| s.bytes_sent as f64), arrived),
        "rtt_s_min" => min.clone().fold(f64::NAN, f64::min),
        "rtt_s_mean" => ratio(sum(|s| s.rtt_sum.as_secs_f64()), sum(|s| s.rtt_samples as f64)),
        "sent_packets" => sent,
        "retransmissions" => sum(|s| s.counters.retransmissions as f64),
        "timeouts" => sum(|s| s.counters.timeouts as f64),
        "cov_1s" => ratio(covs.iter().sum(), covs.len() as f64),
        "jain" if kept.len() > 1 => jain(&carried),
        "loss_event_rate" if sends => ratio(events, sent),
        "sender_loss_rate" if sends => ratio(sum(|s| s.counters.lost as f64), sent),
        _ => f64::NAN,
    };
    estimates(of)
}
