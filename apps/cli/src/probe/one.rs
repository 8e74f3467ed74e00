//! One probe, with its progress on the terminal.

use crate::failure::Failure;
use crate::terminal::{STOP, TerminalBar};
use narrows_net::Error;
use narrows_net::probe::{ProbeError, ProbeOptions, Probed};
use narrows_peers::error;
use std::sync::atomic::Ordering;

/// Probes, and shows the progress.
pub fn with_bar(options: ProbeOptions) -> Result<Probed, ProbeError> {
    let bar = TerminalBar::new("probing".into());
    let done = narrows_net::probe::probe(options, &mut |progress| {
        bar.tell(progress);
        !STOP.load(Ordering::SeqCst)
    });
    bar.finish();
    done
}

/// The message of a probe that failed.
pub fn failure(e: &ProbeError, server: &str) -> Failure {
    match e {
        ProbeError::Stopped => Failure::Stopped(e.to_string()),
        ProbeError::Connection(Error::NoAnswer { .. } | Error::NoAddress { .. })
        | ProbeError::Silent => {
            let server = error::shown(server);
            Failure::Outside(format!(
                "{e}; a path is probed between two ends of narrows: run narrows serve or narrows speed \
                 --serve there. Of any TCP server, narrows probe {server} --tcp says the round-trip time"
            ))
        }
        _ => Failure::Outside(e.to_string()),
    }
}
