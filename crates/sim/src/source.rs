//! Traffic sources: what applications hand to their transport, and when. The contract, the list and
//! the reading of specifications; each source has a file of its own in `source/`.

mod bulk;
mod cbr;
mod telnet;
pub(crate) mod transfer;
mod video;
mod web;

use narrows_base::descriptor::ParamKind;
use narrows_base::list::{List, Listed};
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomStream, Settings, Spec, SpecError, Time};

/// An application that writes into one connection.
pub trait Source: std::fmt::Debug + Send {
    /// The application's turn at `now`: bytes to hand over, and when its next turn is, later than `now`
    /// ([`Time::NEVER`] if there is none). `allowed_bps` tells what the transport allows at present.
    fn write(&mut self, now: Time, allowed_bps: &dyn Fn() -> f64) -> (u64, Time);
}

/// Starts a source for one flow, with a random stream of its own.
pub type StartSource = fn(&Settings, RandomStream) -> Box<dyn Source>;
/// Transfers from a time on, in the order of their starts: when, and how many bytes.
pub type StartTransfers =
    fn(&Settings, Time, RandomStream) -> Box<dyn Iterator<Item = (Time, u64)>>;

/// How a source uses connections, and how it is started.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Always has something to send: its first write is `u64::MAX`.
    Endless(StartSource),
    /// One file, handed over at the first write.
    Transfer(StartSource),
    /// Writes now and then, without end.
    Ongoing(StartSource),
    /// Files, each over a connection of its own.
    Transfers(StartTransfers),
}

/// A source: its descriptor, and how it is started.
#[derive(Clone, Copy, Debug)]
pub struct SourceEntry {
    /// What it says of itself.
    pub descriptor: &'static Descriptor,
    /// How it uses connections.
    pub pattern: Pattern,
    /// Application bit/s that it would send if nothing held it back: infinite where it always has
    /// something to send, `None` where that is not constant.
    pub demand_bps: fn(&Settings) -> Option<f64>,
    /// Whether these parameters go together; each alone is in the range that the descriptor gives.
    pub check: fn(&Settings) -> Result<(), SpecError>,
}

impl SourceEntry {
    /// One without a constant rate, whose parameters always go together.
    pub const fn new(descriptor: &'static Descriptor, pattern: Pattern) -> SourceEntry {
        SourceEntry { descriptor, pattern, demand_bps: |_| None, check: |_| Ok(()) }
    }
}

impl Listed for SourceEntry {
    fn name(&self) -> &'static str {
        self.descriptor.name
    }
}

/// All sources.
pub static SOURCES: List<SourceEntry> = List::new(
    "source",
    &[bulk::ENTRY, transfer::ENTRY, telnet::ENTRY, cbr::ENTRY, video::ENTRY, web::ENTRY],
);

const fn number(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    min: f64,
    max: f64,
    default: f64,
    origin: &'static str,
) -> Param {
    Param { name, help, kind: ParamKind::Number { unit, min, max, default }, origin }
}

/// A source that has been read and checked.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    text: String,
    entry: &'static SourceEntry,
    settings: Settings,
}

impl PartialEq for SourceSpec {
    fn eq(&self, other: &SourceSpec) -> bool {
        // The text begins with the entry's name.
        self.text == other.text && self.settings == other.settings
    }
}

impl SourceSpec {
    /// Whether it always has something to send.
    pub fn is_endless(&self) -> bool {
        matches!(self.entry.pattern, Pattern::Endless(_))
    }
    /// Whether it is one file.
    pub fn is_transfer(&self) -> bool {
        matches!(self.entry.pattern, Pattern::Transfer(_))
    }
    /// Whether it is files that come to an end, each with its time.
    pub fn completes(&self) -> bool {
        matches!(self.entry.pattern, Pattern::Transfer(_) | Pattern::Transfers(_))
    }
    /// Data without end.
    pub fn bulk() -> SourceSpec {
        let entry = &bulk::ENTRY;
        SourceSpec {
            text: entry.descriptor.name.into(),
            entry,
            settings: Settings::defaults(entry.descriptor.params),
        }
    }
    /// Reads `bulk`, `transfer(size=1MB)`, `cbr(rate=100kbit/s,size=200B,on=1s,off=2s)`, ….
    ///
    /// # Errors
    /// An unknown source, or a parameter that is unknown or out of range.
    pub fn read(spec: &Spec) -> Result<SourceSpec, SpecError> {
        let entry = SOURCES.find(&spec.name)?;
        let settings = Settings::read(spec, entry.descriptor.params)?;
        (entry.check)(&settings)?;
        Ok(SourceSpec { text: spec.to_string(), entry, settings })
    }
    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it would send if nothing held it back, in application bit/s: infinite for `bulk`, and
    /// `None` where it is not constant.
    pub fn demand_bps(&self) -> Option<f64> {
        (self.entry.demand_bps)(&self.settings)
    }

    /// For one that opens connections: its transfers (start, bytes) from a time on. `None` for others.
    pub(crate) fn transfers(
        &self,
        from: Time,
        stream: RandomStream,
    ) -> Option<Box<dyn Iterator<Item = (Time, u64)>>> {
        match self.entry.pattern {
            Pattern::Transfers(start) => Some(start(&self.settings, from, stream)),
            _ => None,
        }
    }

    /// A running source for one flow; `stream` is its own. `None` for one that opens connections.
    pub(crate) fn start(&self, stream: RandomStream) -> Option<Box<dyn Source>> {
        match self.entry.pattern {
            Pattern::Endless(start) | Pattern::Transfer(start) | Pattern::Ongoing(start) => {
                Some(start(&self.settings, stream))
            }
            Pattern::Transfers(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::{Duration, RandomKey};

    fn stream() -> RandomStream {
        RandomKey::from_seed(4).named("source").stream()
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
            let mut s = read(text).start(stream()).unwrap();
            let (mut now, mut bytes) = (Time::ZERO, 0);
            while now < Time::from_secs_f64(20_000.0) {
                let (b, next) = s.write(now, &|| 0.0);
                bytes += b;
                now = next;
            }
            let rate = bytes as f64 * 8.0 / now.as_secs_f64();
            assert!((rate / expected - 1.0).abs() < 0.06, "{text}: {rate}");
        }
    }

    #[test]
    fn video_follows_the_send_limits_between_its_bounds() {
        let text = "video(fps=20,min=80kbit/s,max=800kbit/s,key=10,key-size=5)";
        for (allowed, expected) in [(1e3, 80e3), (400e3, 400e3), (1e9, 800e3)] {
            let mut s = read(text).start(stream()).unwrap();
            let frames: Vec<u64> = (0..100).map(|_| s.write(Time::ZERO, &|| allowed).0).collect();
            assert_eq!(s.write(Time::ZERO, &|| allowed).1, Time::ZERO + Duration::from_millis(50));
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
        let t: Vec<(Time, u64)> = read("web(rate=4,mean=10kB,shape=2.5)")
            .transfers(Time::ZERO, stream())
            .unwrap()
            .take_while(|t| t.0 < until)
            .collect();
        assert!((t.len() as f64 / 200_000.0 - 1.0).abs() < 0.02, "{}", t.len());
        let mean = t.iter().map(|x| x.1 as f64).sum::<f64>() / t.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.05, "{mean}");
    }
}
