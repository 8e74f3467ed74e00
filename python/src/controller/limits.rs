//! Checks of windows, rates and times that a controller sets.

use narrows_base::{Rate, Time};
use narrows_congestion::SendLimits;

/// Largest window and threshold in segments, largest rate in bit/s: beyond any path, exact in a float.
const MAX: f64 = 1e15;

/// Limits as a controller set them: a window in segments, a rate in bit/s, a threshold in segments.
pub fn checked(cwnd: f64, rate: Option<f64>, ssthresh: Option<f64>) -> Result<SendLimits, String> {
    if !(0.0..=MAX).contains(&cwnd) {
        return Err(format!("cwnd is {cwnd}; a window is a number of segments from 0 to 1e15"));
    }
    if let Some(rate) = rate.filter(|r| !(1.0..=MAX).contains(r)) {
        return Err(format!(
            "pacing_rate is {rate}; a rate is a number of bit/s from 1 to 1e15, or None for the window alone"
        ));
    }
    if let Some(ssthresh) = ssthresh.filter(|s| s.is_nan() || *s < 0.0) {
        return Err(format!(
            "ssthresh is {ssthresh}; a threshold is a number of segments from 0, or inf"
        ));
    }
    Ok(SendLimits { cwnd, pacing_rate: rate.map(Rate::from_bps_f64), ssthresh })
}

/// The time of the next tick, s since the start; `None` for never. `after` is the time of the tick that was just
/// handled: another tick at the same time would cause an endless loop.
pub fn checked_tick(next: Option<f64>, after: Option<Time>) -> Result<Time, String> {
    let Some(next) = next.filter(|t| *t != f64::INFINITY) else { return Ok(Time::NEVER) };
    if next.is_nan() || next < 0.0 {
        return Err(format!(
            "next_tick() is {next}; it is a time in s since the start, or None for never"
        ));
    }
    let time = Time::from_secs_f64(next);
    match after.filter(|now| time <= *now) {
        Some(_) => {
            Err(format!("next_tick() is {next} again; after a tick the next one must be later"))
        }
        None => Ok(time),
    }
}
