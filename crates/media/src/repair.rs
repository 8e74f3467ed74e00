//! Packets of repair: where the latency has no time for a repeat, a block of parts is followed by some of an erasure code
//! (Reed-Solomon). As many of them as parts were lost restore these.
//!
//! ```text
//! repair: | 3 (1) | which (1) | first number (4) | parts (1) | repairs (1) | a shard of the code |
//! shard of a part: | length (2) | message with the part | zeros |
//! ```
//!
//! The shards of a block are equally long: an even number of bytes, as the code asks.

use narrows_base::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// Bytes before the shard.
pub const REPAIR_HEAD: usize = 8;
/// First byte of the message.
pub const REPAIR: u8 = 3;
/// Bytes of the length in a shard, and a last one that makes it even.
const SHARD_HEAD: usize = 2;
/// Parts of a block at most; and repairs for each part at most.
pub const MAX_PARTS: usize = 16;
const MOST: f64 = 1.0 / 3.0;
/// A block may collect parts for this share of the latency.
const COLLECTS: f64 = 1.0 / 3.0;
/// A repeat takes a round trip and about so long: until the loss is noticed, and asked for.
const NOTICED: Duration = Duration::from_millis(10);
/// Below this share of lost packets there is nothing to repair.
const LEAST_LOSS: f64 = 5e-4;
/// So many parts as a share of all may stay lost, if losses are independent.
const RESIDUAL: f64 = 2e-3;
/// What a receiver keeps: parts that came, and blocks with repairs.
const KEPT_PARTS: usize = 256;
const KEPT_BLOCKS: usize = 8;
/// Longer messages are not protected.
const MAX_SHARD: usize = 2048;

/// Whether repairs are worth their bytes: a repeat cannot be in time, and something is lost.
pub fn pays(latency: Duration, srtt: Duration, loss: f64) -> bool {
    srtt > Duration::ZERO && latency < srtt + NOTICED && loss >= LEAST_LOSS
}

/// How many repairs a block of so many parts needs, where this share of packets is lost.
fn wanted(parts: usize, loss: f64) -> usize {
    let most = ((parts as f64 * MOST).ceil() as usize).max(1);
    (1..most).find(|repairs| residual(parts, *repairs, loss) <= RESIDUAL).unwrap_or(most)
}

/// The share of parts that stay lost, where losses are independent.
fn residual(parts: usize, repairs: usize, loss: f64) -> f64 {
    let all = parts + repairs;
    // The probability that so many are lost, from none on.
    let (mut one, mut stays) = ((1.0 - loss).powi(all as i32), 0.0);
    for lost in 0..=all {
        if lost > repairs {
            stays += one * lost as f64 / all as f64;
        }
        one *= (all - lost) as f64 / (lost + 1) as f64 * loss / (1.0 - loss);
    }
    stays
}

/// A message in a shard of this length.
fn shard(message: &[u8], length: usize) -> Vec<u8> {
    let mut shard = Vec::with_capacity(length);
    shard.extend((message.len() as u16).to_be_bytes());
    shard.extend(message);
    shard.resize(length, 0);
    shard
}

/// The message in a shard; `None` if its length cannot be.
fn message(shard: &[u8]) -> Option<&[u8]> {
    let (length, rest) = shard.split_first_chunk::<SHARD_HEAD>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

fn shard_length(longest: usize) -> usize {
    (longest + SHARD_HEAD).next_multiple_of(2)
}

/// Collects the parts that leave, and makes repairs for them.
#[derive(Debug, Default)]
pub struct Protector {
    first: u64,
    messages: Vec<Vec<u8>>,
    closes: Option<Time>,
}

impl Protector {
    /// When the block is to be closed, if one is open.
    pub fn closes(&self) -> Time {
        self.closes.unwrap_or(Time::NEVER)
    }

    /// This part leaves for the first time, and came at `stamp`. Repairs of the block that is complete with it.
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
            // Something between was dropped, and is no part of any block.
            repairs = self.close(loss);
        }
        if self.messages.is_empty() {
            (self.first, self.closes) = (number, Some(stamp + latency.mul_f64(COLLECTS)));
        }
        self.messages.push(message.to_vec());
        if self.messages.len() >= MAX_PARTS {
            repairs.extend(self.close(loss));
        }
        repairs
    }

    /// The repairs of the open block; a new one begins.
    pub fn close(&mut self, loss: f64) -> Vec<Vec<u8>> {
        self.closes = None;
        let messages = std::mem::take(&mut self.messages);
        let (parts, first) = (messages.len(), self.first);
        let Some(longest) = messages.iter().map(Vec::len).max() else { return Vec::new() };
        let (length, repairs) = (shard_length(longest), wanted(parts, loss));
        let shards = messages.iter().map(|message| shard(message, length));
        // It refuses numbers and lengths that are not ours.
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

/// Bytes that a repair may have beyond the message of the longest part.
pub const OVERHEAD: usize = REPAIR_HEAD + SHARD_HEAD + 1;

/// A packet of repair as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'m> {
    /// Which of the repairs.
    pub which: u8,
    /// The number of the block's first part, its lower 32 bits.
    pub first: u32,
    /// Parts of the block.
    pub parts: u8,
    /// Repairs of it.
    pub repairs: u8,
    /// The shard.
    pub shard: &'m [u8],
}

/// Reads one; `None` for what is none, or could not be.
pub fn read(bytes: &[u8]) -> Option<Repair<'_>> {
    let (head, shard) = bytes.split_first_chunk::<REPAIR_HEAD>()?;
    let [REPAIR, which, n0, n1, n2, n3, parts, repairs] = *head else { return None };
    let is_possible = (1..=MAX_PARTS).contains(&parts.into())
        && which < repairs
        && usize::from(repairs) <= MAX_PARTS
        && (SHARD_HEAD..=MAX_SHARD).contains(&shard.len())
        && shard.len().is_multiple_of(2);
    let first = u32::from_be_bytes([n0, n1, n2, n3]);
    is_possible.then_some(Repair { which, first, parts, repairs, shard })
}

#[derive(Debug)]
struct Block {
    first: u64,
    parts: u8,
    repairs: u8,
    length: usize,
    came: BTreeMap<u8, Vec<u8>>,
}

/// Restores parts from repairs.
#[derive(Debug, Default)]
pub struct Restorer {
    /// Messages with parts that came, by their number; kept once a repair has come.
    parts: BTreeMap<u64, Vec<u8>>,
    blocks: VecDeque<Block>,
}

impl Restorer {
    /// A part came; what is restored with it.
    pub fn on_part(&mut self, number: u64, message: &[u8]) -> Vec<(u64, Vec<u8>)> {
        if self.blocks.is_empty() || shard_length(message.len()) > MAX_SHARD {
            return Vec::new();
        }
        self.keep(number, message.to_vec());
        let of = |block: &&Block| (block.first..block.end()).contains(&number);
        let found = self.blocks.iter().find(of).map(|block| block.first);
        found.map_or(Vec::new(), |first| self.restore(first))
    }

    /// A repair came, of a block that begins with this number; what is restored with it.
    pub fn on_repair(&mut self, first: u64, repair: &Repair<'_>) -> Vec<(u64, Vec<u8>)> {
        let Repair { which, parts, repairs, shard, .. } = *repair;
        let known = self.blocks.iter_mut().find(|block| block.first == first);
        match known {
            Some(block) => {
                // Others of the block than it said first are another's.
                if (block.parts, block.repairs, block.length) == (parts, repairs, shard.len()) {
                    block.came.insert(which, shard.to_vec());
                }
            }
            None => {
                let came = BTreeMap::from([(which, shard.to_vec())]);
                self.blocks.push_back(Block { first, parts, repairs, length: shard.len(), came });
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
        if missing == 0 || missing > block.came.len() {
            return Vec::new();
        }
        let came = block.came.iter().map(|(which, shard)| (usize::from(*which), shard));
        let (parts, repairs) = (block.parts.into(), block.repairs.into());
        let restored = reed_solomon_simd::decode(parts, repairs, here, came).unwrap_or_default();
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

impl Block {
    fn end(&self) -> u64 {
        self.first + u64::from(self.parts)
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
