//! Requests and frames. `docs/files.md` has the layouts.

use crate::error_code;
use crate::mode::Mode;
use crate::path::MAX_PATH;
use crate::wire::{Fields, put_text};
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;
use narrows_peers::error::{Error, shown};

/// Version of the requests and frames.
pub const VERSION: u8 = 3;
/// Oldest version that is still answered: without permissions.
pub const OLDEST_VERSION: u8 = 2;
/// First bytes of a request.
pub const MAGIC: [u8; 2] = *b"NF";
/// Most bytes of a request's body: a path and its parameters.
pub const MAX_REQUEST: usize = MAX_PATH + 256;
/// Most bytes of a frame's payload.
pub const MAX_FRAME: usize = 256 * 1024;

/// A prefix of a file that the requesting end already has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldPrefix {
    /// Length in bytes, from the beginning of the file.
    pub bytes: u64,
    /// BLAKE3 of exactly these bytes.
    pub hash: [u8; 32],
}

/// An end's hints about the path, and the controller that it sends with or requests from the peer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tuning {
    /// The path's rate, RTT and loss rate: bit/s, ns and 10^-9 in the message.
    pub path: PathHints,
    /// Controller, as in a specification; empty for the server's own.
    pub controller: String,
}

/// Marks an absent number.
const UNKNOWN: u64 = u64::MAX;

fn known(f: &mut Fields<'_>, max: u64) -> Result<Option<u64>, Error> {
    match f.u64()? {
        UNKNOWN => Ok(None),
        n if n <= max => Ok(Some(n)),
        _ => Err(Error::protocol("path hints out of range")),
    }
}

impl Tuning {
    fn put(&self, out: &mut Vec<u8>) {
        let PathHints { rate, rtt, loss } = self.path;
        let loss = loss.map(|share| (share * 1e9).round() as u64);
        for n in [rate.map(Rate::as_bps), rtt.map(Duration::as_nanos), loss] {
            out.extend(n.unwrap_or(UNKNOWN).to_be_bytes());
        }
        put_text(out, &self.controller);
    }
    fn read(f: &mut Fields<'_>) -> Result<Tuning, Error> {
        let path = PathHints {
            // A rate of zero counts as absent.
            rate: known(f, 10_000_000_000_000)?.filter(|bps| *bps > 0).map(Rate::from_bps),
            rtt: known(f, 3_600_000_000_000)?.map(Duration::from_nanos),
            loss: known(f, 1_000_000_000)?.map(|n| n as f64 * 1e-9),
        };
        Ok(Tuning { path, controller: f.text()?.to_string() })
    }
}

/// Requests of a client. A stream may carry several, answered in order.
#[derive(Clone, PartialEq, Debug)]
pub enum FileRequest {
    /// Lists the entries of a folder, or the file itself.
    List {
        /// Path below the served folder.
        path: String,
        /// Whether the answer has the folder's permissions (version 3).
        modes: bool,
    },
    /// Reads a file.
    Get {
        /// Path below the served folder.
        path: String,
        /// Bytes that are not sent again if they are the file's beginning.
        held: Option<HeldPrefix>,
        /// Whether the answer has the file's permissions (version 3).
        modes: bool,
    },
    /// Writes a file.
    Put {
        /// Path below the served folder.
        path: String,
        /// Size of the file in bytes.
        size: u64,
        /// The file's permissions (version 3).
        mode: Option<Mode>,
    },
    /// Creates a folder and its parents.
    MakeFolder {
        /// Path below the served folder.
        path: String,
        /// The folder's permissions if it is new (version 3).
        mode: Option<Mode>,
    },
    /// Sets the path hints and the controller of the server's sender, for the rest of this connection.
    Tune(Tuning),
}

impl FileRequest {
    /// Whether the request only reads, so that it may be executed twice.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, FileRequest::List { .. } | FileRequest::Get { .. })
    }
    fn kind(&self) -> u8 {
        match self {
            FileRequest::List { .. } => 1,
            FileRequest::Get { .. } => 2,
            FileRequest::Put { .. } => 3,
            FileRequest::MakeFolder { .. } => 4,
            FileRequest::Tune(_) => 5,
        }
    }

    /// The lowest version that has the request.
    fn version(&self) -> u8 {
        let is_new = match self {
            FileRequest::List { modes, .. } | FileRequest::Get { modes, .. } => *modes,
            FileRequest::Put { mode, .. } | FileRequest::MakeFolder { mode, .. } => mode.is_some(),
            FileRequest::Tune(_) => false,
        };
        if is_new { VERSION } else { OLDEST_VERSION }
    }

    /// The encoded request with its header.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            FileRequest::List { path, .. } => put_text(&mut body, path),
            FileRequest::Get { path, held, .. } => {
                put_text(&mut body, path);
                if let Some(held) = held {
                    body.extend(held.bytes.to_be_bytes());
                    body.extend(held.hash);
                }
            }
            FileRequest::Put { path, size, mode } => {
                put_text(&mut body, path);
                body.extend(size.to_be_bytes());
                put_mode(&mut body, *mode);
            }
            FileRequest::MakeFolder { path, mode } => {
                put_text(&mut body, path);
                put_mode(&mut body, *mode);
            }
            FileRequest::Tune(tuning) => tuning.put(&mut body),
        }
        let mut out = MAGIC.to_vec();
        out.extend([self.version(), self.kind()]);
        out.extend((body.len() as u16).to_be_bytes());
        out.extend(body);
        out
    }

    /// Decodes the bytes behind the header.
    ///
    /// # Errors
    /// An unknown kind, or a body that is not of that kind and version.
    pub fn read(head: RequestHead, body: &[u8]) -> Result<FileRequest, Error> {
        let mut f = Fields::new(body);
        if head.kind == 5 {
            let tuning = Tuning::read(&mut f)?;
            return f.end().map(|()| FileRequest::Tune(tuning));
        }
        let path = f.text()?.to_string();
        let modes = head.version > OLDEST_VERSION;
        let request = match head.kind {
            1 => FileRequest::List { path, modes },
            2 if f.is_empty() => FileRequest::Get { path, held: None, modes },
            2 => {
                let held = HeldPrefix { bytes: f.u64()?, hash: f.hash()? };
                FileRequest::Get { path, held: Some(held), modes }
            }
            3 => FileRequest::Put { path, size: f.u64()?, mode: read_mode(&mut f, modes)? },
            4 => FileRequest::MakeFolder { path, mode: read_mode(&mut f, modes)? },
            _ => return Err(Error::protocol("an unknown request")),
        };
        f.end()?;
        Ok(request)
    }
}

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHead {
    /// Version of the request, one that is answered.
    pub version: u8,
    /// Kind of the request.
    pub kind: u8,
    /// Length of the body in bytes.
    pub length: usize,
}

fn put_mode(out: &mut Vec<u8>, mode: Option<Mode>) {
    if let Some(mode) = mode {
        out.extend(mode.bits().to_be_bytes());
    }
}

/// Reads permissions if the message has them.
fn read_mode(f: &mut Fields<'_>, is_there: bool) -> Result<Option<Mode>, Error> {
    if !is_there {
        return Ok(None);
    }
    let mode = Mode::from_bits(f.u16()?);
    mode.map(Some).ok_or_else(|| Error::protocol("permissions with other bits"))
}

/// Kinds of a listing's entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file, or a link to one.
    File,
    /// A folder, not a link to one.
    Folder,
    /// A link to a folder below the same root; a walk does not follow it.
    FolderLink,
    /// An entry that cannot be transferred. The name is followed by the reason, for people.
    LeftOut,
}

/// One entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes; 0 for folders.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub modified: i64,
    /// File name, without a path.
    pub name: String,
}

impl DirectoryEntry {
    /// Appends the entry to a LISTED frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            EntryKind::File => 1,
            EntryKind::Folder => 2,
            EntryKind::FolderLink => 3,
            EntryKind::LeftOut => 4,
        });
        out.extend(self.size.to_be_bytes());
        out.extend(self.modified.to_be_bytes());
        put_text(out, &self.name);
    }

    /// Decodes an entry of a LISTED frame. The name is not checked here.
    ///
    /// # Errors
    /// Malformed.
    pub fn read(f: &mut Fields<'_>) -> Result<DirectoryEntry, Error> {
        let kind = match f.u8()? {
            1 => EntryKind::File,
            2 => EntryKind::Folder,
            3 => EntryKind::FolderLink,
            4 => EntryKind::LeftOut,
            _ => return Err(Error::protocol("an unknown entry")),
        };
        Ok(DirectoryEntry { kind, size: f.u64()?, modified: f.i64()?, name: f.text()?.to_string() })
    }
}

/// Frames in either direction.
#[derive(Clone, PartialEq, Debug)]
pub enum FileFrame<'b> {
    /// The sender is still working on the request.
    Wait,
    /// The request failed.
    Error(Error),
    /// Bytes of the file.
    Data(&'b [u8]),
    /// End of the file; BLAKE3 of the whole file.
    End([u8; 32]),
    /// GET: the answer begins at byte `start` of `size`.
    Begin {
        /// Offset of the first byte that follows.
        start: u64,
        /// Size of the whole file.
        size: u64,
        /// The file's permissions (version 3).
        mode: Option<Mode>,
    },
    /// PUT: the bytes that the server holds; `whole` if they are a finished file, not a partial one.
    Holding {
        /// Length and hash of the held bytes.
        held: HeldPrefix,
        /// Whether under the final name.
        whole: bool,
    },
    /// PUT: the upload begins at this byte.
    Start(u64),
    /// PUT and MAKE FOLDER: the file or folder exists under its name.
    Done,
    /// LIST: entries.
    Listed(Vec<DirectoryEntry>),
    /// LIST: the end of the listing.
    ListEnd {
        /// Whether the path is a folder, not a file.
        folder: bool,
        /// Number of left-out entries that are not among those listed.
        hidden: u64,
        /// The folder's permissions (version 3).
        mode: Option<Mode>,
    },
    /// TUNE: the controller of this end's sender, and its measurements of the path.
    Tuned(Tuning),
}

/// Most bytes of an ERROR's text.
const MAX_ERROR_TEXT: usize = 1000;

impl FileFrame<'_> {
    /// Encodes the frame: kind and payload.
    pub fn parts(&self) -> (u8, Vec<u8>) {
        let mut out = Vec::new();
        let kind = match self {
            FileFrame::Wait => 0,
            FileFrame::Error(e) => {
                out.extend(error_code::code(e.kind).to_be_bytes());
                let text: String = e.line.chars().take(MAX_ERROR_TEXT / 4).collect();
                put_text(&mut out, &text);
                1
            }
            FileFrame::Data(bytes) => {
                out.extend(*bytes);
                2
            }
            FileFrame::End(hash) => {
                out.extend(hash);
                3
            }
            FileFrame::Begin { start, size, mode } => {
                out.extend(start.to_be_bytes());
                out.extend(size.to_be_bytes());
                put_mode(&mut out, *mode);
                4
            }
            FileFrame::Holding { held, whole } => {
                out.extend(held.bytes.to_be_bytes());
                out.extend(held.hash);
                out.push(u8::from(*whole));
                5
            }
            FileFrame::Start(at) => {
                out.extend(at.to_be_bytes());
                6
            }
            FileFrame::Done => 7,
            FileFrame::Listed(entries) => {
                entries.iter().for_each(|e| e.put(&mut out));
                8
            }
            FileFrame::ListEnd { folder, hidden, mode } => {
                out.push(u8::from(*folder));
                out.extend(hidden.to_be_bytes());
                put_mode(&mut out, *mode);
                9
            }
            FileFrame::Tuned(tuning) => {
                tuning.put(&mut out);
                10
            }
        };
        (kind, out)
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// Malformed.
    pub fn read(kind: u8, payload: &[u8]) -> Result<FileFrame<'_>, Error> {
        let mut f = Fields::new(payload);
        let frame = match kind {
            0 => FileFrame::Wait,
            1 => {
                let code = f.u16()?;
                let text: String = f.text()?.chars().take(MAX_ERROR_TEXT).collect();
                let line = match shown(text.trim()) {
                    line if line.is_empty() => format!("the peer gives no reason (error {code})"),
                    line => line,
                };
                FileFrame::Error(Error::new(error_code::from_code(code), line))
            }
            2 => return Ok(FileFrame::Data(payload)),
            3 => FileFrame::End(f.hash()?),
            4 => {
                let start = f.u64()?;
                let size = f.u64()?;
                let has_mode = !f.is_empty();
                FileFrame::Begin { start, size, mode: read_mode(&mut f, has_mode)? }
            }
            5 => FileFrame::Holding {
                held: HeldPrefix { bytes: f.u64()?, hash: f.hash()? },
                whole: f.u8()? != 0,
            },
            6 => FileFrame::Start(f.u64()?),
            7 => FileFrame::Done,
            8 => {
                let mut entries = Vec::new();
                while !f.is_empty() {
                    entries.push(DirectoryEntry::read(&mut f)?);
                }
                FileFrame::Listed(entries)
            }
            9 => {
                let folder = f.u8()? != 0;
                let hidden = f.u64()?;
                let has_mode = !f.is_empty();
                FileFrame::ListEnd { folder, hidden, mode: read_mode(&mut f, has_mode)? }
            }
            10 => FileFrame::Tuned(Tuning::read(&mut f)?),
            _ => return Err(Error::protocol("an unknown frame")),
        };
        f.end()?;
        Ok(frame)
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
