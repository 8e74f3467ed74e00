//! Traffic sources: the data that applications pass to the transport, and when. The list and the parser of
//! specifications; the traits are in `source/entry.rs`, and each source is in a file of its own in `source/`.

mod bulk;
mod cbr;
mod entry;
mod layers;
mod multicast;
mod telnet;
pub(crate) mod transfer;
mod video;
mod web;

pub use entry::{
    FrameSource, Pattern, Source, SourceEntry, StartFrames, StartSource, StartTransfers,
    TransportState,
};

use entry::{LATENCY, number};
use narrows_base::list::List;
use narrows_base::{RandomStream, Settings, Spec, SpecError, Time};

/// All sources.
pub static SOURCES: List<SourceEntry> = List::new(
    "source",
    &[
        bulk::ENTRY,
        transfer::ENTRY,
        telnet::ENTRY,
        cbr::ENTRY,
        video::ENTRY,
        layers::ENTRY,
        multicast::ENTRY,
        web::ENTRY,
    ],
);

/// A source that has been started.
#[derive(Debug)]
pub(crate) enum StartedSource {
    Bytes(Box<dyn Source>),
    Frames(Box<dyn FrameSource>),
}

/// The specification of a source, read and checked.
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
    /// Whether it always has data to send.
    pub fn is_endless(&self) -> bool {
        matches!(self.entry.pattern, Pattern::Endless(_))
    }
    /// Whether it is a single file.
    pub fn is_transfer(&self) -> bool {
        matches!(self.entry.pattern, Pattern::Transfer(_))
    }
    /// Whether it consists of files that complete, each with a completion time.
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
    /// The specification as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The application rate in bit/s without any limit: infinite for `bulk`, `None` if not constant.
    pub fn demand_bps(&self) -> Option<f64> {
        (self.entry.demand_bps)(&self.settings)
    }

    /// The session that receivers of a multicast need; `None` for all other sources.
    pub(crate) fn multicast(&self) -> Option<multicast::MulticastSession> {
        (self.entry.descriptor.name == multicast::NAME).then(|| multicast::session(&self.settings))
    }

    /// The transfers (start, bytes) from a given time on, for a source that opens connections;
    /// `None` for others.
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

    /// Starts the source for one flow with the random stream `stream`; `None` for one that opens
    /// connections.
    pub(crate) fn start(&self, stream: RandomStream) -> Option<StartedSource> {
        match self.entry.pattern {
            Pattern::Endless(start) | Pattern::Transfer(start) | Pattern::Ongoing(start) => {
                Some(StartedSource::Bytes(start(&self.settings, stream)))
            }
            Pattern::Frames(start) => Some(StartedSource::Frames(start(&self.settings, stream))),
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
            let Some(StartedSource::Bytes(mut s)) = read(text).start(stream()) else {
                panic!("{text}")
            };
            let mut now = Time::ZERO;
            let mut bytes = 0;
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
            let Some(StartedSource::Frames(mut s)) = read(text).start(stream()) else {
                panic!("{text}")
            };
            let state = TransportState {
                allowed_bps: allowed,
                unsent_bytes: 0,
                srtt: Duration::ZERO,
                payload_bytes: 1000,
            };
            let mut parts = Vec::new();
            for _ in 0..100 {
                let next = s.write(Time::ZERO, &state, &mut parts);
                assert_eq!(next, Time::ZERO + Duration::from_millis(50));
            }
            let frames: Vec<u64> = parts.iter().map(|p| u64::from(p.bytes)).collect();
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
