//! Live media over `rrtp`: datagrams that ffmpeg, GStreamer or OBS send to a local UDP port leave another machine's
//! port within a latency budget.
//!
//! | to | see |
//! |---|---|
//! | decide what leaves, what is repeated and what is dropped | [`sender`] |
//! | send several inputs as layers | [`layered`], [`quality`] |
//! | receive them | [`shown`] |
//! | know why packets waited, and were dropped | [`waiting`] |
//! | hold packets until their time, and ask for what is missing | [`receiver`], [`missing`], [`clock`] |
//! | know delays, late frames and stalls | [`meter`], [`histogram`], [`frames`] |
//! | restore what is lost where a repeat would come too late | [`repair`] |
//! | tell an encoder its rate | [`encoder`] |
//! | read the format | [`packet`], [`hello`] |
//!
//! These have no clock and no socket. The rest drives them with connections of `narrows_net`:
//!
//! | to | see |
//! |---|---|
//! | connect, and connect again | [`dial`] |
//! | send | [`send`], [`outlet`], [`flow`], with [`rate_http`] for encoders that ask |
//! | receive | [`receive`], [`inlet`] |
//! | send to and receive from groups | [`group_run`], [`group`], with [`group_sender`], [`group_receiver`] and [`group_packet`], which have no clock |
//! | read flags from a file | [`config`] |
//! | print measures | [`measures`] |
//! | observe a stream while it goes on | [`playing`], [`flow::State`] |
//!
//! `docs/media.md` describes the command.

pub mod blocking;
pub mod clock;
pub mod config;
pub mod connection;
pub mod dial;
pub mod encoder;
pub mod flow;
pub mod frames;
pub mod group;
pub mod group_packet;
pub mod group_receiver;
pub mod group_run;
pub mod group_sender;
pub mod hello;
pub mod histogram;
pub mod inlet;
pub mod layered;
pub mod measures;
pub mod meter;
pub mod missing;
pub mod outlet;
pub mod packet;
pub mod playing;
pub mod quality;
pub mod rate_http;
pub mod receive;
pub mod receiver;
pub mod repair;
mod rtp;
pub mod send;
pub mod sender;
pub mod shown;
mod transport_stream;
pub mod waiting;

#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod media_tests;
#[cfg(test)]
mod pull_tests;
#[cfg(test)]
mod virtual_tests;
