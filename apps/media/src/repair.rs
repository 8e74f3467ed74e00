//! Repair packets. If the latency is too short for a repeat, a block of parts is followed by packets of an erasure code
//! (Reed-Solomon). They restore as many lost parts as there are repair packets.
//!
//! ```text
//! repair: | 3 (1) | which (1) | first number (4) | parts (1) | repairs (1) | a shard of the code |
//! shard of a part: | length (2) | message with the part | zeros |
//! ```
//!
//! The shards of a block have the same length: an even number of bytes, as the code requires.

use narrows_base::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// Bytes before the shard.
pub const REPAIR_HEAD: usize = 8;
/// First byte of a repair packet.
pub const REPAIR: u8 = 3;
/// Bytes of a shard's length field; a padding byte may follow the message to make the length even.
const SHARD_HEAD: usize = 2;
/// Maximum number of parts in a block; below, of repair packets per part.
pub const MAX_PARTS: usize = 16;
const MOST: f64 = 1.0 / 3.0;
/// Share of the latency for which a block collects parts.
const COLLECTS: f64 = 1.0 / 3.0;
/// Time that a repeat takes beyond a round trip: the loss must be detected and requested.
const NOTICED: Duration = Duration::from_millis(10);
/// Below this loss rate no repair packets are sent.
const LEAST_LOSS: f64 = 5e-4;
/// Target share of parts that remain lost, if losses are independent.
const RESIDUAL: f64 = 2e-3;
/// Number of received parts that a receiver keeps; below, of blocks with repair packets.
const KEPT_PARTS: usize = 256;
const KEPT_BLOCKS: usize = 8;
/// Maximum shard length in bytes; longer messages are not protected.
const MAX_SHARD: usize = 2048;

/// Whether repair packets are worth their bytes: a repeat cannot be in time, and there is loss.
pub fn pays(latency: Duration, srtt: Duration, loss: f64) -> bool {
    srtt > Duration::ZERO && latency < srtt + NOTICED && loss >= LEAST_LOSS
}

/// The number of repair packets for a block of `parts` parts at this loss rate.
fn wanted(parts: usize, loss: f64) -> usize {
    let max = ((parts as f64 * MOST).ceil() as usize).max(1);
    (1..max).find(|repairs| residual(parts, *repairs, loss) <= RESIDUAL).unwrap_or(max)
}

/// The share of parts that remain lost, if losses are independent.
fn residual(parts: usize, repairs: usize, loss: f64) -> f64 {
    let all = parts + repairs;
    // The binomial probability of exactly this many losses, beginning with zero.
    let mut one = (1.0 - loss).powi(all as i32);
    let mut stays = 0.0;
    for lost in 0..=all {
        if lost > repairs {
            stays += one * lost as f64 / all as f64;
        }
        one *= (all - lost) as f64 / (lost + 1) as f64 * loss / (1.0 - loss);
    }
    stays
}

/// The shard of this length for a message.
fn shard(message: &[u8], length: usize) -> Vec<u8> {
    let mut shard = Vec::with_capacity(length);
    shard.extend((message.len() as u16).to_be_bytes());
    shard.extend(message);
    shard.resize(length, 0);
    shard
}

/// The message in a shard; `None` if its length field is invalid.
fn message(shard: &[u8]) -> Option<&[u8]> {
    let (length, rest) = shard.split_first_chunk::<SHARD_HEAD>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

fn shard_length(longest: usize) -> usize {
    (longest + SHARD_HEAD).next_multiple_of(2)
}

/// Collects parts as they leave, and computes their repair packets.
#[derive(Debug, Default)]
pub struct Protector {
    first: u64,
    messages: Vec<Vec<u8>>,
    closes: Option<Time>,
}

impl Protector {
    /// Time at which the open block must be closed; `Time::NEVER` if no block is open.
    pub fn closes(&self) -> Time {
        self.closes.unwrap_or(Time::NEVER)
    }

    /// Adds a part that leaves for the first time; `stamp` is its arrival. Returns the repair packets of a block that
    /// ends with it.
    pub fn on_part(
        &mut self,
        number: u64,
        message: &[u8],
        stamp: Time,
        latency: Duration,
        loss: f64,
    ) -> Vec<Vec<u8>> {
        let mut repairs = Vec::new();
        if shard_length(message.len()) > MAX_SHARD {
            return repairs;
        }
        if self.first + self.messages.len() as u64 != number {
            // The part does not continue the block, since parts between were dropped: close the block.
            repairs = self.close(loss);
        }
        if self.messages.is_empty() {
            self.first = number;
            self.closes = Some(stamp + latency.mul_f64(COLLECTS));
        }
        self.messages.push(message.to_vec());
        if self.messages.len() >= MAX_PARTS {
            repairs.extend(self.close(loss));
        }
        repairs
    }

    /// Closes the open block and returns its repair packets.
    pub fn close(&mut self, loss: f64) -> Vec<Vec<u8>> {
        self.closes = None;
        let messages = std::mem::take(&mut self.messages);
        let parts = messages.len();
        let first = self.first;
        let Some(longest) = messages.iter().map(Vec::len).max() else { return Vec::new() };
        let length = shard_length(longest);
        let repairs = wanted(parts, loss);
        let shards = messages.iter().map(|message| shard(message, length));
        // It fails only for counts and lengths that cannot occur here.
        let coded = reed_solomon_simd::encode(parts, repairs, shards).unwrap_or_default();
        let whole = |(which, shard): (usize, Vec<u8>)| {
            let mut bytes = Vec::with_capacity(REPAIR_HEAD + shard.len());
            bytes.extend([REPAIR, which as u8]);
            bytes.extend((first as u32).to_be_bytes());
            bytes.extend([parts as u8, repairs as u8]);
            bytes.extend(shard);
            bytes
        };
        coded.into_iter().enumerate().map(whole).collect()
    }
}

/// Maximum length of a repair packet beyond the block's longest message.
pub const OVERHEAD: usize = REPAIR_HEAD + SHARD_HEAD + 1;

/// A decoded repair packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodedRepair<'m> {
    /// Index among the block's repair packets.
    pub which: u8,
    /// The lower 32 bits of the number of the block's first part.
    pub first: u32,
    /// Number of parts in the block.
    pub parts: u8,
    /// Number of the block's repair packets.
    pub repairs: u8,
    /// Shard of the code, of even length.
    pub shard: &'m [u8],
}

/// Reads a repair packet; `None` if it is invalid.
pub fn read(bytes: &[u8]) -> Option<DecodedRepair<'_>> {
    let (head, shard) = bytes.split_first_chunk::<REPAIR_HEAD>()?;
    let [REPAIR, which, n0, n1, n2, n3, parts, repairs] = *head else { return None };
    let is_possible = (1..=MAX_PARTS).contains(&parts.into())
        && which < repairs
        && usize::from(repairs) <= MAX_PARTS
        && (SHARD_HEAD..=MAX_SHARD).contains(&shard.len())
        && shard.len().is_multiple_of(2);
    let first = u32::from_be_bytes([n0, n1, n2, n3]);
    is_possible.then_some(DecodedRepair { which, first, parts, repairs, shard })
}

#[derive(Debug)]
struct RepairBlock {
    first: u64,
    parts: u8,
    repairs: u8,
    length: usize,
    received: BTreeMap<u8, Vec<u8>>,
}

/// Restores parts from repair packets.
#[derive(Debug, Default)]
pub struct Restorer {
    /// Received messages by number; they are kept once a repair packet has arrived.
    parts: BTreeMap<u64, Vec<u8>>,
    blocks: VecDeque<RepairBlock>,
}

impl Restorer {
    /// Adds a received part. Returns the parts that can now be restored.
    pub fn on_part(&mut self, number: u64, message: &[u8]) -> Vec<(u64, Vec<u8>)> {
        if self.blocks.is_empty() || shard_length(message.len()) > MAX_SHARD {
            return Vec::new();
        }
        self.keep(number, message.to_vec());
        let of = |block: &&RepairBlock| (block.first..block.end()).contains(&number);
        let found = self.blocks.iter().find(of).map(|block| block.first);
        found.map_or(Vec::new(), |first| self.restore(first))
    }

    /// Adds a repair packet of a block that begins with this number. Returns the parts that can now be restored.
    pub fn on_repair(&mut self, first: u64, repair: &DecodedRepair<'_>) -> Vec<(u64, Vec<u8>)> {
        let DecodedRepair { which, parts, repairs, shard, .. } = *repair;
        let known = self.blocks.iter_mut().find(|block| block.first == first);
        match known {
            Some(block) => {
                // A repair packet with other block parameters than the first one's is ignored.
                if (block.parts, block.repairs, block.length) == (parts, repairs, shard.len()) {
                    block.received.insert(which, shard.to_vec());
                }
            }
            None => {
                let received = BTreeMap::from([(which, shard.to_vec())]);
                self.blocks.push_back(RepairBlock {
                    first,
                    parts,
                    repairs,
                    length: shard.len(),
                    received,
                });
                while self.blocks.len() > KEPT_BLOCKS {
                    self.blocks.pop_front();
                }
            }
        }
        self.restore(first)
    }

    fn restore(&mut self, first: u64) -> Vec<(u64, Vec<u8>)> {
        let Some(block) = self.blocks.iter().find(|block| block.first == first) else {
            return Vec::new();
        };
        let fits = |message: &&Vec<u8>| shard_length(message.len()) <= block.length;
        let here: Vec<(usize, Vec<u8>)> = (0..usize::from(block.parts))
            .filter_map(|part| {
                let message = self.parts.get(&(first + part as u64)).filter(fits)?;
                Some((part, shard(message, block.length)))
            })
            .collect();
        let missing = usize::from(block.parts) - here.len();
        if missing == 0 || missing > block.received.len() {
            return Vec::new();
        }
        let received = block.received.iter().map(|(which, shard)| (usize::from(*which), shard));
        let parts = block.parts.into();
        let repairs = block.repairs.into();
        let restored =
            reed_solomon_simd::decode(parts, repairs, here, received).unwrap_or_default();
        let mut all: Vec<(u64, Vec<u8>)> = restored
            .into_iter()
            .filter_map(|(part, shard)| Some((first + part as u64, message(&shard)?.to_vec())))
            .collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        for (number, message) in &all {
            self.keep(*number, message.clone());
        }
        all
    }

    fn keep(&mut self, number: u64, message: Vec<u8>) {
        self.parts.insert(number, message);
        while self.parts.len() > KEPT_PARTS {
            self.parts.pop_first();
        }
    }
}

impl RepairBlock {
    fn end(&self) -> u64 {
        self.first + u64::from(self.parts)
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
