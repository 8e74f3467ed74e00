//! A rate that each client has, over several of its connections.

use crate::requests::RequestScope;
use narrows_base::Rate;
use narrows_peers::rate_cap::RateCap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The caps of clients with requests. A cap stays until its last bytes have passed.
#[derive(Default)]
pub(crate) struct Caps(Mutex<CapsState>);

#[derive(Default)]
struct CapsState {
    rate: Option<Rate>,
    all: BTreeMap<RequestScope, Arc<RateCap>>,
}

impl Caps {
    /// Replaces the rate of every client.
    pub fn set(&self, rate: Option<Rate>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.rate = rate;
        state.all.values().for_each(|cap| cap.set(rate));
    }

    /// The cap that all requests of a client share.
    pub fn of(&self, client: RequestScope) -> Arc<RateCap> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = state.rate;
        let now = Instant::now();
        state.all.retain(|_, cap| Arc::strong_count(cap) > 1 || !cap.is_free(now));
        state.all.entry(client).or_insert_with(|| Arc::new(RateCap::new(rate))).clone()
    }
}
