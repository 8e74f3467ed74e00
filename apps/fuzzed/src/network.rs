//! Peers of the file service that send the input's bytes.

use narrows_files::TransferControl;
use narrows_files::message::Tuning;
use narrows_files::service::RequestChannel;
use narrows_files::stream::{FileStream, Output, Session};
use narrows_peers::Error;
use std::io::{self, Cursor, Read, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that an end sent.
#[derive(Clone, Default)]
pub struct SentBytes(Arc<Mutex<Vec<u8>>>);

impl SentBytes {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SentBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for SentBytes {
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads return at most this many bytes, so that boundaries fall anywhere.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let max = to.len().min(self.1);
        self.0.read(to.get_mut(..max).unwrap_or_default())
    }
}

/// A stream that reads these bytes, and stores the bytes written to it.
pub fn stream(bytes: &[u8], said: &SentBytes) -> FileStream {
    let piece = 1 + bytes.len() % 7 * 100;
    FileStream {
        input: Box::new(Pieces(Cursor::new(bytes.to_vec()), piece)),
        output: Box::new(said.clone()),
    }
}

/// A server that answers each stream with the next part of the input: a length (2), the bytes.
pub struct Hostile(Mutex<Vec<u8>>);

impl Hostile {
    pub fn new(bytes: &[u8]) -> Hostile {
        Hostile(Mutex::new(bytes.to_vec()))
    }
}

impl Session for Hostile {
    fn open(&self) -> Result<FileStream, Error> {
        let mut rest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = match rest.get(..2) {
            Some(&[a, b]) => usize::from(u16::from_be_bytes([a, b])),
            _ => 0,
        };
        let head = rest.len().min(2);
        let end = rest.len().min(2 + length);
        let part: Vec<u8> = rest.drain(..end).skip(head).collect();
        Ok(stream(&part, &SentBytes::default()))
    }
    fn protocol(&self) -> String {
        "hostile".into()
    }
}

/// A transport that ignores hints.
pub struct Untold;

impl RequestChannel for Untold {
    fn tune(&self, tuning: &Tuning) -> Tuning {
        tuning.clone()
    }
}

pub static NEVER: AtomicBool = AtomicBool::new(false);

pub fn control() -> TransferControl {
    TransferControl::new(&NEVER, None, |_| ())
}
