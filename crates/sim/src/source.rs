//! Traffic sources: what applications hand to their transport, and when.

use narrows_base::card::Kind;
use narrows_base::units::Unit;
use narrows_base::{Card, Duration, Param, Settings, Spec, SpecError, Status, Stream, Time};

/// All sources.
pub const SOURCES: &[Entry] = &[
    Entry { card: &BULK, read: |_| Ok(SourceKind::Bulk) },
    Entry { card: &TRANSFER, read: transfer },
    Entry { card: &TELNET, read: telnet },
    Entry { card: &CBR, read: cbr },
    Entry { card: &VIDEO, read: video },
    Entry { card: &WEB, read: web },
];

/// A source: its card, and how its parameters are read.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it says of itself.
    pub card: &'static Card,
    read: fn(&Settings) -> Result<SourceKind, SpecError>,
}

const BULK: Card = Card {
    name: "bulk",
    summary: "data without end, as FTP in ns-2",
    source: "ns-2 Application/FTP",
    senses: "-",
    sets: "application data",
    params: &[],
    status: Status::Validated("ns-2.35 one-flow and dumbbell runs (docs/validation.md)"),
};
const TRANSFER: Card = Card {
    name: "transfer",
    summary: "one file of a given size",
    source: "-",
    senses: "-",
    sets: "application data",
    params: &[number(
        "size",
        Unit::Bytes,
        "bytes of the file",
        1.0,
        1e18,
        1e6,
        "S3 section 4.5: 1 MB",
    )],
    status: Status::Validated("arrives exactly, by test"),
};
const TELNET: Card = Card {
    name: "telnet",
    summary: "a person typing: small writes at random times",
    source: "ns-2 Application/Telnet; S0 section 3.6",
    senses: "-",
    sets: "application data",
    params: &[
        number(
            "size",
            Unit::Bytes,
            "bytes per write",
            1.0,
            1e6,
            64.0,
            "a line of typing with echo",
        ),
        number(
            "interval",
            Unit::Seconds,
            "mean time between writes, exponential",
            1e-6,
            1e6,
            1.0,
            "ns-2 interval_ 1.0",
        ),
    ],
    status: Status::NotValidated,
};
const CBR: Card = Card {
    name: "cbr",
    summary: "a constant rate, with exponential on and off times if wanted",
    source: "ns-2 Application/Traffic/CBR and Exponential",
    senses: "-",
    sets: "application data",
    params: &[
        number(
            "rate",
            Unit::BitsPerSecond,
            "application bits per second while on",
            1.0,
            1e12,
            448e3,
            "ns-2 CBR rate_",
        ),
        number("size", Unit::Bytes, "bytes per write", 1.0, 1e6, 210.0, "ns-2 CBR packetSize_"),
        number(
            "on",
            Unit::Seconds,
            "mean length of on times; 0s is always on",
            0.0,
            1e6,
            0.0,
            "always on",
        ),
        number("off", Unit::Seconds, "mean length of off times", 0.0, 1e6, 0.0, "always on"),
    ],
    status: Status::Validated("mean rate, by test"),
};
const VIDEO: Card = Card {
    name: "video",
    summary: "frames at a steady pace whose size follows what the transport allows",
    source: "-",
    senses: "the transport's allowance at each frame",
    sets: "application data",
    params: &[
        number("fps", Unit::None, "frames per second", 0.1, 1000.0, 25.0, "film and PAL"),
        number(
            "min",
            Unit::BitsPerSecond,
            "the encoder's lowest rate",
            1.0,
            1e12,
            64e3,
            "a talking head",
        ),
        number("max", Unit::BitsPerSecond, "its highest rate", 1.0, 1e12, 4e6, "1080p streams"),
        number(
            "key",
            Unit::None,
            "every so many frames a key frame; 0 is none",
            0.0,
            1e6,
            0.0,
            "frames alike unless told",
        ),
        number("key-size", Unit::None, "a key frame over the others", 1.0, 100.0, 4.0, "rough"),
    ],
    status: Status::Validated("frame sizes and mean rate, by test"),
};
const WEB: Card = Card {
    name: "web",
    summary: "short transfers: Poisson arrivals, heavy-tailed sizes, a connection each",
    source: "Crovella and Bestavros 1997",
    senses: "-",
    sets: "connections",
    params: &[
        number(
            "rate",
            Unit::None,
            "new connections per second",
            1e-6,
            1e6,
            2.0,
            "a busy household",
        ),
        number(
            "mean",
            Unit::Bytes,
            "mean size of a transfer",
            1.0,
            1e12,
            30_000.0,
            "ns-2 webtraf examples",
        ),
        number(
            "shape",
            Unit::None,
            "Pareto shape; below 2 the variance is infinite",
            1.01,
            100.0,
            1.2,
            "Crovella and Bestavros 1997",
        ),
    ],
    status: Status::Validated("arrival rate and mean size, by test"),
};

const fn number(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    min: f64,
    max: f64,
    default: f64,
    origin: &'static str,
) -> Param {
    Param { name, help, kind: Kind::Number { unit, min, max, default }, origin }
}

/// A source that has been read and checked.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceSpec {
    text: String,
    kind: SourceKind,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum SourceKind {
    Bulk,
    Transfer { bytes: u64 },
    Telnet { bytes: u64, interval: f64 },
    Cbr { gap: Duration, bytes: u64, on: f64, off: f64 },
    Video { fps: f64, min: f64, max: f64, key: u64, key_size: f64 },
    Web { rate: f64, mean: f64, shape: f64 },
}

fn transfer(s: &Settings) -> Result<SourceKind, SpecError> {
    Ok(SourceKind::Transfer { bytes: s.number("size") as u64 })
}
fn telnet(s: &Settings) -> Result<SourceKind, SpecError> {
    Ok(SourceKind::Telnet { bytes: s.number("size") as u64, interval: s.number("interval") })
}
fn cbr(s: &Settings) -> Result<SourceKind, SpecError> {
    let gap = Duration::from_secs_f64(s.number("size") * 8.0 / s.number("rate"));
    Ok(SourceKind::Cbr {
        gap: gap.max(Duration::from_nanos(1)),
        bytes: s.number("size") as u64,
        on: s.number("on"),
        off: s.number("off"),
    })
}
fn video(s: &Settings) -> Result<SourceKind, SpecError> {
    let (min, max) = (s.number("min"), s.number("max"));
    if min > max {
        return Err(SpecError::new(format!(
            "video: min ({}) is above max ({})",
            Unit::BitsPerSecond.show(min),
            Unit::BitsPerSecond.show(max)
        )));
    }
    let (fps, key) = (s.number("fps"), s.number("key") as u64);
    Ok(SourceKind::Video { fps, min, max, key, key_size: s.number("key-size") })
}
fn web(s: &Settings) -> Result<SourceKind, SpecError> {
    let (rate, mean, shape) = (s.number("rate"), s.number("mean"), s.number("shape"));
    Ok(SourceKind::Web { rate, mean, shape })
}

impl SourceSpec {
    /// Whether it always has something to send.
    pub fn is_endless(&self) -> bool {
        self.kind == SourceKind::Bulk
    }
    /// Whether it is one file.
    pub fn is_transfer(&self) -> bool {
        matches!(self.kind, SourceKind::Transfer { .. })
    }
    /// Whether it is files that come to an end, each with its time.
    pub fn completes(&self) -> bool {
        matches!(self.kind, SourceKind::Transfer { .. } | SourceKind::Web { .. })
    }
    /// Data without end.
    pub fn bulk() -> SourceSpec {
        SourceSpec { text: "bulk".into(), kind: SourceKind::Bulk }
    }
    /// Reads `bulk`, `transfer(size=1MB)`, `cbr(rate=100kbit/s,size=200B,on=1s,off=2s)`, ….
    ///
    /// # Errors
    /// An unknown source, or a parameter that is unknown or out of range.
    pub fn read(spec: &Spec) -> Result<SourceSpec, SpecError> {
        let names: Vec<&str> = SOURCES.iter().map(|e| e.card.name).collect();
        let entry = SOURCES
            .iter()
            .find(|e| e.card.name == spec.name)
            .ok_or_else(|| SpecError::unknown("source", &spec.name, &names))?;
        let kind = (entry.read)(&Settings::read(spec, entry.card.params)?)?;
        Ok(SourceSpec { text: spec.to_string(), kind })
    }
    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it would send if nothing held it back, in application bit/s: infinite for `bulk`, and
    /// `None` where it is not constant.
    pub fn demand_bps(&self) -> Option<f64> {
        match self.kind {
            SourceKind::Bulk => Some(f64::INFINITY),
            SourceKind::Cbr { gap, bytes, on, off } if on <= 0.0 || off <= 0.0 => {
                Some(bytes as f64 * 8.0 / gap.as_secs_f64())
            }
            _ => None,
        }
    }

    /// For `web`: the transfers (start, bytes) between two times. `None` for other sources.
    pub(crate) fn transfers(
        &self,
        from: Time,
        until: Time,
        most: usize,
        stream: &mut Stream,
    ) -> Option<Vec<(Time, u64)>> {
        let SourceKind::Web { rate, mean, shape } = self.kind else { return None };
        let smallest = mean * (shape - 1.0) / shape;
        let (mut out, mut at) = (Vec::new(), from);
        loop {
            at += Duration::from_secs_f64(stream.exponential(1.0 / rate));
            if at >= until || out.len() > most {
                return Some(out);
            }
            out.push((at, (stream.pareto(shape, smallest) as u64).max(1)));
        }
    }

    /// A running source for one flow; `stream` is its own luck.
    pub(crate) fn start(&self, stream: Stream) -> Source {
        Source { kind: self.kind, stream, on_until: Time::ZERO, frame: 0 }
    }
}

/// A running source.
#[derive(Debug)]
pub(crate) struct Source {
    kind: SourceKind,
    stream: Stream,
    on_until: Time,
    frame: u64,
}

impl Source {
    /// One file of so many bytes.
    pub(crate) fn transfer(bytes: u64) -> Source {
        let kind = SourceKind::Transfer { bytes };
        Source {
            kind,
            stream: narrows_base::Luck::seed(0).stream(),
            on_until: Time::ZERO,
            frame: 0,
        }
    }
    /// Whether it hands over everything at its first write.
    pub(crate) fn is_finite(&self) -> bool {
        matches!(self.kind, SourceKind::Transfer { .. })
    }
    /// The application's turn at `now`: bytes to hand over, and when its next turn is. `allowed`
    /// tells the application bits per second that the transport allows at present.
    pub(crate) fn write(&mut self, now: Time, allowed: impl FnOnce() -> f64) -> (u64, Time) {
        match self.kind {
            SourceKind::Bulk | SourceKind::Web { .. } => (u64::MAX, Time::NEVER),
            SourceKind::Transfer { bytes } => (bytes, Time::NEVER),
            SourceKind::Telnet { bytes, interval } => {
                let gap = Duration::from_secs_f64(self.stream.exponential(interval));
                (bytes, now + gap.max(Duration::from_nanos(1)))
            }
            SourceKind::Video { fps, min, max, key, key_size } => {
                // The mean over a group of frames is the rate, however large its key frame.
                let share = if key == 0 {
                    1.0
                } else {
                    let usual = key as f64 / (key as f64 - 1.0 + key_size);
                    if self.frame.is_multiple_of(key) { usual * key_size } else { usual }
                };
                self.frame += 1;
                let bytes = allowed().clamp(min, max) * share / fps / 8.0;
                (bytes.max(1.0) as u64, now + Duration::from_secs_f64(1.0 / fps))
            }
            SourceKind::Cbr { gap, bytes, on, off } => {
                let next = now + gap;
                if on <= 0.0 || off <= 0.0 {
                    return (bytes, next);
                }
                if self.on_until == Time::ZERO {
                    self.on_until = now + Duration::from_secs_f64(self.stream.exponential(on));
                }
                if next < self.on_until {
                    return (bytes, next);
                }
                let resume = next + Duration::from_secs_f64(self.stream.exponential(off));
                self.on_until = resume + Duration::from_secs_f64(self.stream.exponential(on));
                (bytes, resume)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Luck;

    fn stream() -> Stream {
        Luck::seed(4).named("source").stream()
    }
    fn read(text: &str) -> SourceSpec {
        SourceSpec::read(&Spec::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_constant_rate_source_keeps_its_mean_rate() {
        for (text, expected) in [
            ("cbr(rate=80kbit/s,size=100B)", 80e3),
            ("cbr(rate=80kbit/s,size=100B,on=1s,off=3s)", 20e3),
        ] {
            let mut s = read(text).start(stream());
            let (mut now, mut bytes) = (Time::ZERO, 0);
            while now < Time::from_secs_f64(20_000.0) {
                let (b, next) = s.write(now, || 0.0);
                bytes += b;
                now = next;
            }
            let rate = bytes as f64 * 8.0 / now.as_secs_f64();
            assert!((rate / expected - 1.0).abs() < 0.06, "{text}: {rate}");
        }
    }

    #[test]
    fn video_follows_the_allowance_between_its_bounds() {
        let text = "video(fps=20,min=80kbit/s,max=800kbit/s,key=10,key-size=5)";
        for (allowed, expected) in [(1e3, 80e3), (400e3, 400e3), (1e9, 800e3)] {
            let mut s = read(text).start(stream());
            let frames: Vec<u64> = (0..100).map(|_| s.write(Time::ZERO, || allowed).0).collect();
            assert_eq!(s.write(Time::ZERO, || allowed).1, Time::ZERO + Duration::from_millis(50));
            let rate = frames.iter().sum::<u64>() as f64 * 8.0 / 5.0;
            assert!((rate / expected - 1.0).abs() < 0.01, "{rate} for {allowed}");
            assert!(frames[0].abs_diff(5 * frames[1]) <= 5, "a key frame is five others");
        }
        let spec = Spec::parse("video(min=2mbit/s,max=1mbit/s)").unwrap();
        assert!(SourceSpec::read(&spec).unwrap_err().to_string().contains("above max"));
    }

    #[test]
    fn web_transfers_have_their_rate_and_mean() {
        let until = Time::from_secs_f64(50_000.0);
        let t = read("web(rate=4,mean=10kB,shape=2.5)")
            .transfers(Time::ZERO, until, usize::MAX, &mut stream())
            .unwrap();
        assert!((t.len() as f64 / 200_000.0 - 1.0).abs() < 0.02, "{}", t.len());
        let mean = t.iter().map(|x| x.1 as f64).sum::<f64>() / t.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.05, "{mean}");
    }
}
