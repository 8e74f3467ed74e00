//! The simulator in a page. Compiled to WebAssembly, it answers requests in JSON; compiled for the host, it writes the
//! page around that module.
//!
//! ```text
//!   page.rs ──writes──> index.html = page/*.js + report's and live's scripts + the module
//!
//!   page/main.js ──asks──> page/worker.js ──input, ask, output──> abi.rs ──> request.rs
//!     one worker simulates one (protocol, seed); another makes the report of all runs
//! ```
//!
//! The module has no clock, no thread and no file. A trace that was dropped on the page replaces a file
//! ([`narrows_scenario::text_file::provide`]).

#[cfg(target_arch = "wasm32")]
mod abi;
mod answer;
mod choices;
mod described;
mod lens;
mod own;
mod preview;
mod question;
mod request;
mod stored;

#[cfg(not(target_arch = "wasm32"))]
pub mod page;

pub use request::handle;
