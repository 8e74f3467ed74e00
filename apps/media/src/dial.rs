//! The end that connects: connects to a peer, and reconnects whenever the connection is lost.

use crate::connection::for_media;
use narrows_base::Duration;
use narrows_base::text::shown as escaped;
use narrows_net::{Connection, Endpoint};
use narrows_peers::Error;
pub use narrows_peers::dial::Peer;
use narrows_peers::dial::{Dial, DialWords, DialledPeer, may_pass};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration as Wait, Instant};
use tokio::time::{sleep, timeout};

/// Pause before the next attempt to connect; it doubles with each failure.
const MIN_PAUSE: Wait = Wait::from_millis(500);
const MAX_PAUSE: Wait = Wait::from_secs(15);
/// An attempt that fails within this time was refused, for example because the program has not started yet. The next
/// pause is at most this long.
const REFUSED: Wait = Wait::from_secs(2);
/// After a connection of this length, the pause begins again at its minimum.
const LASTED: Duration = Duration::from_secs(10);
const WORDS: DialWords = DialWords {
    stranger: "the other end does not know this one",
    other_protocol: Some(
        "what listens there is not the other end of this: a sender connects to `media receive`, a receiver to \
         `media send --listen`",
    ),
};

/// How an attempt or a connection ended.
pub enum DialEnd {
    /// Another attempt may succeed. Contains the reason.
    Lost(String),
    /// Another attempt would fail, too.
    Final(Error),
}

/// The use that is made of connections.
pub trait ConnectionUser {
    /// Runs `until` while there is no connection.
    fn meanwhile<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;
    /// Uses a connection until it ends.
    fn over(&self, connection: &Connection) -> impl Future<Output = DialEnd> + Send;
    /// Reports a line to the user.
    fn tell(&self, line: &str);
}

/// Keeps a connection to one peer.
pub struct Dialler {
    dial: Dial,
    application: &'static str,
    /// Endpoint of the current connection.
    endpoint: Mutex<Option<Endpoint>>,
    is_leaving: AtomicBool,
}

impl Dialler {
    /// A dialler for this peer and application protocol.
    pub fn new(peer: Peer, application: &'static str) -> Dialler {
        let endpoint = Mutex::default();
        let is_leaving = AtomicBool::new(false);
        Dialler { dial: Dial::new(peer, WORDS), application, endpoint, is_leaving }
    }

    /// Connects, and reconnects whenever the connection is lost, until this end [leaves](Dialler::leave).
    ///
    /// # Errors
    /// A failure that another attempt would not cure: the peer has another key, refuses this one, or uses another
    /// version.
    pub async fn keep(&self, purpose: &(impl ConnectionUser + Sync)) -> Result<(), Error> {
        let mut pause = MIN_PAUSE;
        let mut reported = String::new();
        loop {
            let begun = Instant::now();
            let ended = match purpose.meanwhile(self.connect()).await {
                Ok(DialledPeer { connection, endpoint, address: at, others }) => {
                    *self.endpoint() = Some(endpoint);
                    let began = connection.now();
                    purpose.tell(&format!("connected to {at}{others}"));
                    let ended = purpose.over(&connection).await;
                    if connection.now().since(began) > LASTED {
                        pause = MIN_PAUSE;
                        reported = String::new();
                    }
                    let refusal = self.refusal(&connection).await;
                    connection.close(0, "");
                    *self.endpoint() = None;
                    if self.is_leaving.load(Ordering::SeqCst) {
                        return Ok(());
                    }
                    match (ended, refusal) {
                        (DialEnd::Lost(_), Some(e)) => DialEnd::Final(e),
                        (DialEnd::Lost(why), None) => {
                            let why = escaped(&why);
                            DialEnd::Lost(format!("the connection to {at} is lost ({why})"))
                        }
                        (other, _) => other,
                    }
                }
                Err(e) if may_pass(&e) => {
                    if begun.elapsed() < REFUSED {
                        pause = pause.min(REFUSED);
                    }
                    DialEnd::Lost(e.line)
                }
                Err(e) => DialEnd::Final(e),
            };
            match ended {
                DialEnd::Final(e) => return Err(e),
                // Report each cause once, not each attempt.
                DialEnd::Lost(why) if reported != why => {
                    purpose.tell(&format!("{why}; connecting again"));
                    reported = why;
                }
                DialEnd::Lost(_) => {}
            }
            purpose.meanwhile(sleep(pause)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// The reason if the peer refused the connection after this end's handshake had completed.
    async fn refusal(&self, connection: &Connection) -> Option<Error> {
        let closed = timeout(Wait::ZERO, connection.closed()).await.ok()?;
        self.dial.refusal(&closed)
    }

    fn endpoint(&self) -> MutexGuard<'_, Option<Endpoint>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection, if any, and stops reconnecting. Returns whether there was a connection.
    pub fn leave(&self) -> bool {
        self.is_leaving.store(true, Ordering::SeqCst);
        let endpoint = self.endpoint().take();
        endpoint.is_some_and(|endpoint| {
            endpoint.leave(0, "");
            true
        })
    }

    async fn connect(&self) -> Result<DialledPeer, Error> {
        let config = for_media(self.dial.peer.config.clone(), self.application)?;
        self.dial.connect(&self.dial.addresses().await?, config).await
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
