//! Twelve links for tests of the estimates.

/// A link with a known truth.
#[derive(Clone, Copy, Debug)]
pub struct JudgedLink {
    /// In short.
    pub name: &'static str,
    /// Text of `--link`.
    pub link: &'static str,
    /// The shares of packets that it loses there and back, on average.
    pub loss: [f64; 2],
}

const fn link(name: &'static str, link: &'static str, loss: [f64; 2]) -> JudgedLink {
    JudgedLink { name, link, loss }
}

/// All of them; each way is another.
pub const LINKS: [JudgedLink; 12] = [
    link("plain", "10Mbit/s,20ms,queue=50p,reverse-rate=2Mbit/s,reverse-queue=30p", [0.0, 0.0]),
    link("wireless", "1.5Mbit/s,80ms,queue=30p,loss=1%,reverse-rate=1Mbit/s", [0.01, 0.0]),
    link(
        "lossy",
        "20Mbit/s,25ms,queue=85p,loss=1%,reverse-rate=5Mbit/s,reverse-loss=10%",
        [0.01, 0.1],
    ),
    link(
        "jitter",
        "12Mbit/s,30ms,queue=100p,jitter=8ms,reverse-rate=5Mbit/s,reverse-jitter=4ms",
        [0.0, 0.0],
    ),
    link(
        "bursts",
        "8Mbit/s,40ms,queue=60p,loss=ge(g=0.3%,h=20%),reverse-rate=3Mbit/s",
        [0.003 / 0.203, 0.0],
    ),
    link(
        "policer",
        "50Mbit/s,15ms,queue=200p,policer=10Mbit/s/60kB,reverse-rate=10Mbit/s",
        [0.0, 0.0],
    ),
    link(
        "codel",
        "10Mbit/s,20ms,queue=1000p,aqm=codel,reverse-rate=1Mbit/s,reverse-queue=20p,reverse-aqm=droptail",
        [0.0, 0.0],
    ),
    link(
        "satellite",
        "1.5Mbit/s,250ms,queue=94p,reverse-rate=384kbit/s,reverse-queue=30p",
        [0.0, 0.0],
    ),
    link(
        "cellular",
        "12Mbit/s,30ms,queue=150p,reverse-rate=5Mbit/s,reverse-queue=100p",
        [0.0, 0.0],
    ),
    link(
        "reordering",
        "20Mbit/s,10ms,queue=60p,reorder=1%/5ms,loss=0.5%,reverse-rate=10Mbit/s",
        [0.005, 0.0],
    ),
    link(
        "slow",
        "384kbit/s,60ms,queue=20p,loss=2%,reverse-rate=256kbit/s,reverse-loss=1%",
        [0.02, 0.01],
    ),
    link(
        "fast",
        "80Mbit/s,8ms,queue=250p,loss=0.1%,reverse-rate=40Mbit/s,reverse-loss=0.5%",
        [0.001, 0.005],
    ),
];
