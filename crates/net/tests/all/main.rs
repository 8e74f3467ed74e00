//! Endpoints and the relay over real sockets. One binary: each would link all of it again.

mod endpoint;
mod probe;
mod relay;
mod sharing;
mod task;
