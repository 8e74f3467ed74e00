//! Real sockets: what the runtime gives, measured as the simulator measures.

pub mod record;
pub mod speed;
pub mod twin;

pub use speed::{Amount, Cargo, Direction, Speed, SpeedResult};
pub use twin::{Seen, Twin};
