//! All texts that a user can write on the command line or in a trace file: no panic, and accepted values are printed
//! and parsed again.

use narrows_base::{Spec, spec, units};
use narrows_link::{LossSpec, Trace};
use narrows_scenario::BottleneckLink;
use narrows_sim::SourceSpec;
use narrows_sim::protocol::{FlowProtocol, Preset};
use std::path::Path;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = spec::split(text);
    let _ = (units::rate(text), units::duration(text));
    let _ = Trace::parse(text);
    let _ = LossSpec::parse_all(text);
    if let Ok(spec) = Spec::parse(text) {
        let _ = FlowProtocol::read(&spec, Preset::Rfc, 1000);
        let _ = SourceSpec::read(&spec);
    }
    // Traces are files, which this target does not test.
    if !text.contains("trace")
        && let Ok(link) = BottleneckLink::parse(text, Path::new("."))
    {
        let shown = link.to_string();
        let again =
            BottleneckLink::parse(&shown, Path::new(".")).expect("what is shown can be read");
        assert_eq!(shown, again.to_string());
    }
}
