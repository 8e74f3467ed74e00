//! The file service: list, get and put whole files over any transport that gives encrypted streams.
//!
//! `docs/files.md` has the format. Guarantees: a file appears under its name only when it is complete and its hash is
//! correct; an interrupted transfer resumes where it stopped. No request leaves the served folder, and no name from a
//! server leads out of the folder that is written.
//!
//! | to | see |
//! |---|---|
//! | serve | [`service`], over UDP with [`rrtp::RrtpServer`], over TCP with [`tcp::TcpServer`] |
//! | list, get, put | [`client`], over a [`stream::Session`] |
//! | write a transport | [`stream`] |
//! | store a file that is being received | [`partial_file`] |
//! | limit the work that clients cause | [`requests`], [`hashing`] |
//! | read an address | [`url`] |
//! | keys, which clients may connect, learned paths, tokens | [`narrows_peers`] |

mod busy;
pub mod client;
mod entry;
mod error_code;
mod follower;
pub mod frames;
pub mod hashing;
pub mod message;
pub mod mode;
pub mod partial_file;
pub mod path;
pub mod requests;
pub mod rrtp;
pub mod service;
mod silence;
mod source_file;
pub mod stream;
pub mod tcp;
pub mod transfer_control;
mod until;
pub mod url;
pub mod wire;

pub use narrows_peers::{Error, ErrorKind};
pub use path::CleanPath;
pub use service::Service;
pub use transfer_control::{ProgressEvent, Replace, TransferControl};
pub use url::{Scheme, Url};

#[cfg(test)]
mod bench_tests;
#[cfg(test)]
mod busy_tests;
#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod lying_server_tests;
#[cfg(all(test, unix))]
mod mode_tests;
#[cfg(test)]
mod put_flood_tests;
#[cfg(test)]
mod rrtp_tests;
#[cfg(test)]
mod service_tests;
#[cfg(test)]
mod silence_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tcp_cut_tests;
#[cfg(test)]
mod tcp_tests;
