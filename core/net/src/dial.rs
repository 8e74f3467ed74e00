//! Connects to the first of several places that answers (RFC 8305, "Happy Eyeballs"): to a name's addresses, or over local
//! paths.
//!
//! Addresses of both families alternate. An attempt begins [`DELAY`] after the one before it, or as soon as that
//! one fails. The first attempt that completes wins, and the others are dropped.

pub mod tcp;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Time between the beginnings of two attempts (RFC 8305 section 5).
pub const DELAY: Duration = Duration::from_millis(250);
/// Maximum number of a name's addresses that are tried.
pub const MAX_ADDRESSES: usize = 8;

/// Looks a name up, within a tokio runtime.
///
/// # Errors
/// The resolver's.
#[cfg(feature = "runtime-tokio")]
pub async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// Waits for a time, within a tokio runtime; otherwise see [`sleep_until`](crate::block::sleep_until).
#[cfg(feature = "runtime-tokio")]
pub async fn until(time: Instant) {
    tokio::time::sleep_until(time.into()).await;
}

/// Orders a name's addresses: `preferred` first, if it is one of them, then alternately of both families. The first
/// family is that of the resolver's first address: IPv6, if this machine has a route to it (RFC 6724). Repeated
/// addresses, and those beyond [`MAX_ADDRESSES`], are left out.
pub fn ordered(
    found: impl IntoIterator<Item = SocketAddr>,
    preferred: Option<SocketAddr>,
) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all.sort_by_key(|address| Some(*address) != preferred);
    let is_first_ipv4 = all.first().is_some_and(SocketAddr::is_ipv4);
    let (mut next, mut other): (VecDeque<_>, VecDeque<_>) =
        all.into_iter().partition(|address| address.is_ipv4() == is_first_ipv4);
    let mut ordered = Vec::new();
    while let Some(address) = next.pop_front().or_else(|| other.pop_front()) {
        ordered.push(address);
        std::mem::swap(&mut next, &mut other);
    }
    ordered.truncate(MAX_ADDRESSES);
    ordered
}

/// An address to which no connection was made, or another place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedAddress<E, K = SocketAddr> {
    /// The place of the failed attempt.
    pub address: K,
    /// The reason.
    pub cause: E,
}

/// The result of the attempt that completed first.
#[derive(Debug)]
pub struct DialledAddress<T, E, K = SocketAddr> {
    /// The address that this attempt reached, or another place.
    pub address: K,
    /// Its result.
    pub value: T,
    /// Attempts that had failed before.
    pub failed: Vec<FailedAddress<E, K>>,
    /// Attempts that were still pending.
    pub pending: Vec<K>,
}

impl<T, E> DialledAddress<T, E> {
    /// The other addresses that were tried, each with its outcome, in brackets after a space; empty if there are none.
    pub fn others(&self, brief: impl Fn(&E) -> String) -> String {
        let failed = (!self.failed.is_empty()).then(|| listed(&self.failed, brief));
        let pending = self.pending.iter().map(|address| format!("{address}: no connection so far"));
        let all: Vec<String> = failed.into_iter().chain(pending).collect();
        if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
    }
}

/// Why no attempt completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialFailure<E, K = SocketAddr> {
    /// An error that ends all attempts.
    Final(E),
    /// All attempts failed; there is none if the name has no address.
    All(Vec<FailedAddress<E, K>>),
}

/// Addresses with the reasons of their failures, in one line.
pub fn listed<E>(failed: &[FailedAddress<E>], brief: impl Fn(&E) -> String) -> String {
    let each = failed.iter().map(|FailedAddress { address, cause }| {
        let cause = brief(cause);
        format!("{address}: {cause}")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The beginnings of attempts.
struct AttemptSchedule<'a, K> {
    waiting: std::slice::Iter<'a, K>,
    due: Instant,
}

impl<'a, K: Copy> AttemptSchedule<'a, K> {
    fn new(addresses: &'a [K]) -> AttemptSchedule<'a, K> {
        AttemptSchedule { waiting: addresses.iter(), due: Instant::now() }
    }

    /// The address of an attempt that begins now.
    fn begin(&mut self, now: Instant) -> Option<K> {
        if now < self.due {
            return None;
        }
        self.due = now + DELAY;
        self.waiting.next().copied()
    }

    /// Lets the next attempt begin now.
    fn hurry(&mut self) {
        self.due = Instant::now();
    }

    /// When the next attempt begins; `None` after the last one.
    fn due(&self) -> Option<Instant> {
        (!self.waiting.as_slice().is_empty()).then_some(self.due)
    }
}

/// Runs an attempt for each [ordered] address, or other place, until one completes. `is_final` tells errors that end all
/// attempts; `until` waits for a time.
///
/// # Errors
/// No attempt completed.
pub async fn first<K: Copy, T, E, A, P>(
    addresses: &[K],
    attempt: impl Fn(K) -> A,
    is_final: impl Fn(&E) -> bool,
    until: impl Fn(Instant) -> P,
) -> Result<DialledAddress<T, E, K>, DialFailure<E, K>>
where
    A: Future<Output = Result<T, E>>,
    P: Future<Output = ()>,
{
    let mut schedule = AttemptSchedule::new(addresses);
    let mut running: Vec<(K, Pin<Box<A>>)> = Vec::new();
    let mut failed = Vec::new();
    let mut pause: Option<Pin<Box<P>>> = None;
    poll_fn(|context| {
        loop {
            let mut at = 0;
            while let Some((address, attempt)) = running.get_mut(at) {
                let address = *address;
                match attempt.as_mut().poll(context) {
                    Poll::Pending => at += 1,
                    Poll::Ready(Ok(value)) => {
                        running.remove(at);
                        let failed = std::mem::take(&mut failed);
                        let pending = running.iter().map(|(address, _)| *address).collect();
                        return Poll::Ready(Ok(DialledAddress { address, value, failed, pending }));
                    }
                    Poll::Ready(Err(cause)) if is_final(&cause) => {
                        return Poll::Ready(Err(DialFailure::Final(cause)));
                    }
                    Poll::Ready(Err(cause)) => {
                        running.remove(at);
                        failed.push(FailedAddress { address, cause });
                        schedule.hurry();
                    }
                }
            }
            if let Some(address) = schedule.begin(Instant::now()) {
                running.push((address, Box::pin(attempt(address))));
                pause = None;
                continue;
            }
            if running.is_empty() {
                return Poll::Ready(Err(DialFailure::All(std::mem::take(&mut failed))));
            }
            let Some(due) = schedule.due() else { return Poll::Pending };
            if pause.get_or_insert_with(|| Box::pin(until(due))).as_mut().poll(context).is_pending()
            {
                return Poll::Pending;
            }
            schedule.hurry();
        }
    })
    .await
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
