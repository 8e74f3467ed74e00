//! Arguments of a Python controller's methods, as objects with attributes: seconds, segments, bit/s.

use narrows_base::{Duration, Time};
use narrows_congestion as congestion;
use pyo3::prelude::*;

fn seconds(d: Duration) -> f64 {
    d.as_secs_f64()
}

/// An acknowledgement, the argument of `on_ack`. The object is reused for the next one unless a reference to it is
/// kept.
#[pyclass(module = "narrows", name = "Ack")]
pub struct Ack(pub congestion::Ack);

#[pymethods]
impl Ack {
    /// Time of its arrival, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }
    /// Round-trip time of the packet that triggered it, s.
    #[getter]
    fn rtt(&self) -> f64 {
        seconds(self.0.rtt)
    }
    /// Smoothed round-trip time (RFC 6298), s.
    #[getter]
    fn srtt(&self) -> f64 {
        seconds(self.0.estimate.srtt)
    }
    /// Variation of the round-trip time (RFC 6298), s.
    #[getter]
    fn rttvar(&self) -> f64 {
        seconds(self.0.estimate.rttvar)
    }
    /// Smallest round-trip time of the connection so far, s.
    #[getter]
    fn min_rtt(&self) -> f64 {
        seconds(self.0.estimate.min_rtt)
    }
    /// One-way delay of that packet plus an unknown constant, s; `None` over TCP.
    #[getter]
    fn forward_delay(&self) -> Option<f64> {
        self.0.forward_delay.map(seconds)
    }
    /// Segments by which the cumulative acknowledgement advanced; 0 for a duplicate.
    #[getter]
    fn newly_acked(&self) -> u64 {
        self.0.cumulative.newly_acked
    }
    /// Segments by which it may let a window grow (RFC 3465): `newly_acked`, with a limit.
    #[getter]
    fn counted(&self) -> u64 {
        self.0.counted
    }
    /// Segments newly reported by SACK above the cumulative acknowledgement.
    #[getter]
    fn newly_sacked(&self) -> u64 {
        self.0.cumulative.newly_sacked
    }
    /// Segments newly delivered, as far as the sender can tell.
    #[getter]
    fn newly_delivered(&self) -> u64 {
        self.0.newly_delivered
    }
    /// Whether it is a duplicate (RFC 5681).
    #[getter]
    fn duplicate(&self) -> bool {
        self.0.cumulative.duplicate
    }
    /// Segments sent and not cumulatively acknowledged, after it (FlightSize).
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }
    /// Segments outstanding after it, as loss recovery counts them (pipe).
    #[getter]
    fn outstanding(&self) -> u64 {
        self.0.outstanding
    }
    /// Segments outstanding before it, as loss recovery counts them (pipe).
    #[getter]
    fn prior_outstanding(&self) -> u64 {
        self.0.prior_outstanding
    }
    /// Packets sent after the one that triggered it.
    #[getter]
    fn sent_since(&self) -> u64 {
        self.0.sent_since
    }
    /// Whether the window was the limit when it arrived (RFC 7661), so that growth is justified.
    #[getter]
    fn window_limited(&self) -> bool {
        self.0.window_limited
    }
    /// Whether recovery is in progress; also true for the acknowledgement that ends it.
    #[getter]
    fn in_recovery(&self) -> bool {
        self.0.in_recovery
    }
    /// Number of the round trip.
    #[getter]
    fn round(&self) -> u64 {
        self.0.round
    }
    /// Whether it begins a round trip.
    #[getter]
    fn round_start(&self) -> bool {
        self.0.round_start
    }
    /// CE marks (ECN) newly reported.
    #[getter]
    fn marks(&self) -> u32 {
        self.0.marks
    }
    /// Delivery-rate sample, segments/s; `None` without a sample.
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        self.0.rate.map(|r| r.per_second())
    }
    /// Whether the application, not the network, limited that sample.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.is_some_and(|r| r.app_limited)
    }
    /// Whether an ACK-clocked window may grow by it: it advances, no retransmission is in progress, the window was the
    /// limit, and it reports no mark.
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_grow()
    }
    fn __repr__(&self) -> String {
        let a = &self.0;
        format!(
            "Ack(now={}, rtt={}, min_rtt={}, newly_acked={}, flight={}, in_recovery={}, round={})",
            self.now(),
            self.rtt(),
            self.min_rtt(),
            a.cumulative.newly_acked,
            a.flight,
            if a.in_recovery { "True" } else { "False" },
            a.round
        )
    }
}

/// The beginning of a recovery, the argument of `on_loss`: losses were detected, or ECN marks arrived; at most once per
/// window.
#[pyclass(module = "narrows", name = "Loss", frozen)]
pub struct Loss(pub congestion::RecoveryEvent);

#[pymethods]
impl Loss {
    /// Time, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }
    /// `"loss"`, or `"ecn"` for marks.
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            congestion::RecoveryCause::EcnCe => "ecn",
            _ => "loss",
        }
    }
    /// Segments in flight (FlightSize).
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }
    /// Segments outstanding, as loss recovery counts them (pipe).
    #[getter]
    fn outstanding(&self) -> u64 {
        self.0.outstanding
    }
    /// Smallest round-trip time of the connection, s.
    #[getter]
    fn min_rtt(&self) -> f64 {
        seconds(self.0.min_rtt)
    }
    /// Smoothed round-trip time, s.
    #[getter]
    fn srtt(&self) -> f64 {
        seconds(self.0.srtt)
    }
    fn __repr__(&self) -> String {
        format!("Loss(now={}, cause='{}', flight={})", self.now(), self.cause(), self.0.flight)
    }
}

/// Expiry of the retransmission timer, the argument of `on_rto`.
#[pyclass(module = "narrows", name = "Timeout", frozen)]
pub struct Timeout(pub congestion::SlowStartRestart);

#[pymethods]
impl Timeout {
    /// Time, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }
    /// Segments in flight before it (FlightSize).
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }
    /// Consecutive timeouts of the same segment, this one included.
    #[getter]
    fn backoffs(&self) -> u32 {
        self.0.backoffs
    }
    /// Smallest round-trip time of the connection, s.
    #[getter]
    fn min_rtt(&self) -> f64 {
        seconds(self.0.min_rtt)
    }
    /// Smoothed round-trip time, s.
    #[getter]
    fn srtt(&self) -> f64 {
        seconds(self.0.srtt)
    }
    fn __repr__(&self) -> String {
        let flight = self.0.flight;
        let backoffs = self.0.backoffs;
        format!("Timeout(now={}, flight={flight}, backoffs={backoffs})", self.now())
    }
}

/// The outcome of one packet, the argument of `on_outcome`: it arrived or was lost.
#[pyclass(module = "narrows", name = "PacketOutcome", frozen)]
pub struct PacketOutcomeEvent(pub congestion::PacketOutcome);

#[pymethods]
impl PacketOutcomeEvent {
    /// Time at which the outcome was detected, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }
    /// Time at which the packet was sent, s since the start.
    #[getter]
    fn sent(&self) -> f64 {
        self.0.sent.as_secs_f64()
    }
    /// Number of the packet; numbers are never reused.
    #[getter]
    fn number(&self) -> u64 {
        self.0.seq
    }
    /// Size of the packet on the wire, bytes.
    #[getter]
    fn bytes(&self) -> u32 {
        self.0.bytes
    }
    /// Whether it was lost (RFC 9002 section 6.1).
    #[getter]
    fn lost(&self) -> bool {
        self.0.lost
    }
    /// Whether it arrived with a CE mark (ECN).
    #[getter]
    fn marked(&self) -> bool {
        self.0.marked
    }
    /// Whether the receiver attributes the loss to the radio link rather than to congestion.
    #[getter]
    fn radio(&self) -> bool {
        self.0.radio
    }
    fn __repr__(&self) -> String {
        let sent = self.sent();
        let lost = if self.0.lost { "True" } else { "False" };
        format!(
            "PacketOutcome(now={}, sent={sent}, number={}, lost={lost})",
            self.now(),
            self.0.seq
        )
    }
}

/// Properties of the path that have changed or become known, the argument of `on_hints`. They replace estimates.
#[pyclass(module = "narrows", name = "Hints", frozen)]
pub struct HintsEvent(pub Time, pub congestion::PathHints);

#[pymethods]
impl HintsEvent {
    /// Time, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.as_secs_f64()
    }
    /// Rate of the path, bit/s.
    #[getter]
    fn rate(&self) -> Option<f64> {
        self.1.rate.map(|r| r.as_bps() as f64)
    }
    /// Round-trip time of the path with empty queues, s.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.1.rtt.map(seconds)
    }
    /// Share of packets that the path loses without congestion, 0 to 1.
    #[getter]
    fn loss(&self) -> Option<f64> {
        self.1.loss
    }
    fn __repr__(&self) -> String {
        let shown = |x: Option<f64>| x.map_or_else(|| "None".into(), |x| x.to_string());
        let rate = shown(self.rate());
        let rtt = shown(self.rtt());
        let loss = shown(self.loss());
        format!("Hints(now={}, rate={rate}, rtt={rtt}, loss={loss})", self.now())
    }
}

/// Dispersion of back-to-back packets in the handshake, the argument of `on_dispersion`: at most once, usually before
/// the first acknowledgement.
#[pyclass(module = "narrows", name = "Dispersion", frozen)]
pub struct DispersionEvent(pub Time, pub congestion::Dispersion);

#[pymethods]
impl DispersionEvent {
    /// Time, s since the start.
    #[getter]
    fn now(&self) -> f64 {
        self.0.as_secs_f64()
    }
    /// Rate at which the packets arrived, bit/s.
    #[getter]
    fn rate(&self) -> f64 {
        self.1.bits / congestion::positive(self.1.took)
    }
    /// Round-trip time of a small packet, s.
    #[getter]
    fn rtt(&self) -> f64 {
        seconds(self.1.rtt)
    }
    fn __repr__(&self) -> String {
        format!("Dispersion(now={}, rate={}, rtt={})", self.now(), self.rate(), self.rtt())
    }
}

/// State before the first packet, the argument of `on_start`.
#[pyclass(module = "narrows", name = "Start", frozen)]
pub struct Start(pub congestion::Environment);

#[pymethods]
impl Start {
    /// Initial window, segments.
    #[getter]
    fn initial_window(&self) -> f64 {
        self.0.initial_window
    }
    /// Initial slow-start threshold, segments; infinite if there is no limit.
    #[getter]
    fn initial_ssthresh(&self) -> f64 {
        self.0.initial_ssthresh
    }
    /// Whether the handshake probes the path's rate, so that ``on_dispersion`` may follow.
    #[getter]
    fn expects_dispersion(&self) -> bool {
        self.0.expects_dispersion
    }
    /// Size of a full packet on the wire, bytes.
    #[getter]
    fn packet_bytes(&self) -> u32 {
        self.0.packet_bytes
    }
    /// Seed for random numbers: it differs for each flow and each seed of the run, and is the same in a repetition.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.random_key.stream().bits()
    }
    /// Rate of the path, bit/s, if the user has given a hint.
    #[getter]
    fn rate_hint(&self) -> Option<f64> {
        self.0.hints.rate.map(|r| r.as_bps() as f64)
    }
    /// Round-trip time of the path with empty queues, s, if the user has given a hint.
    #[getter]
    fn rtt_hint(&self) -> Option<f64> {
        self.0.hints.rtt.map(seconds)
    }
    /// Share of packets that the path loses without congestion, if the user has given a hint.
    #[getter]
    fn loss_hint(&self) -> Option<f64> {
        self.0.hints.loss
    }
    fn __repr__(&self) -> String {
        let window = self.0.initial_window;
        let bytes = self.0.packet_bytes;
        format!("Start(initial_window={window}, packet_bytes={bytes})")
    }
}

/// The argument of `on_start` for an object that is created only for inspection.
#[pyfunction]
pub fn example_start() -> Start {
    Start(congestion::Environment::default())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Ack>()?;
    m.add_class::<Loss>()?;
    m.add_class::<Timeout>()?;
    m.add_class::<PacketOutcomeEvent>()?;
    m.add_class::<HintsEvent>()?;
    m.add_class::<DispersionEvent>()?;
    m.add_class::<Start>()?;
    m.add_function(wrap_pyfunction!(example_start, m)?)
}
