//! The measured links and senders.

use crate::real::senders::{ComparedSender, HowSent, sender};
use crate::real::{MeasuredLink, link};

pub const HYSTERIA: &str = "tools/hysteria-speed";

/// Over loopback: in turns, so often.
pub const TURNS: u64 = 5;

/// Name of the row without a relay.
pub const LOOPBACK: &str = "loopback";

/// Name of the row with many connections at once.
pub const CROWD: &str = "crowd";

pub const CONNECTIONS: &str = "100";

/// Approximate time of a gigabyte over loopback, s, and the time that a crowd sends.
pub const LOOPBACK_S: f64 = 4.0;

#[rustfmt::skip]
pub const NETS: [MeasuredLink; 4] = [
    link("i", "20Mbit/s,25ms,queue=125kB,loss=1%", 20e6, 1500, 30.0, "rate=20Mbit/s,rtt=50ms"),
    link("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%", 1.5e6, 1500, 60.0, "rate=1.5Mbit/s,rtt=500ms"),
    link("iii", "144kbit/s,75ms,queue=2700B,loss=1%", 144e3, 1500, 60.0, "rate=144kbit/s,rtt=150ms"),
    link("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%", 100e6, 1500, 30.0, "rate=100Mbit/s,rtt=100ms"),
];

pub const fn lossy(name: &'static str, spec: &'static str) -> MeasuredLink {
    link(name, spec, 20e6, 1500, 12.0, "rate=20Mbit/s")
}

/// Links beside Hysteria: a queue of one BDP, and losses of data only.
pub const LOSSY: [MeasuredLink; 6] = [
    lossy("1%", "20Mbit/s,25ms,queue=125kB,loss=1%,reverse-loss=0%"),
    lossy("5%", "20Mbit/s,25ms,queue=125kB,loss=5%,reverse-loss=0%"),
    lossy("10%", "20Mbit/s,25ms,queue=125kB,loss=10%,reverse-loss=0%"),
    lossy("15%", "20Mbit/s,25ms,queue=125kB,loss=15%,reverse-loss=0%"),
    lossy("20%", "20Mbit/s,25ms,queue=125kB,loss=20%,reverse-loss=0%"),
    lossy("30%", "20Mbit/s,25ms,queue=125kB,loss=30%,reverse-loss=0%"),
];

pub const fn ours(protocol: &'static str, hinted: bool) -> HowSent {
    HowSent::Ours { protocol, hinted }
}

pub const SENDERS: [ComparedSender; 7] = [
    sender("rrtp", "rrtp", ours("rrtp", false)),
    sender("rrtp-told", "rrtp, given rate and RTT", ours("rrtp", true)),
    sender("rrtp+cubic", "rrtp+cubic", ours("rrtp+cubic", false)),
    sender("quinn-cubic", "quinn, CUBIC", HowSent::Quinn("cubic")),
    sender("quinn-bbr", "quinn, BBR", HowSent::Quinn("bbr")),
    // Hysteria's default, and its mode that needs the link's rate.
    sender("hysteria-bbr", "Hysteria 2, BBR", HowSent::Hysteria { hinted: false }),
    sender("hysteria-brutal", "Hysteria 2, brutal", HowSent::Hysteria { hinted: true }),
];
