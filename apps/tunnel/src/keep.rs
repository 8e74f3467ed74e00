//! Keeps the near side connected.
//!
//! A lost connection is replaced. A silent one is kept, with its streams, until it times out. Meanwhile another one is
//! tried in parallel, over UDP and then over TCP. Programs that connect afterwards use the best connection that
//! answers: UDP rather than TCP, then the newest. Open streams stay on their connection, which is closed when its last
//! stream ends.

use crate::client::{CARRIER_LOST, Carrier, FarConnection, Tunnel};
use crate::flow;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use narrows_base::Duration;
use narrows_net::{Connection, Error as NetError};
use narrows_peers::Error;
use narrows_peers::dial::may_pass;
use std::sync::Arc;
use std::time::{Duration as Wait, Instant};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Pause before the next attempt to connect; it doubles with each failure.
const MIN_PAUSE: Wait = Wait::from_millis(500);
const MAX_PAUSE: Wait = Wait::from_secs(30);
/// An attempt that fails within this time was refused, for example because the server restarts. The next pause is at
/// most this long.
const REFUSED: Wait = Wait::from_secs(2);
/// Number of PTOs without an answer before a connection counts as silent.
const UNANSWERED: u64 = 3;
/// Number of checks within the permitted silence.
const LOOKS: u64 = 12;
/// Time for the last packets to leave over TCP.
const LINGER: Wait = Wait::from_secs(2);
/// Maximum number of open connections; a server keeps four for each client.
const MAX_LIVING: usize = 3;

/// An open connection.
struct Living {
    number: u64,
    link: Arc<FarConnection>,
    /// Number of PTOs at the last check that found it answering.
    timeouts: u64,
    looked: Instant,
    answers: bool,
    /// Whether this end has closed it.
    is_left: bool,
}

impl Living {
    /// Checks whether it answers. It does not if no packet arrived for `silence` and probes were unanswered; an idle
    /// connection may be silent for longer.
    fn look(&mut self, silence: Duration) {
        let connection = self.link.connection();
        let Ok((quiet, _)) = connection.silence() else { return };
        let timeouts = connection.stats().counters.timeouts;
        let since = std::mem::replace(&mut self.looked, Instant::now()).elapsed();
        if Wait::from_nanos(quiet.as_nanos()) <= since {
            self.timeouts = timeouts;
        }
        self.answers = quiet < silence || timeouts < self.timeouts + UNANSWERED;
        self.link.measure();
    }
}

/// The next event.
enum KeepEvent {
    Look,
    Made(Result<FarConnection, Error>),
    Over(u64, NetError),
}

impl Tunnel {
    /// Connects, and reconnects whenever the connection is lost.
    ///
    /// # Errors
    /// A failure that another attempt would not cure: the server has another key, refuses this one, or uses another
    /// version.
    pub async fn keep(&self) -> Result<(), Error> {
        let silence = self.silence;
        let mut looks =
            interval(Wait::from_nanos(silence.as_nanos() / LOOKS).max(Wait::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut living = Vec::<Living>::new();
        let mut ends = FuturesUnordered::new();
        let mut pause = MIN_PAUSE;
        let mut reported = String::new();
        let mut number = 0;
        let mut begun = Instant::now();
        let mut attempt: Option<BoxFuture<'_, _>> = Some(Box::pin(self.connect()));
        loop {
            let next = tokio::select! {
                Some((number, why)) = ends.next() => KeepEvent::Over(number, why),
                made = made(&mut attempt) => KeepEvent::Made(made),
                _ = looks.tick(), if !living.is_empty() => KeepEvent::Look,
            };
            match next {
                KeepEvent::Look => living.iter_mut().for_each(|one| one.look(silence)),
                KeepEvent::Made(Ok(mut link)) => {
                    attempt = None;
                    pause = MIN_PAUSE;
                    reported = String::new();
                    number += 1;
                    let mut carrier = link.carrier.take();
                    let link = Arc::new(link);
                    let connection = link.connection().clone();
                    let flows = link.flows.clone();
                    ends.push(async move {
                        let messages = flow::to_programs(connection.clone(), flows);
                        let why = tokio::select! {
                            why = connection.closed() => why,
                            () = messages => connection.closed().await,
                            () = over(&mut carrier) => lost(&connection).await,
                        };
                        linger(carrier);
                        (number, why)
                    });
                    living.push(Living {
                        number,
                        link,
                        timeouts: 0,
                        looked: Instant::now(),
                        answers: true,
                        is_left: false,
                    });
                    while living.len() > MAX_LIVING {
                        living.remove(0).link.connection().close(0, "");
                    }
                }
                KeepEvent::Made(Err(e)) => {
                    attempt = None;
                    if begun.elapsed() < REFUSED {
                        pause = pause.min(REFUSED);
                    }
                    if !may_pass(&e) && living.is_empty() {
                        return Err(e);
                    }
                    // Report each cause once, not each attempt.
                    if reported != e.line {
                        self.tell(&format!("{}; trying again until it answers", e.line));
                        reported = e.line;
                    }
                }
                KeepEvent::Over(number, why) => {
                    let at = living.iter().position(|one| one.number == number);
                    let one = at.map(|at| living.remove(at));
                    if let Some(one) = &one {
                        let link = one.link.clone();
                        tokio::task::spawn_blocking(move || link.keep_learned());
                    }
                    if one.is_some_and(|one| !one.is_left) {
                        if living.is_empty()
                            && let Some(e) = self.dial.refusal(&why)
                        {
                            self.current.send_replace(None);
                            return Err(e);
                        }
                        let next = if living.is_empty() { "; connecting again" } else { "" };
                        self.tell(&format!(
                            "the connection is lost ({why}), and with it what was open{next}"
                        ));
                    }
                }
            }
            let was_silent = attempt.is_some() && !living.is_empty();
            if self.choose(&mut living) {
                if was_silent {
                    self.tell("the server answers again");
                }
                attempt = None;
                pause = MIN_PAUSE;
                reported = String::new();
            } else if attempt.is_none() {
                if !living.is_empty() && pause == MIN_PAUSE {
                    self.tell(
                        "the server does not answer; what is open waits for it, and another connection is tried",
                    );
                }
                let waits = pause;
                begun = Instant::now() + waits;
                attempt = Some(Box::pin(async move {
                    sleep(waits).await;
                    self.connect().await
                }));
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }

    /// Selects the best connection that answers for programs, and closes unused ones. Returns whether one answers.
    fn choose(&self, living: &mut [Living]) -> bool {
        let best = living.iter().filter(|one| one.answers && !one.is_left);
        let best = best.max_by_key(|one| (!one.link.is_over_tcp(), one.number));
        let best = best.map(|one| (one.number, one.link.clone()));
        let number = best.as_ref().map(|(number, _)| *number);
        self.current.send_if_modified(|current| {
            let same = match (current.as_ref(), &best) {
                (Some(now), Some((_, best))) => Arc::ptr_eq(now, best),
                (now, best) => now.is_none() && best.is_none(),
            };
            if !same {
                *current = best.as_ref().map(|(_, link)| link.clone());
            }
            !same
        });
        if number.is_some() {
            for one in living.iter_mut().filter(|one| Some(one.number) != number && !one.is_left) {
                // Each open stream or flow holds a reference to its link.
                if Arc::strong_count(&one.link) == 1 {
                    one.is_left = true;
                    one.link.connection().close(0, "");
                }
            }
        }
        number.is_some()
    }
}

async fn made(
    attempt: &mut Option<BoxFuture<'_, Result<FarConnection, Error>>>,
) -> Result<FarConnection, Error> {
    match attempt {
        Some(attempt) => attempt.await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of the TCP connection that carries this one; for ever without such a connection.
async fn over(carrier: &mut Option<Carrier>) {
    match carrier {
        Some(carrier) => drop(carrier.join_next().await),
        None => std::future::pending().await,
    }
}

/// Keeps the TCP connection below open until the last packets have left.
fn linger(carrier: Option<Carrier>) {
    if let Some(carrier) = carrier {
        tokio::spawn(async move {
            sleep(LINGER).await;
            drop(carrier);
        });
    }
}

async fn lost(connection: &Connection) -> NetError {
    connection.close(CARRIER_LOST, "the TCP connection below is lost");
    connection.closed().await
}
