//! Endpoints and the relay over real sockets. One binary, because each binary links everything again.

mod endpoint;
mod paths;
mod probe;
mod relay;
mod sharing;
mod task;
