//! `--learn`: what a path was like is kept, and the next connection over it begins with that. Each end learns the way
//! by which it sends.

use narrows_congestion::HintSource;
use narrows_files::learned::{Delivered, Learned, MeasuredPath, client};
use narrows_net::Connection;
use narrows_wire::noise::PublicKey;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked how much was delivered.
pub const LOOK: Duration = Duration::from_millis(250);

/// What one connection learns.
pub struct Lesson {
    connection: Connection,
    learned: Arc<Learned>,
    place: String,
    /// A client that moves is on another path than its place's.
    client: Option<PublicKey>,
    delivered: Mutex<Delivered>,
}

impl Lesson {
    /// A connection begins with what is known of this place, if it may be on that path.
    pub fn begin(connection: &Connection, learned: Arc<Learned>, place: String) -> Lesson {
        // A file that is broken was complained of at the start.
        if let Ok(Some(known)) = learned.get(&place)
            && known.may_be(connection.stats().srtt)
        {
            // A connection that is over needs no hints.
            let _ = connection.reconfigure(&known.path, HintSource::Stored);
        }
        let (connection, delivered) = (connection.clone(), Mutex::default());
        let lesson = Lesson { connection, learned, place, client: None, delivered };
        lesson.measure();
        lesson
    }

    /// The same at a server, of the path to this client.
    pub fn of_client(
        connection: &Connection,
        learned: Arc<Learned>,
        key: PublicKey,
    ) -> Option<Lesson> {
        let place = client(&key, connection.remote()?.ip());
        Some(Lesson { client: Some(key), ..Lesson::begin(connection, learned, place) })
    }

    /// To be called a few times a second.
    pub fn measure(&self) {
        let arrived = self.connection.stats().bytes_arrived;
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        delivered.seen(Instant::now(), arrived);
    }

    /// Keeps what was learned, as far as what was delivered bears it out; waits for the disk. A disk that takes nothing
    /// costs the next connection its head start, nothing else.
    pub fn keep(&self) {
        self.measure();
        let delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let moved = self.client.is_some_and(|key| {
            let now = self.connection.remote().map(|remote| client(&key, remote.ip()));
            now.is_none_or(|now| now != self.place)
        });
        if !moved
            && let Some(found) = MeasuredPath::verified(&self.connection.learned(), &delivered)
        {
            let _ = self.learned.keep(&self.place, found);
        }
    }
}
