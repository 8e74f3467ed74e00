//! Live media over `rrtp`: datagrams that ffmpeg, GStreamer or OBS send to a local UDP port leave another machine's
//! port within a latency budget.
//!
//! | to | see |
//! |---|---|
//! | choose packets to send, repeat and drop | [`sender`] |
//! | send several inputs as layers | [`layered`], [`quality`] |
//! | receive them | [`shown`] |
//! | find the causes of waits and drops | [`waiting`] |
//! | buffer packets until their time, and request missing ones | [`receiver`], [`missing`], [`clock`] |
//! | measure delays, late frames and stalls | [`meter`], [`histogram`], [`frames`] |
//! | restore lost packets if a repeat would be too late | [`repair`] |
//! | compute the encoder's rate | [`encoder`] |
//! | ask the controller for that rate at the start | [`demand`] |
//! | read the format | [`packet`], [`hello`] |
//!
//! These have no clock and no socket. The rest drives them with connections of `narrows_net`:
//!
//! | to | see |
//! |---|---|
//! | connect and reconnect | [`dial`] |
//! | send | [`send`], [`outlet`], [`flow`], with [`rate_http`] for encoders |
//! | receive | [`receive`], [`inlet`] |
//! | send to and receive from groups | [`group_run`], [`group`], with [`group_sender`], [`group_receiver`] and [`group_packet`] (no clock) |
//! | print measures | [`measures`] |
//! | observe a running stream | [`playing`], [`flow::MediaFlowState`] |
//!
//! `docs/media.md` describes the command.

pub mod blocking;
pub mod clock;
pub mod connection;
pub mod demand;
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
mod flow_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod media_tests;
#[cfg(test)]
mod pull_tests;
#[cfg(test)]
mod virtual_tests;
