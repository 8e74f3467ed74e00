//! The variants that are compiled into this build.

use narrows_base::{Descriptor, Settings};
use narrows_congestion::{Controller, ControllerEntry, Environment};
use narrows_sim::Registry;
use narrows_transport::protocol::ProtocolEntry;

/// Label of a variant, descriptor and builder.
pub type Built =
    (&'static str, &'static Descriptor, fn(&Settings, &Environment) -> Box<dyn Controller>);

#[cfg(feature = "variants")]
include!(concat!(env!("NARROWS_VARIANTS"), "/list.rs"));

/// None: this is no measuring build.
#[cfg(not(feature = "variants"))]
pub const LIST: &[Built] = &[];

/// Adds the variants to the lists of this process, each as a protocol that differs from rrtp only in the controller.
///
/// # Errors
/// A second call.
pub fn install() -> Result<(), String> {
    let mut registry = Registry::new();
    for (label, descriptor, build) in LIST {
        let protocol = ProtocolEntry::stream(descriptor.name, descriptor.name, label);
        registry = registry
            .controller(ControllerEntry::new(descriptor, *build))
            .protocol(protocol.with_classifier("spike"));
    }
    registry.install().map_err(|e| e.to_string())
}
