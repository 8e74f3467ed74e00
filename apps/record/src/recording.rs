//! The description of a recording, and its contents at the end.

use narrows_lab::outcome::Outcome;
use narrows_transport::connection::Stats;
use std::path::{Path, PathBuf};

/// Connections of which events and series are kept; datagrams are kept of all.
pub const MAX_CONNECTIONS: usize = 64;

/// The command and the path that are recorded.
#[derive(Clone, Debug)]
pub struct RecordingDescription {
    /// `speed`, `get`, `put`, `serve`, `relay` or `link`.
    pub command: &'static str,
    /// The exact command line.
    pub command_line: String,
    /// Protocol, which selects the controller of this end.
    pub protocol: String,
    /// The path: an address, or a link's specification.
    pub link: String,
    /// For a relay or an emulated link: forward and reverse direction, described; else empty.
    pub ways: Vec<String>,
}

/// Files and results of a finished recording.
#[derive(Debug)]
pub struct Recording {
    /// Paths of all files.
    pub files: Vec<PathBuf>,
    /// Data of series and report.
    pub outcome: Outcome,
    /// Datagrams in the capture files.
    pub datagrams: u64,
    /// Connections that have a file of their own.
    pub connections: usize,
    /// Whether it is a link's: packets, and no connections.
    pub relay: bool,
    /// Last statistics of each connection.
    pub figures: Vec<Stats>,
}

impl Recording {
    /// One line for people.
    pub fn line(&self, folder: &Path) -> String {
        let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let datagrams = plural(self.datagrams, "datagram");
        let (what, events) = match self.relay {
            true => (datagrams, ""),
            false => {
                let connections = plural(self.connections as u64, "connection");
                (format!("{datagrams} and {connections}"), "connection-N.sqlog, ")
            }
        };
        let name = |file: &PathBuf| file.file_name().map(|n| n.to_string_lossy().into_owned());
        let captures = self.files.iter().filter_map(name).filter(|n| n.ends_with(".pcapng"));
        let mut line = format!(
            "recorded {what} into {}: {}, {events}series.parquet, summary.json, report.html",
            folder.display(),
            captures.collect::<Vec<_>>().join(", ")
        );
        for note in self.outcome.notes.iter().filter(|n| n.contains("not recorded")) {
            line += "; ";
            line += note;
        }
        line
    }
}
