//! Keys, lists of admitted clients, learned paths and dialling, for programs with peers over rrtp: the file service, the
//! tunnel and the media commands.
//!
//! | to | see |
//! |---|---|
//! | identify an end by a key | [`key`] |
//! | admit listed clients, recognize known servers | [`access`] |
//! | store measurements of a path | [`learned`] |
//! | reconnect to a known server in one round trip | [`tokens`] |
//! | connect to a peer repeatedly | [`dial`] |
//! | bound the rate of a client | [`rate_cap`] |
//! | log refused clients | [`refusals`] |
//! | read a command's settings | [`settings`] |
//! | refuse a file that other users can change | [`trusted_file`] |
//! | report an error in one line | [`error`] |

pub mod access;
pub mod dial;
pub mod error;
pub mod key;
pub mod learned;
pub mod path_choice;
mod path_keeper;
pub mod paths;
pub mod rate_cap;
pub mod refusals;
pub mod settings;
pub mod text_file;
pub mod tokens;
pub mod trusted_file;

pub use error::{Error, ErrorKind};
pub use key::Identity;

#[cfg(test)]
mod text_file_tests;
