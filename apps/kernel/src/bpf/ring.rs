//! The consumer's side of the ring of records.

use super::system::SharedMemory;
use crate::record::{RECORD_BYTES, Record};
use std::io;
use std::os::fd::OwnedFd;

/// A record is still being written.
const BUSY: u32 = 1 << 31;
/// The program gave it up.
const DISCARDED: u32 = 1 << 30;
/// Before each record: its length.
const HEADER: usize = 8;

/// The ring of records, of which there is one reader.
#[derive(Debug)]
pub struct Ring {
    consumer: SharedMemory,
    /// The producer's page, and the data mapped twice in a row, so that every record is contiguous.
    producer: SharedMemory,
    page: usize,
    mask: u64,
}

impl Ring {
    /// Maps the ring of `bytes`, a power of two.
    pub fn map(fd: &OwnedFd, bytes: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        Ok(Ring {
            consumer: SharedMemory::map(fd, 0, page, true)?,
            producer: SharedMemory::map(fd, page as u64, page + 2 * bytes, false)?,
            page,
            mask: bytes as u64 - 1,
        })
    }
    /// Whether all reserved records have been read.
    pub fn is_empty(&self) -> bool {
        self.producer.load(0) == self.consumer.load(0)
    }
    /// Passes all available records on. Returns their number.
    pub fn drain(&self, mut take: impl FnMut(&Record)) -> u64 {
        let mut at = self.consumer.load(0);
        let mut taken = 0;
        while at < self.producer.load(0) {
            let start = self.page + (at & self.mask) as usize;
            let header = self.producer.load_u32(start);
            if header & BUSY != 0 {
                break;
            }
            let length = (header & !(BUSY | DISCARDED)) as usize;
            if header & DISCARDED == 0 && length >= RECORD_BYTES {
                let word = |i: usize| self.producer.load_u32(start + HEADER + 4 * i);
                take(&Record::read(word));
                taken += 1;
            }
            at += (length + HEADER).next_multiple_of(8) as u64;
            // The place is free for the next record as soon as this one is read.
            self.consumer.store(0, at);
        }
        taken
    }
}
