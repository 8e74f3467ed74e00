//! The thread that drives an endpoint: receive, timers, send, wait.

use super::Ending;
use crate::endpoint::shared::EndpointShared;
use crate::wait::exact_timers;
use std::sync::Arc;

/// Runs until the endpoint is closed and its peers are informed.
pub fn run(shared: Arc<EndpointShared>) {
    exact_timers();
    let ending = Ending(shared);
    let shared = &*ending.0;
    loop {
        let next = {
            let mut turn = shared.turn();
            turn.receive();
            turn.run(shared)
        };
        if next.is_over {
            break;
        }
        if !next.is_busy || next.is_full {
            shared.sleep(next.due, next.is_full);
        }
    }
}
