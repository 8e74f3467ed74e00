//! Files that a network writes while it runs: packet captures and qlog.

use crate::datagram::Ecn;
use crate::ids::NodeId;
use crate::network::Network;
use crate::observe::{Fate, NetworkEvent, Place};
use narrows_scenario::capture_file::{CaptureFile, CapturedDatagram};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Begins each record of a JSON text sequence (RFC 7464).
const SEPARATOR: char = '\u{1e}';
/// Bytes of a qlog file: 256 MiB, more than tools open.
const MAX_BYTES: usize = 256 << 20;

type Sink = BufWriter<Box<dyn Write + Send>>;

enum Format {
    Capture(NodeId, CaptureFile<Sink>),
    Qlog(Sink, usize),
}

struct State {
    format: Format,
    written: u64,
    omitted: u64,
    failed: Option<io::Error>,
    is_finished: bool,
}

impl State {
    fn add(&mut self, event: &NetworkEvent<'_>) {
        if self.failed.is_some() || self.is_finished {
            return;
        }
        match self.format.add(event) {
            Ok(Some(true)) => self.written += 1,
            Ok(Some(false)) => self.omitted += 1,
            Ok(None) => {}
            Err(error) => self.failed = Some(error),
        }
    }
}

impl Format {
    /// Writes an event. Returns whether the file had space; `None` if the event is not for this file.
    fn add(&mut self, event: &NetworkEvent<'_>) -> io::Result<Option<bool>> {
        match self {
            Format::Capture(host, file) => {
                let is_seen = matches!(event.fate, Fate::Sent | Fate::Delivered);
                if !is_seen || event.place != Place::Node(*host) {
                    return Ok(None);
                }
                let before = file.written;
                #[cfg(feature = "smoltcp")]
                if let Some(packet) = crate::ip_packet::of_datagram(event.datagram) {
                    let at = u64::try_from(event.at.as_nanos()).unwrap_or(u64::MAX);
                    file.add_packet(at, &packet)?;
                    return Ok(Some(file.written > before));
                }
                file.add(CapturedDatagram {
                    at: u64::try_from(event.at.as_nanos()).unwrap_or(u64::MAX),
                    from: event.datagram.source,
                    to: event.datagram.destination,
                    ecn: event.datagram.ecn.bits(),
                    payload: &event.datagram.payload,
                })?;
                Ok(Some(file.written > before))
            }
            Format::Qlog(_, bytes) if *bytes >= MAX_BYTES => Ok(Some(false)),
            Format::Qlog(sink, bytes) => {
                let record = record(event);
                *bytes += record.len();
                sink.write_all(record.as_bytes())?;
                Ok(Some(true))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Format::Capture(_, file) => file.flush(),
            Format::Qlog(sink, _) => sink.flush(),
        }
    }
}

/// An event as a record of qlog.
fn record(event: &NetworkEvent<'_>) -> String {
    let datagram = event.datagram;
    let length = datagram.payload.len();
    let ecn = match datagram.ecn {
        Ecn::NotEct => "Not-ECT",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ce => "CE",
    };
    let many = |name| {
        let counted = format!("\"count\":1,\"raw\":[{{\"length\":{length}}}],\"ecn\":[\"{ecn}\"]");
        format!("\"name\":\"transport:{name}\",\"data\":{{{counted}")
    };
    let one = |name| {
        let raw = format!("\"raw\":{{\"length\":{length}}},\"ecn\":\"{ecn}\"");
        format!("\"name\":\"{name}\",\"data\":{{{raw},\"trigger\":\"{}\"", event.fate.name())
    };
    let named = match event.fate {
        Fate::Sent => many("datagrams_sent"),
        Fate::Delivered => many("datagrams_received"),
        Fate::Marked => one("narrows:datagram_marked"),
        _ => one("transport:datagram_dropped"),
    };
    let place = match event.place {
        Place::Node(node) => format!("\"node\":{}", node.0),
        Place::Link(link) => format!("\"link\":{}", link.0),
    };
    // In milliseconds, to the nanosecond.
    let ms = event.at.as_nanos() / 1_000_000;
    let part = event.at.as_nanos() % 1_000_000;
    let source = datagram.source;
    let destination = datagram.destination;
    format!(
        "{SEPARATOR}{{\"time\":{ms}.{part:06},{named},{place},\"src\":\"{source}\",\"dst\":\"{destination}\"}}}}\n"
    )
}

/// Number of datagrams in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileCounts {
    /// Events or packets written.
    pub written: u64,
    /// Not written: the file was full (1 GiB of a capture, 256 MiB of qlog), or a payload longer than UDP allows.
    pub omitted: u64,
}

/// A file that a network writes. A network goes on if the file cannot be written.
#[must_use = "errors are returned by finish()"]
pub struct NetworkFile(Arc<Mutex<State>>);

impl NetworkFile {
    /// Writes the rest.
    ///
    /// # Errors
    /// The first error of the sink.
    pub fn finish(self) -> io::Result<FileCounts> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_finished = true;
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        state.format.flush()?;
        Ok(FileCounts { written: state.written, omitted: state.omitted })
    }
}

impl fmt::Debug for NetworkFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkFile")
    }
}

impl Network {
    /// Calls an observer with everything that happens to datagrams from now on.
    ///
    /// ```
    /// # use narrows_testnet::{Datagram, Fate, Network};
    /// # let mut network = Network::new(1);
    /// # let a = network.add_host(&["10.0.0.1".parse()?])?;
    /// # let b = network.add_host(&["10.0.0.2".parse()?])?;
    /// network.add_link(a, b, "8Mbit/s,10ms,mtu=1000B")?;
    /// network.observe(|event| {
    ///     assert!(matches!(event.fate, Fate::Sent | Fate::TooLarge));
    ///     println!("{:?}: {} bytes {}", event.at, event.datagram.payload.len(), event.fate.name());
    /// });
    /// # let start = network.start();
    /// network.send(start, a, Datagram::udp("10.0.0.1:1".parse()?, "10.0.0.2:2".parse()?, vec![0; 1200]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe(&mut self, observer: impl FnMut(&NetworkEvent<'_>) + Send + 'static) {
        self.add_observer(Box::new(observer));
    }

    /// Captures a host's datagrams as pcapng, for tcpdump and Wireshark: headers of IP and UDP are made, with ECN. The
    /// network starts on 1 January 1970. Options of IP and the datagram's own `header_bytes` are not shown.
    ///
    /// # Errors
    /// Those of the sink. Later ones are returned by [`NetworkFile::finish`].
    pub fn capture(
        &mut self,
        host: NodeId,
        to: impl Write + Send + 'static,
    ) -> io::Result<NetworkFile> {
        let sink: Sink = BufWriter::new(Box::new(to));
        let file = CaptureFile::new(sink, &format!("host {}", host.0))?;
        Ok(self.write_file(Format::Capture(host, file)))
    }

    /// Writes all events as qlog 0.3 in JSON text sequences (`.sqlog`), from the network's side: `datagrams_sent` and
    /// `datagrams_received` of hosts, `datagram_dropped` with a trigger.
    ///
    /// # Errors
    /// Those of the sink. Later ones are returned by [`NetworkFile::finish`].
    pub fn qlog(&mut self, to: impl Write + Send + 'static) -> io::Result<NetworkFile> {
        let mut sink: Sink = BufWriter::new(Box::new(to));
        let head = format!(
            "{SEPARATOR}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"narrows-testnet, seed {}\",\
             \"trace\":{{\"vantage_point\":{{\"name\":\"network\",\"type\":\"network\",\"flow\":\"client\"}},\
             \"common_fields\":{{\"time_format\":\"relative\",\"reference_time\":0,\"protocol_type\":[\"UDP\"]}}}}}}\n",
            self.seed()
        );
        sink.write_all(head.as_bytes())?;
        Ok(self.write_file(Format::Qlog(sink, head.len())))
    }

    fn write_file(&mut self, format: Format) -> NetworkFile {
        let state = State { format, written: 0, omitted: 0, failed: None, is_finished: false };
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        self.observe(move |event| shared.lock().unwrap_or_else(PoisonError::into_inner).add(event));
        NetworkFile(state)
    }
}
