//! The writer thread, and the state that it has at the end.

use super::link::Links;
use super::packets::{Datagram, Packets, Ways};
use super::qlog::{Beginning, Events, wall};
use super::series::Series;
use super::tap::{Datagrams, Figures, IpPacket, Queue, RecordEvent};
use crate::names;
use crate::recording::About;
use narrows_base::Time;
use narrows_net::relay::RelaySnapshot;
use narrows_net::tap::ConnectionOpened;
use narrows_scenario::text_file::plain;
use narrows_transport::connection::{Closed, Stats};
use narrows_transport::endpoint::Handle;
use narrows_wire::header::{Header, LONG};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::{SystemTime, UNIX_EPOCH};

/// Packets of connections that are not known yet, at most.
const MAX_EARLY: usize = 4096;
/// Bytes that are written together.
const BUFFER: usize = 1 << 20;

/// An endpoint.
pub(super) struct End {
    pub name: &'static str,
    local: SocketAddr,
    zero: u64,
    ways: Ways,
    /// Seconds of its first and last datagram.
    pub span: Option<(f64, f64)>,
}

/// A connection of which all is kept.
pub(super) struct Kept {
    pub endpoint: usize,
    handle: Handle,
    events: Option<Events<BufWriter<File>>>,
    /// Packets that its file no longer tells one by one.
    pub beyond: u64,
    pub series: Series,
}

/// A packet that came before its connection was known.
struct Early {
    endpoint: usize,
    at: f64,
    sent: bool,
    header: Header,
    length: usize,
}

/// Writes.
pub struct Writer {
    pub(super) about: About,
    folder: PathBuf,
    /// Nanoseconds since 1970.
    start: u64,
    pub(super) packets: Packets<BufWriter<File>>,
    pub(super) ends: BTreeMap<usize, End>,
    pub(super) kept: Vec<Kept>,
    /// Of a relay.
    pub(super) links: Option<Links>,
    /// By endpoint, direction and id in the header.
    ids: BTreeMap<(usize, bool, u32), usize>,
    early: VecDeque<Early>,
}

impl Writer {
    /// Opens the capture file.
    pub fn new(folder: &Path, about: About) -> Result<Writer, String> {
        let path = folder.join(names::PACKETS);
        let packets = File::create(&path)
            .and_then(|file| Packets::new(BufWriter::with_capacity(BUFFER, file)))
            .map_err(|e| cannot(&path, &e))?;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Writer {
            about,
            folder: folder.to_path_buf(),
            start: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            packets,
            ends: BTreeMap::new(),
            kept: Vec::new(),
            links: None,
            ids: BTreeMap::new(),
            early: VecDeque::new(),
        })
    }

    /// Writes until the end is told.
    pub fn run(mut self, from: &Receiver<RecordEvent>, queue: &Queue) -> Result<Writer, String> {
        while let Ok(event) = from.recv() {
            queue.taken(&event);
            match event {
                RecordEvent::End => break,
                RecordEvent::Endpoint(number, name, local, zero) => {
                    self.endpoint(number, name, local, zero)?;
                }
                RecordEvent::Datagrams(endpoint, d) => self.datagrams(endpoint, &d)?,
                RecordEvent::Packet(end, packet) => self.packet(end, &packet)?,
                RecordEvent::ConnectionOpened(endpoint, at, opened) => {
                    self.opened(endpoint, at, &opened)?
                }
                RecordEvent::Figures(endpoint, handle, f) => self.figures(endpoint, handle, &f)?,
                RecordEvent::RelaySnapshot(endpoint, look, last) => {
                    self.look(endpoint, &look, last)
                }
                RecordEvent::Closed(endpoint, at, handle, stats, why) => {
                    self.closed(endpoint, at, handle, stats.as_ref(), &why)?;
                }
            }
        }
        for number in 0..self.kept.len() {
            self.end_events(number)?;
        }
        Ok(self)
    }

    /// Ends the capture file: how many datagrams are in it and how many found no room.
    pub(super) fn end_packets(self) -> Result<(), String> {
        let path = self.folder.join(names::PACKETS);
        self.packets.into_inner().flush().map_err(|e| cannot(&path, &e))
    }

    fn endpoint(
        &mut self,
        number: usize,
        name: &'static str,
        local: SocketAddr,
        zero: u64,
    ) -> Result<(), String> {
        // Interfaces are numbered as they come, and endpoints as they are bound.
        for missing in self.ends.len()..=number {
            let done = self.packets.interface(name);
            done.map_err(|e| cannot(&self.folder.join(names::PACKETS), &e))?;
            let end = End { name, local, zero, ways: Ways::default(), span: None };
            self.ends.insert(missing, end);
        }
        if let Some(end) = self.ends.get_mut(&number) {
            (end.name, end.local, end.zero) = (name, local, zero);
        }
        Ok(())
    }

    /// Seconds since the recording's start.
    fn seconds(start: u64, zero: u64, at: Time) -> f64 {
        wall(zero, at).saturating_sub(start) as f64 * 1e-9
    }

    fn datagrams(&mut self, endpoint: usize, d: &Datagrams) -> Result<(), String> {
        let Some(end) = self.ends.get_mut(&endpoint) else { return Ok(()) };
        let local = match d.local {
            // Bound to all addresses, a relay's own is known no better than an endpoint's.
            Some(own) => end.ways.local(own, d.peer),
            None => end.ways.local(end.local, d.peer),
        };
        let (from, to) = if d.sent { (local, d.peer) } else { (d.peer, local) };
        let (at, seconds) = (wall(end.zero, d.at), Writer::seconds(self.start, end.zero, d.at));
        let first = end.span.map_or(seconds, |s| s.0);
        end.span = Some((first, seconds.max(first)));
        let segments: &mut dyn Iterator<Item = &[u8]> = match d.bytes.len() {
            0 => &mut std::iter::once(&[][..]),
            _ => &mut d.bytes.chunks(d.segment.max(1)),
        };
        for payload in segments {
            let datagram = Datagram { interface: endpoint, at, from, to, ecn: d.ecn, payload };
            let done = self.packets.add(datagram);
            done.map_err(|e| cannot(&self.folder.join(names::PACKETS), &e))?;
            // Whose packets pass a relay, it does not know.
            if d.local.is_some() || payload.first().is_none_or(|first| first & LONG != 0) {
                continue;
            }
            let Ok(header) = Header::read(payload) else { continue };
            let (sent, length) = (d.sent, payload.len());
            match self.ids.get(&(endpoint, sent, header.connection.0)) {
                Some(number) => {
                    let number = *number;
                    self.write(number, |e| e.packet(seconds * 1e3, sent, &header, length))?;
                }
                None => {
                    if self.early.len() >= MAX_EARLY {
                        self.early.pop_front();
                    }
                    self.early.push_back(Early { endpoint, at: seconds, sent, header, length });
                }
            }
        }
        Ok(())
    }

    fn packet(&mut self, number: usize, packet: &IpPacket) -> Result<(), String> {
        let Some(end) = self.ends.get_mut(&number) else { return Ok(()) };
        let seconds = Writer::seconds(self.start, end.zero, packet.at);
        let first = end.span.map_or(seconds, |s| s.0);
        end.span = Some((first, seconds.max(first)));
        let done = self.packets.add_packet(number, wall(end.zero, packet.at), &packet.bytes);
        done.map_err(|e| cannot(&self.folder.join(names::PACKETS), &e))
    }

    fn opened(
        &mut self,
        endpoint: usize,
        at: Time,
        opened: &ConnectionOpened,
    ) -> Result<(), String> {
        let Some(end) = self.ends.get_mut(&endpoint) else { return Ok(()) };
        let local = end.ways.local(end.local, opened.remote);
        let at = Writer::seconds(self.start, end.zero, at);
        let number = self.kept.len();
        let path = names::events(&self.folder, number + 1);
        let beginning = Beginning {
            title: &self.about.command_line,
            name: end.name,
            protocol: &self.about.protocol,
            opened,
            start: self.start,
        };
        let events = File::create(&path)
            .and_then(|file| Events::new(BufWriter::new(file), &beginning))
            .map_err(|e| cannot(&path, &e))?;
        let series = Series::new(at);
        let handle = opened.handle;
        self.kept.push(Kept { endpoint, handle, events: Some(events), beyond: 0, series });
        self.ids.insert((endpoint, false, opened.id.0), number);
        self.ids.insert((endpoint, true, opened.peer_id.0), number);
        self.write(number, |e| e.opened(at * 1e3, local, opened))?;
        let early = std::mem::take(&mut self.early);
        for p in early {
            if self.ids.get(&(p.endpoint, p.sent, p.header.connection.0)) == Some(&number) {
                self.write(number, |e| e.packet(p.at * 1e3, p.sent, &p.header, p.length))?;
            } else {
                self.early.push_back(p);
            }
        }
        Ok(())
    }

    fn figures(&mut self, endpoint: usize, handle: Handle, f: &Figures) -> Result<(), String> {
        let Some((number, at)) = self.find(endpoint, handle, f.at) else { return Ok(()) };
        if let Some(kept) = self.kept.get_mut(number).filter(|k| k.events.is_some()) {
            kept.series.add(at, &f.stats, &f.watched, false);
        }
        self.write(number, |e| e.figures(at * 1e3, &f.stats))
    }

    fn look(&mut self, endpoint: usize, look: &RelaySnapshot, last: bool) {
        let Some(zero) = self.ends.get(&endpoint).map(|e| e.zero) else { return };
        let at = Writer::seconds(self.start, zero, look.at);
        // The relay's clock began with it.
        let begun = Writer::seconds(self.start, zero, Time::ZERO);
        self.links.get_or_insert_with(|| Links::new(begun)).add(at, look, last);
    }

    fn closed(
        &mut self,
        endpoint: usize,
        at: Time,
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

    fn find(&self, endpoint: usize, handle: Handle, at: Time) -> Option<(usize, f64)> {
        let zero = self.ends.get(&endpoint)?.zero;
        let mine = |k: &Kept| k.endpoint == endpoint && k.handle == handle;
        let number = self.kept.iter().position(mine)?;
        Some((number, Writer::seconds(self.start, zero, at)))
    }

    fn write(
        &mut self,
        number: usize,
        what: impl FnOnce(&mut Events<BufWriter<File>>) -> io::Result<()>,
    ) -> Result<(), String> {
        let kept = self.kept.get_mut(number);
        let Some(events) = kept.and_then(|k| k.events.as_mut()) else { return Ok(()) };
        what(events).map_err(|e| cannot(&names::events(&self.folder, number + 1), &e))
    }

    fn end_events(&mut self, number: usize) -> Result<(), String> {
        self.write(number, Events::flush)?;
        if let Some(kept) = self.kept.get_mut(number) {
            kept.beyond = kept.events.take().map_or(0, |e| e.beyond);
        }
        Ok(())
    }
}

fn cannot(path: &Path, e: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), plain(e))
}
