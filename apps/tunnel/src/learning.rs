//! `--learn`: the measured path is stored, and the next connection over it begins with these values. Each end learns
//! the path by which it sends.

use narrows_congestion::HintSource;
use narrows_net::Connection;
use narrows_peers::learned::{Delivered, LearnedPaths, MeasuredPath, client};
use narrows_wire::noise::PublicKey;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of measurements of the delivered bytes.
pub const LOOK: Duration = Duration::from_millis(250);

/// Measurements of one connection.
pub struct Lesson {
    connection: Connection,
    learned: Arc<LearnedPaths>,
    place: String,
    delivered: Mutex<Delivered>,
}

impl Lesson {
    /// Begins a connection with the stored path of this place, if the path's RTT is plausible.
    pub fn begin(connection: &Connection, learned: Arc<LearnedPaths>, place: String) -> Lesson {
        // An invalid file was reported at the start.
        if let Ok(Some(known)) = learned.get(&place)
            && known.may_be(connection.stats().srtt)
        {
            // If the connection is over, the hints are of no use.
            let _ = connection.reconfigure(&known.path, HintSource::Stored);
        }
        let connection = connection.clone();
        let delivered = Mutex::default();
        let lesson = Lesson { connection, learned, place, delivered };
        lesson.measure();
        lesson
    }

    /// At a server: begins a connection with the stored path to this client.
    pub fn of_client(
        connection: &Connection,
        learned: Arc<LearnedPaths>,
        key: PublicKey,
    ) -> Option<Lesson> {
        let place = client(&key, connection.remote()?.ip());
        Some(Lesson::begin(connection, learned, place))
    }

    /// Call this several times a second.
    pub fn measure(&self) {
        let arrived = self.connection.stats().bytes_arrived;
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        delivered.seen(Instant::now(), arrived);
    }

    /// Stores the path, as far as the delivered bytes confirm it. Blocks on the disk. If writing fails, the next
    /// connection begins without hints.
    pub fn keep(&self) {
        self.measure();
        let delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let found = MeasuredPath::verified(&self.connection.learned(), &delivered);
        let retreated = self.connection.stats().counters.retreats > 0;
        let _ = self.learned.end(&self.place, found, retreated);
    }
}
