//! Runs a simulation within the scopes of its controllers.

use crate::spec::{NetworkSpec, SimError};
use narrows_base::Time;
use narrows_congestion::SimulationScope;

/// Called regularly; returns whether to continue.
type Progress<'a> = dyn FnMut(Time) -> bool + 'a;

/// Runs `work` within the scopes of the network's controllers, each entered once. A failure that a scope reports ends
/// the work, and is its error.
pub(super) fn within<T>(
    spec: &NetworkSpec,
    progress: &mut Progress<'_>,
    work: &mut dyn FnMut(&mut Progress<'_>) -> Result<T, SimError>,
) -> Result<T, SimError> {
    let mut scopes: Vec<SimulationScope> = Vec::new();
    for scope in spec.groups.iter().filter_map(|g| g.protocol.scope()) {
        if !scopes.iter().any(|s| std::ptr::fn_addr_eq(s.enter, scope.enter)) {
            scopes.push(scope);
        }
    }
    nested(&scopes, progress, work)
}

fn nested<T>(
    scopes: &[SimulationScope],
    progress: &mut Progress<'_>,
    work: &mut dyn FnMut(&mut Progress<'_>) -> Result<T, SimError>,
) -> Result<T, SimError> {
    let Some((scope, others)) = scopes.split_first() else { return work(progress) };
    let mut result = Err(SimError::Interrupted);
    (scope.enter)(&mut || {
        let mut watched = |now| (scope.failure)().is_none() && progress(now);
        result = nested(others, &mut watched, work);
        if let Some(why) = (scope.failure)() {
            result = Err(SimError::Controller(why));
        }
    });
    result
}
