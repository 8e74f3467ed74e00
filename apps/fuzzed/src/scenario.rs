//! Scenario files: no panic, and an accepted scenario is written and read back unchanged.

use narrows_scenario::{Plan, scenario_file};
use std::path::Path;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains("trace") {
        return;
    }
    if let Ok(scenario) = scenario_file::parse(text, Path::new(".")) {
        let written = scenario_file::text(&scenario);
        let again =
            scenario_file::parse(&written, Path::new(".")).expect("what is written can be read");
        assert_eq!(written, scenario_file::text(&again));
        let _ = Plan::new(scenario);
    }
}
