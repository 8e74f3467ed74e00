//! `--metrics`: counters for Prometheus.

use crate::failure::Failure;
use crate::terminal::note;
use crate::transport::address;
use clap::Args;
use narrows_lab::options::RARE;
use narrows_live::MetricsListener;
use narrows_live::metrics::endpoint::EndpointMetrics;
use narrows_live::metrics::{Counter, MetricSource};
use narrows_net::tap::{self, Tap};
use std::sync::Arc;

#[derive(Args, Clone, Debug, Default)]
pub struct MetricsArgs {
    /// Serve counters for Prometheus at http://ADDR/metrics: connections, bytes, losses, RTT, refusals. Clients that use
    /// a host name instead of an address are refused, unless the name follows: ADDR,NAME
    #[arg(long = "metrics", hide_short_help = true, help_heading = RARE, id = "metrics", value_name = "ADDR")]
    pub address: Option<String>,
}

impl MetricsArgs {
    /// Binds the address without serving it yet, and prints it.
    pub fn bind(&self) -> Result<Option<MetricsListener>, Failure> {
        let Some(text) = &self.address else { return Ok(None) };
        let mut parts = text.split(',');
        let at = address("--metrics", parts.next().unwrap_or_default())?;
        let names = parts.map(host_name).collect::<Result<_, _>>()?;
        let bound = MetricsListener::bind(at, names)
            .map_err(|e| Failure::Input(format!("--metrics: {at} cannot be opened: {e}")))?;
        note(&format!("metrics: http://{}/metrics", bound.address()));
        Ok(Some(bound))
    }

    /// Serves the metrics of an endpoint, if `--metrics` is set.
    pub fn endpoint(&self) -> Result<ServedMetrics, Failure> {
        let metrics = ServedMetrics {
            endpoint: Arc::default(),
            requests: Arc::new(Counter::new(
                "requests",
                "Answered requests.",
                &["request", "result"],
            )),
            refusals: Arc::new(Counter::new("refusals", "Refused requests.", &["reason"])),
            is_served: self.address.is_some(),
        };
        let ServedMetrics { endpoint, requests, refusals, .. } = &metrics;
        serve(self.bind()?, vec![endpoint.clone(), requests.clone(), refusals.clone()])?;
        Ok(metrics)
    }
}

/// A name by which clients reach the metrics.
fn host_name(text: &str) -> Result<String, Failure> {
    let is_valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if text.is_empty() || text.len() > 253 || !text.bytes().all(is_valid) {
        let shown = text.escape_debug();
        return Err(Failure::Input(format!(
            "--metrics: '{shown}' is no host name; ADDR,NAME is expected, as in 0.0.0.0:9147,metrics.example.org"
        )));
    }
    Ok(text.into())
}

/// Serves these metrics, if there is an address.
pub fn serve(
    at: Option<MetricsListener>,
    sources: Vec<Arc<dyn MetricSource>>,
) -> Result<(), Failure> {
    let Some(at) = at else { return Ok(()) };
    at.serve(sources).map_err(|e| Failure::Outside(format!("--metrics: {e}")))
}

/// Metrics of a command with an endpoint.
pub struct ServedMetrics {
    endpoint: Arc<EndpointMetrics>,
    /// Answered requests: their kind, and ok or failed.
    pub requests: Arc<Counter>,
    /// Refused requests by reason.
    pub refusals: Arc<Counter>,
    is_served: bool,
}

impl ServedMetrics {
    /// Observer for the endpoint, combined with another one.
    pub fn beside(&self, other: Option<Arc<dyn Tap>>) -> Option<Arc<dyn Tap>> {
        let own = self.is_served.then(|| self.endpoint.clone() as Arc<dyn Tap>);
        tap::joined(other.into_iter().chain(own))
    }
}
