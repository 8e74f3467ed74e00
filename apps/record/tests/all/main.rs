//! Recordings of real transfers over loopback, as a user of the crate makes them.

mod recording;
mod relay;
