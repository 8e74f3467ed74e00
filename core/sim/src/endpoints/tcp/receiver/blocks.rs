//! The SACK blocks of an acknowledgement: which of the held segments it reports first, and duplicates (RFC 2883).

use narrows_recovery::ranges::Ranges;

/// A delayed acknowledgement reports this many blocks; another block triggers it (`TCP_SACK_BLOCKS_EXPECTED`).
const COMPRESSED_BLOCKS: usize = 2;

/// The blocks of the next acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct SackBlocks {
    /// A segment of each of the blocks reported last, newest first (RFC 2018 section 4).
    recent: [u64; 3],
    reports_duplicates: bool,
    /// Segments that arrived again since the last acknowledgement.
    duplicate: Option<(u64, u64)>,
}

impl SackBlocks {
    pub fn new(reports_duplicates: bool) -> SackBlocks {
        SackBlocks { recent: [u64::MAX; 3], reports_duplicates, duplicate: None }
    }

    /// Whether a new segment's block would displace one of the first blocks of the next acknowledgement.
    pub fn displaces(&self, seq: u64, next: u64, held: &Ranges) -> bool {
        let known = self.recent.iter().filter(|r| **r != u64::MAX && **r >= next);
        let blocks = known.filter_map(|r| held.find(*r));
        let touches = |(from, to): &(u64, u64)| (*from..=*to).contains(&seq) || seq + 1 == *from;
        blocks.take(COMPRESSED_BLOCKS).filter(|b| !touches(b)).count() == COMPRESSED_BLOCKS
    }

    /// A segment above `next` arrived.
    pub fn remember(&mut self, seq: u64, next: u64, held: &Ranges) {
        let Some((from, to)) = held.find(seq) else { return };
        let mut kept = [u64::MAX; 3];
        kept[0] = seq;
        let mut n = 1;
        for old in self.recent {
            if n < 3 && old >= next && !(from..to).contains(&old) && old != u64::MAX {
                kept[n] = old;
                n += 1;
            }
        }
        self.recent = kept;
    }

    /// A segment arrived again. If one waits to be reported, only its neighbour is reported with it (Linux,
    /// `tcp_dsack_extend`).
    pub fn on_duplicate(&mut self, seq: u64) {
        if !self.reports_duplicates {
            return;
        }
        match &mut self.duplicate {
            None => self.duplicate = Some((seq, seq + 1)),
            Some((_, to)) if *to == seq => *to += 1,
            Some((from, _)) if *from == seq + 1 => *from -= 1,
            Some(_) => {}
        }
    }

    /// The blocks as offsets from `next`, modulo 2^32.
    #[inline]
    pub fn take(&mut self, next: u64, held: &Ranges) -> [(u32, u32); 3] {
        let duplicate = self.duplicate.take();
        if held.is_empty() && duplicate.is_none() {
            return [(0, 0); 3];
        }
        self.list(duplicate, next, held)
    }

    fn list(&self, duplicate: Option<(u64, u64)>, next: u64, held: &Ranges) -> [(u32, u32); 3] {
        let mut out = [(0, 0); 3];
        let mut n = 0;
        if let Some((from, to)) = duplicate {
            out[0] = (from.wrapping_sub(next) as u32, to.wrapping_sub(next) as u32);
            n = 1;
        }
        let first = n;
        let around = duplicate.map(|d| d.0).filter(|from| *from >= next);
        for seq in around.into_iter().chain(self.recent) {
            if seq == u64::MAX || n == out.len() {
                break;
            }
            let Some((from, to)) = held.find(seq) else { continue };
            let offset = |x: u64| u32::try_from(x - next).unwrap_or(u32::MAX);
            let block = (offset(from), offset(to));
            if !out[first..n].contains(&block) {
                out[n] = block;
                n += 1;
            }
        }
        out
    }
}
