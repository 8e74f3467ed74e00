//! Real sockets: what the runtime gives, measured as the simulator measures.

pub mod record;
pub mod sim_vs_real;
pub mod speed;

pub use sim_vs_real::{Observed, SimVsReal};
pub use speed::{Amount, Direction, Speed, SpeedResult, Traffic};
