//! Mutated seeds without a fuzzer: for tests, and for the runner on systems without libFuzzer.

use crate::Target;
use std::path::Path;

/// A target's seeds: one input per line of its file, in hexadecimal; # begins a comment.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/seeds/{target}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let line = |(i, line): (usize, &str)| {
        let byte = |i: usize| line.get(i..i + 2).and_then(|b| u8::from_str_radix(b, 16).ok());
        let bytes: Option<Vec<u8>> = (0..line.len()).step_by(2).map(byte).collect();
        bytes.unwrap_or_else(|| panic!("{}: line {}: not hexadecimal", path.display(), i + 1))
    };
    text.lines().enumerate().filter(|(_, l)| !l.starts_with('#')).map(line).collect()
}

/// Pseudo-random numbers (splitmix64).
pub struct RandomBytes(u64);

impl RandomBytes {
    pub fn new(seed: u64) -> RandomBytes {
        RandomBytes(seed)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// A seed with a few changes, as a fuzzer makes them: bytes changed, removed, inserted or doubled, and the end of
/// another seed.
pub fn mutated(seeds: &[Vec<u8>], random: &mut RandomBytes) -> Vec<u8> {
    const ODD: [u8; 8] = [0, 1, 0x3f, 0x7f, 0x80, 0xfe, 0xff, b'/'];
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = ODD[random.below(ODD.len())],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.below(256) as u8),
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let other = &seeds[random.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend(&other[random.below(other.len())..]);
            }
        }
    }
    bytes
}

/// Prints the input if a panic unwinds.
struct Named<'a>(&'a str, &'a [u8]);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.1.iter().map(|b| format!("{b:02x}")).collect();
            eprintln!("{}: the input was {hex}", self.0);
        }
    }
}

/// Runs one input; a panic prints it.
pub fn try_input(name: &str, target: Target, bytes: &[u8]) {
    let _named = Named(name, bytes);
    target(bytes);
}
