//! The measured links and protocols.

use crate::real::{MeasuredLink, link};

pub const NETS: [MeasuredLink; 6] = [
    link("i", "20Mbit/s,25ms,queue=125kB,loss=1%", 20e6, 1500, 20.0, ""),
    link("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%", 1.5e6, 1500, 60.0, ""),
    link("iii", "144kbit/s,75ms,queue=2700B,loss=1%", 144e3, 1228, 60.0, ""),
    link("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%", 100e6, 1500, 20.0, ""),
    link("clean", "10Mbit/s,20ms,queue=50kB", 10e6, 1500, 20.0, ""),
    link("bursts", "10Mbit/s,20ms,queue=50kB,loss=ge(g=0.13%,h=12.5%)", 10e6, 1500, 20.0, ""),
];

pub const PROTOCOLS: [&str; 13] = [
    "rrtp",
    "rrtp-lasthop",
    "tear-reliable",
    "rrtp+bbr",
    "rrtp+cubic",
    "rrtp+reno",
    "rrtp+vegas",
    "rrtp+stpd",
    "rrtp+westwood+",
    "tfrc",
    "tfwc",
    "tear",
    "tear-wireless",
];
