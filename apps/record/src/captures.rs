//! The capture files, one for each end: `packets.pcapng` of the first, `packets-NAME.pcapng` of any other. Endpoints that
//! follow each other under one name, as a client that connects again, share a file.

use crate::names;
use narrows_scenario::capture_file::{CaptureFile, CapturedDatagram};
use narrows_scenario::output_file;
use narrows_scenario::text_file::plain;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Bytes that are written together.
const BUFFER: usize = 1 << 20;

/// Capture file of one end.
struct Capture {
    name: &'static str,
    path: PathBuf,
    packets: CaptureFile<BufWriter<File>>,
}

/// The capture files of all ends.
pub struct Captures {
    folder: PathBuf,
    /// The file of the first end, before that end is added.
    first: Option<File>,
    files: Vec<Capture>,
}

impl Captures {
    /// Makes the first end's file.
    pub fn new(folder: &Path) -> Result<Captures, String> {
        let path = names::packets(folder);
        let first = output_file::create(&path).map_err(|e| cannot(&path, &e))?;
        Ok(Captures { folder: folder.to_path_buf(), first: Some(first), files: Vec::new() })
    }

    /// The number of the file of an end of this name.
    pub fn of(&mut self, name: &'static str) -> Result<usize, String> {
        if let Some(number) = self.files.iter().position(|c| c.name == name) {
            return Ok(number);
        }
        let path = match self.first {
            Some(_) => names::packets(&self.folder),
            None => names::packets_of(&self.folder, name),
        };
        let file = self.first.take().map_or_else(|| output_file::create(&path), Ok);
        let packets = file
            .and_then(|file| CaptureFile::new(BufWriter::with_capacity(BUFFER, file), name))
            .map_err(|e| cannot(&path, &e))?;
        self.files.push(Capture { name, path, packets });
        Ok(self.files.len() - 1)
    }

    /// Adds a datagram to a file.
    pub fn add(&mut self, number: usize, datagram: CapturedDatagram<'_>) -> Result<(), String> {
        self.write(number, |packets| packets.add(datagram))
    }

    /// Adds a packet that has its headers to a file; `at` is in nanoseconds since 1970.
    pub fn add_packet(&mut self, number: usize, at: u64, packet: &[u8]) -> Result<(), String> {
        self.write(number, |packets| packets.add_packet(at, packet))
    }

    fn write(
        &mut self,
        number: usize,
        write: impl FnOnce(&mut CaptureFile<BufWriter<File>>) -> io::Result<()>,
    ) -> Result<(), String> {
        let Some(capture) = self.files.get_mut(number) else { return Ok(()) };
        write(&mut capture.packets).map_err(|e| cannot(&capture.path, &e))
    }

    /// Packets written, and packets left out because a file was full.
    pub fn counts(&self) -> (u64, u64) {
        let all = self.files.iter().map(|c| (c.packets.written, c.packets.beyond));
        all.fold((0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1))
    }

    /// Closes the files and returns their paths. Without any end, the first file has no packets.
    pub fn finish(mut self) -> Result<Vec<PathBuf>, String> {
        if self.files.is_empty() {
            self.of("none")?;
        }
        let end = |c: Capture| {
            let done = c.packets.into_inner().flush();
            done.map_err(|e| cannot(&c.path, &e)).map(|()| c.path)
        };
        self.files.into_iter().map(end).collect()
    }
}

/// The message about a file that cannot be written.
pub fn cannot(path: &Path, e: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), plain(e))
}
