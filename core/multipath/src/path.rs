//! The state of a path, as a transport measures it.

use narrows_base::{Duration, Time};

/// Whether a path may carry data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PathStatus {
    /// It may.
    #[default]
    Available,
    /// It may if no available path is usable (RFC 10069, PATH_STATUS_BACKUP).
    Standby,
    /// It may not: it is not validated, silent or abandoned.
    Unusable,
}

/// The state of a path. Numbers that make no sense, such as NaN, count as unknown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathState {
    /// Whether it may carry data.
    pub status: PathStatus,
    /// When congestion control and pacing permit the next packet: not after the present if it may leave now,
    /// [`Time::NEVER`] if it waits for an acknowledgement.
    pub sendable: Time,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Duration,
    /// Smallest RTT; zero before the first sample.
    pub min_rtt: Duration,
    /// RTT variation (RFC 9002 section 5.3).
    pub rttvar: Duration,
    /// Rate at which it delivers, in bytes per second; 0 if unknown.
    pub rate: f64,
    /// Congestion window in bytes; `u64::MAX` if only a rate limits.
    pub cwnd: u64,
    /// Bytes sent, neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Weight given by the user ([`WeightLimits`](crate::WeightLimits)).
    pub weight: f64,
}

impl Default for PathState {
    /// A path without a measurement, which may send now.
    fn default() -> PathState {
        PathState {
            status: PathStatus::Available,
            sendable: Time::ZERO,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            rate: 0.0,
            cwnd: u64::MAX,
            bytes_in_flight: 0,
            loss: 0.0,
            weight: 1.0,
        }
    }
}

impl PathState {
    /// Whether a packet may leave now, by congestion control and pacing.
    pub fn is_sendable(&self, now: Time) -> bool {
        self.sendable <= now
    }
    /// Its rate in bytes per second: as measured, else a window per RTT. `None` if both are unknown.
    pub fn rate(&self) -> Option<f64> {
        let is_positive = |x: &f64| x.is_finite() && *x > 0.0;
        let measured = Some(self.rate).filter(is_positive);
        let window = || {
            let srtt = self.srtt.as_secs_f64();
            (srtt > 0.0 && self.cwnd != u64::MAX).then(|| self.cwnd as f64 / srtt)
        };
        measured.or_else(window).filter(is_positive)
    }
    /// The loss rate, within 0 and 1.
    pub fn loss(&self) -> f64 {
        if self.loss.is_nan() { 0.0 } else { self.loss.clamp(0.0, 1.0) }
    }
    /// The weight, a finite positive number.
    pub fn weight(&self) -> f64 {
        if self.weight.is_finite() && self.weight > 0.0 { self.weight } else { 1.0 }
    }
}

/// The usable paths with their indices: the available ones, else those on standby.
pub(crate) fn usable(paths: &[PathState]) -> impl Iterator<Item = (usize, &PathState)> + Clone {
    let is_available = |p: &PathState| p.status == PathStatus::Available;
    let wanted =
        if paths.iter().any(is_available) { PathStatus::Available } else { PathStatus::Standby };
    paths.iter().enumerate().filter(move |(_, p)| p.status == wanted)
}

/// The usable paths that may send now.
pub(crate) fn ready(
    now: Time,
    paths: &[PathState],
) -> impl Iterator<Item = (usize, &PathState)> + Clone {
    usable(paths).filter(move |(_, p)| p.is_sendable(now))
}

/// When the first usable path may send.
pub(crate) fn first_sendable(paths: &[PathState]) -> Time {
    usable(paths).map(|(_, p)| p.sendable).min().unwrap_or(Time::NEVER)
}
