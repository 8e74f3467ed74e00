//! The writer thread, and the state that it has at the end.

use super::captures::{Captures, cannot};
use super::link::RelayLinks;
use super::local_addresses::Ways;
use super::order::ReorderBuffer;
use super::qlog::{Beginning, QlogFile, wall};
use super::series::ConnectionSeries;
use super::tap::{Datagrams, RecordEvent, RecordedIpPacket, StatsSample, WriterQueue};
use crate::names;
use crate::recording::RecordingDescription;
use narrows_base::Time;
use narrows_net::relay::RelaySnapshot;
use narrows_net::tap::ConnectionOpened;
use narrows_scenario::capture_file::CapturedDatagram;
use narrows_scenario::output_file;
use narrows_transport::connection::{Closed, Stats};
use narrows_transport::endpoint::Handle;
use narrows_wire::header::{LONG, ShortHeader};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most packets kept for connections that have not been announced yet.
const MAX_EARLY: usize = 4096;

/// Addresses and capture file of one socket.
pub(super) struct RecordedEndpoint {
    pub name: &'static str,
    local: SocketAddr,
    zero: u64,
    ways: Ways,
    /// The number of its capture file.
    capture: usize,
    /// Seconds of its first and last datagram.
    pub span: Option<(f64, f64)>,
}

/// A connection of which all is kept.
pub(super) struct RecordedConnection {
    pub endpoint: usize,
    handle: Handle,
    events: Option<QlogFile<BufWriter<File>>>,
    /// Packets that the file no longer lists one by one.
    pub beyond: u64,
    pub series: ConnectionSeries,
}

/// A packet that arrived before its connection was announced.
struct EarlyPacket {
    endpoint: usize,
    at: f64,
    sent: bool,
    header: ShortHeader,
    length: usize,
}

/// Writes events to the files.
pub struct RecordWriter {
    pub(super) about: RecordingDescription,
    folder: PathBuf,
    /// Nanoseconds since 1970.
    start: u64,
    pub(super) captures: Captures,
    pub(super) order: ReorderBuffer,
    pub(super) ends: BTreeMap<usize, RecordedEndpoint>,
    pub(super) kept: Vec<RecordedConnection>,
    /// For a relay.
    pub(super) links: Option<RelayLinks>,
    /// By endpoint, direction and id in the header.
    ids: BTreeMap<(usize, bool, u32), usize>,
    early: VecDeque<EarlyPacket>,
}

impl RecordWriter {
    /// Opens the first capture file.
    pub fn new(folder: &Path, about: RecordingDescription) -> Result<RecordWriter, String> {
        let captures = Captures::new(folder)?;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(RecordWriter {
            about,
            folder: folder.to_path_buf(),
            start: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            captures,
            order: ReorderBuffer::default(),
            ends: BTreeMap::new(),
            kept: Vec::new(),
            links: None,
            ids: BTreeMap::new(),
            early: VecDeque::new(),
        })
    }

    /// Writes events until [`RecordEvent::End`].
    pub fn run(
        mut self,
        from: &Receiver<RecordEvent>,
        queue: &WriterQueue,
    ) -> Result<RecordWriter, String> {
        while let Ok(event) = from.recv() {
            queue.taken(&event);
            let now = Instant::now();
            match event {
                RecordEvent::End => break,
                RecordEvent::Endpoint(number, name, local, zero) => {
                    self.endpoint(number, name, local, zero)?;
                }
                event => self.add(event, now),
            }
            while let Some((at, event)) = self.order.due(now) {
                self.record(at, event)?;
            }
        }
        while let Some((at, event)) = self.order.next() {
            self.record(at, event)?;
        }
        for number in 0..self.kept.len() {
            self.end_events(number)?;
        }
        Ok(self)
    }

    /// Sorts an event in by time. Events of endpoints that were not announced are dropped.
    fn add(&mut self, event: RecordEvent, now: Instant) {
        let Some((endpoint, at)) = event.when() else { return };
        if let Some(end) = self.ends.get(&endpoint) {
            self.order.add(wall(end.zero, at), event, now);
        }
    }

    /// Writes an event with its time in nanoseconds since 1970.
    fn record(&mut self, at: u64, event: RecordEvent) -> Result<(), String> {
        match event {
            RecordEvent::Datagrams(endpoint, d) => self.datagrams(endpoint, at, &d),
            RecordEvent::Packet(end, packet) => self.packet(end, at, &packet),
            RecordEvent::ConnectionOpened(endpoint, _, opened) => {
                self.opened(endpoint, at, &opened)
            }
            RecordEvent::Figures(endpoint, handle, f) => self.figures(endpoint, at, handle, &f),
            RecordEvent::RelaySnapshot(endpoint, look, last) => {
                self.look(endpoint, at, &look, last);
                Ok(())
            }
            RecordEvent::Closed(endpoint, _, handle, stats, why) => {
                self.closed(endpoint, at, handle, stats.as_ref(), &why)
            }
            RecordEvent::Endpoint(..) | RecordEvent::End => Ok(()),
        }
    }

    fn endpoint(
        &mut self,
        number: usize,
        name: &'static str,
        local: SocketAddr,
        zero: u64,
    ) -> Result<(), String> {
        let capture = self.captures.of(name)?;
        let end =
            RecordedEndpoint { name, local, zero, ways: Ways::default(), capture, span: None };
        self.ends.insert(number, end);
        Ok(())
    }

    /// Seconds since the recording's start.
    fn seconds(&self, at: u64) -> f64 {
        at.saturating_sub(self.start) as f64 * 1e-9
    }

    fn datagrams(&mut self, endpoint: usize, at: u64, d: &Datagrams) -> Result<(), String> {
        let seconds = self.seconds(at);
        let Some(end) = self.ends.get_mut(&endpoint) else { return Ok(()) };
        let local = match d.local {
            // If a relay is bound to all addresses, its own address is found as an endpoint's is.
            Some(own) => end.ways.local(own, d.peer),
            None => end.ways.local(end.local, d.peer),
        };
        let (from, to) = if d.sent { (local, d.peer) } else { (d.peer, local) };
        let capture = end.capture;
        let first = end.span.map_or(seconds, |s| s.0);
        end.span = Some((first, seconds.max(first)));
        let segments: &mut dyn Iterator<Item = &[u8]> = match d.bytes.len() {
            0 => &mut std::iter::once(&[][..]),
            _ => &mut d.bytes.chunks(d.segment.max(1)),
        };
        for payload in segments {
            self.captures.add(capture, CapturedDatagram { at, from, to, ecn: d.ecn, payload })?;
            // A relay cannot attribute its packets to connections.
            if d.local.is_some() || payload.first().is_none_or(|first| first & LONG != 0) {
                continue;
            }
            let Ok(header) = ShortHeader::read(payload) else { continue };
            let sent = d.sent;
            let length = payload.len();
            match self.ids.get(&(endpoint, sent, header.connection.0)) {
                Some(number) => {
                    let number = *number;
                    self.write(number, |e| e.packet(seconds * 1e3, sent, &header, length))?;
                }
                None => {
                    if self.early.len() >= MAX_EARLY {
                        self.early.pop_front();
                    }
                    self.early.push_back(EarlyPacket {
                        endpoint,
                        at: seconds,
                        sent,
                        header,
                        length,
                    });
                }
            }
        }
        Ok(())
    }

    fn packet(&mut self, number: usize, at: u64, packet: &RecordedIpPacket) -> Result<(), String> {
        let seconds = self.seconds(at);
        let Some(end) = self.ends.get_mut(&number) else { return Ok(()) };
        let first = end.span.map_or(seconds, |s| s.0);
        end.span = Some((first, seconds.max(first)));
        self.captures.add_packet(end.capture, at, &packet.bytes)
    }

    fn opened(
        &mut self,
        endpoint: usize,
        at: u64,
        opened: &ConnectionOpened,
    ) -> Result<(), String> {
        let at = self.seconds(at);
        let Some(end) = self.ends.get_mut(&endpoint) else { return Ok(()) };
        let local = end.ways.local(end.local, opened.remote);
        let number = self.kept.len();
        let path = names::events(&self.folder, number + 1);
        let beginning = Beginning {
            title: &self.about.command_line,
            name: end.name,
            protocol: &self.about.protocol,
            opened,
            start: self.start,
        };
        let events = output_file::create(&path)
            .and_then(|file| QlogFile::new(BufWriter::new(file), &beginning))
            .map_err(|e| cannot(&path, &e))?;
        let series = ConnectionSeries::new(at);
        let handle = opened.handle;
        self.kept.push(RecordedConnection {
            endpoint,
            handle,
            events: Some(events),
            beyond: 0,
            series,
        });
        self.ids.insert((endpoint, false, opened.id.0), number);
        self.ids.insert((endpoint, true, opened.peer_id.0), number);
        let is_own = |p: &EarlyPacket| {
            self.ids.get(&(p.endpoint, p.sent, p.header.connection.0)) == Some(&number)
        };
        let early = std::mem::take(&mut self.early);
        let (own, others): (VecDeque<_>, _) = early.into_iter().partition(is_own);
        self.early = others;
        // The connection began with its first packet at the latest, before its keys were known.
        let began = own.front().map_or(at, |p| p.at.min(at));
        self.write(number, |e| e.opened(began * 1e3, local, opened))?;
        for p in own {
            self.write(number, |e| e.packet(p.at * 1e3, p.sent, &p.header, p.length))?;
        }
        Ok(())
    }

    fn figures(
        &mut self,
        endpoint: usize,
        at: u64,
        handle: Handle,
        f: &StatsSample,
    ) -> Result<(), String> {
        let Some((number, at)) = self.find(endpoint, handle, at) else { return Ok(()) };
        if let Some(kept) = self.kept.get_mut(number).filter(|k| k.events.is_some()) {
            kept.series.add(at, &f.stats, &f.watched, false);
        }
        self.write(number, |e| e.figures(at * 1e3, &f.stats))
    }

    fn look(&mut self, endpoint: usize, at: u64, look: &RelaySnapshot, last: bool) {
        let Some(zero) = self.ends.get(&endpoint).map(|e| e.zero) else { return };
        // The relay's clock began with it.
        let at = self.seconds(at);
        let begun = self.seconds(wall(zero, Time::ZERO));
        self.links.get_or_insert_with(|| RelayLinks::new(begun)).add(at, look, last);
    }

    fn closed(
        &mut self,
        endpoint: usize,
        at: u64,
        handle: Handle,
        stats: Option<&Stats>,
        why: &Closed,
    ) -> Result<(), String> {
        let Some((number, at)) = self.find(endpoint, handle, at) else { return Ok(()) };
        if let (Some(kept), Some(stats)) = (self.kept.get_mut(number), stats) {
            kept.series.add(at, stats, &[], true);
        }
        self.write(number, |e| {
            stats.map_or(Ok(()), |s| e.figures(at * 1e3, s))?;
            e.closed(at * 1e3, why)
        })
    }

    fn find(&self, endpoint: usize, handle: Handle, at: u64) -> Option<(usize, f64)> {
        let mine = |k: &RecordedConnection| k.endpoint == endpoint && k.handle == handle;
        let number = self.kept.iter().position(mine)?;
        Some((number, self.seconds(at)))
    }

    fn write(
        &mut self,
        number: usize,
        what: impl FnOnce(&mut QlogFile<BufWriter<File>>) -> io::Result<()>,
    ) -> Result<(), String> {
        let kept = self.kept.get_mut(number);
        let Some(events) = kept.and_then(|k| k.events.as_mut()) else { return Ok(()) };
        what(events).map_err(|e| cannot(&names::events(&self.folder, number + 1), &e))
    }

    fn end_events(&mut self, number: usize) -> Result<(), String> {
        self.write(number, QlogFile::flush)?;
        if let Some(kept) = self.kept.get_mut(number) {
            kept.beyond = kept.events.take().map_or(0, |e| e.beyond);
        }
        Ok(())
    }
}
