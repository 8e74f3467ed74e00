//! Counters of a link.

use narrows_base::{Duration, Time};
use narrows_net::relay::{DirectionStats, Lateness, LatenessCounter};

/// Length of a window of lateness statistics.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Number of windows kept: one day.
const MAX_WINDOWS: usize = 8640;

/// Counters of one direction.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WayStats {
    /// Packets and queue.
    pub packets: DirectionStats,
    /// Delay from a packet's time in the emulated link to its actual departure: the emulator's own error.
    pub lateness: Lateness,
    /// Lateness of each completed [`WINDOW`] in which at least [`MIN_WINDOW_PACKETS`] left.
    pub windows: Vec<Lateness>,
    /// Packets in the queue now.
    pub waiting: usize,
    /// Frames that the kernel dropped because the emulator did not read them in time.
    pub unread: u64,
    /// Frames that the kernel rejected at the far end.
    pub refused: u64,
    /// Frames that were not IP packets.
    pub foreign: u64,
}

/// Packets that a window needs for a meaningful 99th percentile.
pub const MIN_WINDOW_PACKETS: u64 = 100;

/// Counters of both directions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkStats {
    /// From A to B.
    pub forward: WayStats,
    /// From B to A.
    pub reverse: WayStats,
}

/// Lateness in total and of the current window.
#[derive(Debug)]
pub(crate) struct LatenessLog {
    all: LatenessCounter,
    window: LatenessCounter,
    window_began: Time,
    windows: Vec<Lateness>,
}

impl LatenessLog {
    pub fn new() -> LatenessLog {
        let all = LatenessCounter::new();
        let window = LatenessCounter::new();
        LatenessLog { all, window, window_began: Time::ZERO, windows: Vec::new() }
    }

    /// Records a packet that was due at `due` and left at `now`.
    pub fn record(&mut self, now: Time, due: Time) {
        if now.since(self.window_began) >= WINDOW {
            let window = std::mem::replace(&mut self.window, LatenessCounter::new());
            if window.count() >= MIN_WINDOW_PACKETS && self.windows.len() < MAX_WINDOWS {
                self.windows.push(window.read());
            }
            self.window_began = now;
        }
        self.all.record(now.since(due));
        self.window.record(now.since(due));
    }

    pub fn read(&self) -> (Lateness, Vec<Lateness>) {
        (self.all.read(), self.windows.clone())
    }
}
