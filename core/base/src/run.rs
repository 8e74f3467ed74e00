//! Runs: the form in which an acknowledgement lists received and missing packets. rrtp's ACK frame and the reports of
//! simulated packets encode runs differently.

/// A number of consecutive packets that arrived, and the number of missing packets directly below them.
///
/// A list of runs starts at the highest packet number that an acknowledgement names and goes downwards. Numbers below
/// the last run are neither acknowledged nor reported missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRun {
    /// Number of packets that arrived.
    pub arrived: u64,
    /// Number of packets missing below those.
    pub missing: u64,
    /// Whether the receiver attributes the missing packets to the radio link rather than to
    /// congestion.
    pub radio: bool,
}

/// The packets that arrived, as ranges `[from, to)` in descending order.
#[inline]
pub fn arrived(
    highest: u64,
    runs: impl Iterator<Item = PacketRun>,
) -> impl Iterator<Item = (u64, u64)> {
    let mut at = highest.saturating_add(1);
    runs.filter_map(move |run| {
        let from = at.saturating_sub(run.arrived);
        let to = at;
        at = from.saturating_sub(run.missing);
        (from < to).then_some((from, to))
    })
}

/// The missing packets, as ranges `[from, to)` in descending order, each with [`PacketRun::radio`].
#[inline]
pub fn missing(
    highest: u64,
    runs: impl Iterator<Item = PacketRun>,
) -> impl Iterator<Item = (u64, u64, bool)> {
    let mut at = highest.saturating_add(1);
    runs.filter_map(move |run| {
        let to = at.saturating_sub(run.arrived);
        at = to.saturating_sub(run.missing);
        (at < to).then_some((at, to, run.radio))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_downwards_and_end_at_number_0() {
        let run = |arrived, missing, radio| PacketRun { arrived, missing, radio };
        let runs = [run(2, 3, false), run(1, 1, true), run(0, 1, true), run(4, 9, true)];
        let ranges: Vec<_> = arrived(10, runs.into_iter()).collect();
        assert_eq!(ranges, [(9, 11), (5, 6), (0, 3)]);
        let ranges: Vec<_> = missing(10, runs.into_iter()).collect();
        assert_eq!(ranges, [(6, 9, false), (4, 5, true), (3, 4, true)]);
        let top = run(1, 0, false);
        assert_eq!(arrived(u64::MAX, [top].into_iter()).next(), Some((u64::MAX - 1, u64::MAX)));
    }
}
