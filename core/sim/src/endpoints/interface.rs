//! Inputs and outputs of simulated senders.

use narrows_base::{Packet, Time};

/// One layer of one frame of a media stream. A stream sends its bytes in the order of writing. Media send lower layers
/// first, and drop a part that has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramePart {
    /// Number of the frame, counted from 0; below 2^48.
    pub frame: u64,
    /// Its layer: 0 is the base. Below [`MAX_LAYERS`](narrows_congestion::layers::MAX_LAYERS).
    pub layer: u8,
    /// Application bytes; 0 if the frame is skipped.
    pub bytes: u32,
    /// When the frame is shown.
    pub playout: Time,
    /// When media drop it if it is still unsent; [`Time::NEVER`] for never.
    pub expires: Time,
}

impl FramePart {
    /// Frame and layer in one number below 2^56.
    pub(crate) fn tag(&self) -> u64 {
        (self.frame & ((1 << 48) - 1)) << 8 | u64::from(self.layer)
    }
}

/// An event that the simulation passes to a sender.
#[derive(Clone, Copy, Debug)]
pub enum SenderInput {
    /// Open the connection.
    Open,
    /// The application writes this many bytes; `u64::MAX` is data without end.
    Data(u64),
    /// The application writes a part of a frame.
    Frame(FramePart),
    /// The application writes no more data; unsent data is dropped.
    Stop,
    /// An acknowledgement or report arrived.
    Packet(Packet),
    /// The time of the last [`SenderOutput::Wait`] has come.
    Timeout,
}

/// A request of a sender.
#[derive(Clone, Copy, Debug)]
pub enum SenderOutput {
    /// Send this packet.
    Send(Packet),
    /// Wait until this time or the next input.
    Wait(Time),
}

/// The limit that keeps a sender from sending more. Names as in Linux's `tcp_info` where it has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SendingLimit {
    /// All data of the application has been sent.
    #[default]
    Application,
    /// The handshake is in progress.
    Opening,
    /// The controller's window is full, or the pacer spreads it over the round trip.
    Window,
    /// The controller's rate, or a limit on it, holds the next packet back.
    Pacing,
    /// The send buffer is full (`sndbuf_limited`).
    SendBuffer,
    /// The receive window is full (`rwnd_limited`).
    ReceiveWindow,
}

impl SendingLimit {
    /// Their names in series, by number.
    pub const NAMES: [&'static str; 6] =
        ["application", "opening", "window", "pacing", "send buffer", "receive window"];
}
