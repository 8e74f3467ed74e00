//! Flags of `narrows speed`.

use crate::live::LiveArgs;
use crate::local_paths::PathArgs;
use crate::record::RecordArgs;
use crate::transport::{Hints, TransportArgs, bytes};
use clap::Args;
use narrows_lab::options::values::time;
use narrows_speed::Amount;

#[derive(Args)]
pub struct SpeedArgs {
    /// Host of a `narrows speed --serve`; without it both ends are in this process
    #[arg(value_name = "HOST:PORT", conflicts_with_all = ["serve", "link"])]
    pub server: Option<String>,
    /// Run as a server, until Ctrl-C
    #[arg(long, conflicts_with_all = ["duration", "connections", "down", "link"])]
    pub serve: bool,
    /// Listening address of the server [default: 127.0.0.1:0]; with HOST:PORT of the one in this process, of which
    /// HOST:PORT is a relay
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Put an emulated link between the ends, as `narrows relay` does
    #[arg(long, value_name = "SPEC|NAME", allow_hyphen_values = true)]
    pub link: Option<String>,
    /// Duration, including the handshake, or bytes per connection
    #[arg(long, value_name = "TIME|SIZE", default_value = "10s", value_parser = amount)]
    pub duration: Amount,
    /// Number of concurrent connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub connections: u16,
    /// The server sends (paced by its own --protocol)
    #[arg(long)]
    pub down: bool,
    /// Protocol for this end's sending: rrtp, rrtp-lasthop, tear-reliable, or rrtp+NAME with a controller, as rrtp+bbr;
    /// with hints rrtp(rate=20Mbit/s,rtt=50ms)
    #[arg(long, value_name = "NAME", default_value = "rrtp")]
    pub protocol: String,
    #[command(flatten)]
    pub paths: PathArgs,
    #[command(flatten)]
    pub record: RecordArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl SpeedArgs {
    pub fn transport(&self) -> TransportArgs {
        TransportArgs { protocol: self.protocol.clone(), hints: Hints::default() }
    }
}

/// Seed of the emulated link's losses.
pub const SEED: u64 = 1;

fn amount(text: &str) -> Result<Amount, String> {
    if text.ends_with('B') { bytes(text).map(Amount::Bytes) } else { time(text).map(Amount::Time) }
}
