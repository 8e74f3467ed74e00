//! Tests of the whole engine, in one binary to save link time.

mod drop_tail;
mod ecn;
mod engine;
mod loan;
mod media_layers;
mod media_rap;
mod media_scream;
mod media_tear;
mod media_tfrc;
mod media_tfwc;
mod multicast;
mod multipath;
mod parameters;
mod queues;
mod reordering;
mod rrtp;
mod specs;
mod two_links;
