//! It never completes a handshake: forged FINISHes, copies of START and of earlier packets, and random bytes.

use super::{Behaviour, Said, Traffic};
use narrows_base::random::RandomStream;

/// Bytes sent per byte received (docs/security.md).
const MAX_AMPLIFICATION: u64 = 3;

#[derive(Default)]
pub struct Stranger {
    /// Packets of its former handshakes.
    old: Said,
}

impl Behaviour for Stranger {
    fn instead_of_finish(
        &mut self,
        start: &[u8],
        finish: &[u8],
        random: &mut RandomStream,
    ) -> Option<Said> {
        let mut said = self.old.clone();
        for _ in 0..random.bits() % 6 {
            let mut forged = finish.to_vec();
            let place = random.bits() as usize % forged.len();
            forged[place] ^= 1 << (random.bits() % 8);
            said.extend([start.to_vec(), forged]);
        }
        // Random bytes after the header of a data packet.
        let mut noise: Vec<u8> =
            (0..40 + random.bits() % 1000).map(|_| random.bits() as u8).collect();
        noise[0] &= 0x60;
        said.push(noise);
        self.old.push(start.to_vec());
        self.old.truncate(8);
        Some(said)
    }
    fn bound(&self, traffic: &Traffic) -> u64 {
        MAX_AMPLIFICATION * traffic.came_from
    }
}
