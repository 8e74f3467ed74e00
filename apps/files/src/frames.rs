//! Frames on a stream: `| kind (1) | length (3) | payload |`.

use crate::message::{
    FileFrame, FileRequest, MAGIC, MAX_FRAME, MAX_REQUEST, OLDEST_VERSION, RequestHead, VERSION,
};
use crate::requests::SlotView;
use narrows_peers::error::{Error, ErrorKind};
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of WAIT frames from an end that works without sending.
pub const WAIT_EVERY: Duration = Duration::from_secs(1);

fn header(kind: u8, length: usize) -> [u8; 4] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    [kind, a, b, c]
}

/// Writes a frame.
///
/// # Errors
/// The stream's.
pub fn write(out: &mut (impl Write + ?Sized), frame: &FileFrame<'_>) -> Result<(), Error> {
    if let FileFrame::Data(bytes) = frame {
        // Without a copy; callers pass at most one frame.
        out.write_all(&header(2, bytes.len())).map_err(Error::stream)?;
        return out.write_all(bytes).map_err(Error::stream);
    }
    let (kind, payload) = frame.parts();
    out.write_all(&header(kind, payload.len())).map_err(Error::stream)?;
    out.write_all(&payload).map_err(Error::stream)
}

/// Writes a frame and flushes the stream.
///
/// # Errors
/// The stream's.
pub fn send(out: &mut (impl Write + ?Sized), frame: &FileFrame<'_>) -> Result<(), Error> {
    write(out, frame)?;
    out.flush().map_err(Error::stream)
}

/// Reads frames into one buffer.
pub struct FileFrameReader<R> {
    input: R,
    buffer: Vec<u8>,
}

impl<R: Read> FileFrameReader<R> {
    /// Reads from this stream.
    pub fn new(input: R) -> FileFrameReader<R> {
        FileFrameReader { input, buffer: Vec::new() }
    }

    /// The next frame other than [`FileFrame::Wait`]. An ERROR frame is returned as `Err`.
    ///
    /// # Errors
    /// The peer's, the stream's, or a malformed frame.
    pub fn frame(&mut self) -> Result<FileFrame<'_>, Error> {
        loop {
            let mut head = [0; 4];
            exact(&mut self.input, &mut head)?;
            let [kind, a, b, c] = head;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MAX_FRAME {
                return Err(Error::protocol("a frame too long"));
            }
            self.fill(length)?;
            if kind != 0 {
                return match FileFrame::read(kind, &self.buffer)? {
                    FileFrame::Error(e) => Err(e),
                    frame => Ok(frame),
                };
            }
        }
    }

    /// Reads a payload; the buffer grows with the bytes that arrive, not with the announced length.
    fn fill(&mut self, length: usize) -> Result<(), Error> {
        self.buffer.clear();
        while self.buffer.len() < length {
            let at = self.buffer.len();
            let step = (length - at).min(at.max(FIRST_STEP));
            self.buffer.resize(at + step, 0);
            exact(&mut self.input, self.buffer.get_mut(at..).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Reads and drops a refused upload up to its end, so that the next request can be read. Accepts at most
    /// `announced` bytes.
    ///
    /// # Errors
    /// As [`FileFrameReader::frame`], or the upload is longer than announced.
    pub fn skip(&mut self, announced: u64) -> Result<(), Error> {
        let mut left = announced;
        loop {
            match self.frame()? {
                FileFrame::End(_) => return Ok(()),
                FileFrame::Start(_) => {}
                FileFrame::Data(bytes) if bytes.len() as u64 <= left => left -= bytes.len() as u64,
                _ => return Err(Error::protocol("an upload without an end")),
            }
        }
    }

    /// The underlying stream.
    pub fn input(&mut self) -> &mut R {
        &mut self.input
    }
}

/// Bytes of a payload that are allocated at first.
const FIRST_STEP: usize = 4096;

fn exact(input: &mut (impl Read + ?Sized), to: &mut [u8]) -> Result<(), Error> {
    input.read_exact(to).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Cut, "the connection was cut"),
        _ => Error::stream(e),
    })
}

/// Reads a request; `Ok(None)` if the stream ended before its first byte.
///
/// # Errors
/// A malformed request, another version, or the stream's.
pub fn request(input: &mut (impl Read + ?Sized)) -> Result<Option<FileRequest>, Error> {
    let mut head = [0; 6];
    let first = loop {
        match input.read(&mut head) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(Error::stream)?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    exact(input, head.get_mut(first..).unwrap_or_default())?;
    let head = request_head(head)?;
    let mut body = vec![0; head.length];
    exact(input, &mut body)?;
    FileRequest::read(head, &body).map(Some)
}

/// Bytes of a request before its body.
pub const REQUEST_HEAD: usize = 6;

/// Decodes the header of a request.
///
/// # Errors
/// A malformed header, or another version.
pub fn request_head(head: [u8; REQUEST_HEAD]) -> Result<RequestHead, Error> {
    let [m0, m1, version, kind, l0, l1] = head;
    if [m0, m1] != MAGIC {
        return Err(Error::protocol("no request"));
    }
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(Error::new(
            ErrorKind::Version,
            format!(
                "the server's file service has version {VERSION}, the client's {version}: \
                 update the older one"
            ),
        ));
    }
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    if length > MAX_REQUEST {
        return Err(Error::protocol("a request too long"));
    }
    Ok(RequestHead { version, kind, length })
}

/// Sends WAIT frames at intervals of [`WAIT_EVERY`].
pub struct WaitSender(Instant);

impl WaitSender {
    /// The first interval begins now.
    pub fn new() -> WaitSender {
        WaitSender(Instant::now())
    }
    /// Sends WAIT if the interval is over; callers call it more often than that.
    ///
    /// # Errors
    /// The stream's.
    pub fn tell(&mut self, out: &mut (impl Write + ?Sized)) -> Result<(), Error> {
        if self.0.elapsed() < WAIT_EVERY {
            return Ok(());
        }
        self.0 = Instant::now();
        send(out, &FileFrame::Wait)
    }
}

impl Default for WaitSender {
    fn default() -> WaitSender {
        WaitSender::new()
    }
}

/// Bytes that a second of work counts as.
const WORK_A_SECOND: u64 = 100_000;

/// Runs slow work while the peer receives WAIT frames.
///
/// # Errors
/// The stream's, after the work is done.
pub fn while_waiting<T: Send>(
    out: &mut (impl Write + ?Sized),
    slot: &SlotView,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    let work = Mutex::new(Some(work));
    let take = &|| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let (tell, answers) = std::sync::mpsc::channel();
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            // The receiver waits as long as this thread lives.
            take().map(|work| tell.send(work()))
        });
        // If no thread can be started, the work runs here, and the peer receives no WAIT.
        if started.is_err()
            && let Some(work) = take()
        {
            return Ok(work());
        }
        let mut trouble = None;
        loop {
            match answers.recv_timeout(WAIT_EVERY) {
                Ok(done) => return trouble.map_or(Ok(done), Err),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if trouble.is_none() => {
                    slot.moved(WORK_A_SECOND);
                    trouble = send(out, &FileFrame::Wait).err();
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(ErrorKind::Local, "a thread ended without its work"));
                }
            }
        }
    })
}
