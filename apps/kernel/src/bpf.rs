//! The eBPF programs: loaded, registered as a congestion control, and the memory shared with them.

pub mod btf;
pub mod object;
pub mod ring;
pub mod system;

pub use object::{BpfPrograms, Chooser, Loaded};
