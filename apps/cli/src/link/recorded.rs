//! `narrows link --record`: recordings of links.

use crate::failure::Failure;
use crate::record::{OpenRecording, RecordArgs};
use crate::relay::describe;
use narrows_emulator::{EmulatedLink, LinkObserver, LinkOptions, LinkSide, LinkTap, PassedPacket};
use narrows_net::relay::RelaySnapshot;
use narrows_record::{IpLinkRecord, ObservedLink};
use narrows_scenario::link_direction::LinkDirection;
use std::sync::Arc;

/// The recording of one link.
pub struct Recorded {
    recording: OpenRecording,
    record: Option<Arc<IpLinkRecord>>,
}

#[derive(Debug)]
struct LinkRecordTap(Arc<IpLinkRecord>);

impl LinkTap for LinkRecordTap {
    fn passed(&self, packet: &PassedPacket<'_>) {
        let end = usize::from(packet.end == LinkSide::B);
        self.0.passed(end, packet.at, packet.bytes);
    }
}

#[derive(Debug)]
struct RecordedLink(LinkObserver);

impl ObservedLink for RecordedLink {
    fn look(&self) -> RelaySnapshot {
        self.0.look()
    }
    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Recorded {
    /// Begins a recording, if `--record` is set, and adds its observer to the link's options. `below` is its folder if
    /// there are several links.
    pub fn begin(
        wanted: &RecordArgs,
        below: Option<&str>,
        options: &mut LinkOptions,
        ways: [&LinkDirection; 2],
    ) -> Result<Recorded, Failure> {
        let [there, back] = ways.map(describe);
        let recording = wanted.link(below, format!("{there}; back {back}"), vec![there, back])?;
        let record = recording.recorder().map(|r| Arc::new(r.ip_link(["a", "b"], options.clock)));
        options.tap =
            record.clone().map(|record| Arc::new(LinkRecordTap(record)) as Arc<dyn LinkTap>);
        Ok(Recorded { recording, record })
    }

    /// Begins to sample the queues of the running link.
    pub fn watch(&self, link: &EmulatedLink) {
        if let Some(record) = &self.record {
            record.watch(Box::new(RecordedLink(link.observer())));
        }
    }

    /// Writes the report after the link has ended.
    pub fn finish(self, done: Result<(), Failure>) -> Result<(), Failure> {
        drop(self.record);
        self.recording.finish(done)
    }
}
