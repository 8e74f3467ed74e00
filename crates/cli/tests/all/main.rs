//! The command itself. One binary: each would link all of it again.

mod command;
mod transfer;
