//! Quality adaptation: which layers of a stream are sent, and how far ahead of their time.
//!
//! Jayaram 2001 section 7.3 lists the tasks of such a scheme (add and drop layers, estimate the receiver's buffers,
//! predict the rate). For the rules it refers to R. Rejaie, M. Handley, D. Estrin, *Quality adaptation for congestion
//! controlled video playback over the Internet*, SIGCOMM 1999. Chapter 8 leaves the integration with TEAR open. So the
//! rules are Rejaie's; choices that neither paper specifies are marked *ours*.
//!
//! A stream has layers 0 (the base), 1, 2, …, played at r₀, r₁, … bit/s; a layer is of use only with all below it. C(n)
//! = r₀ + … + r₍ₙ₋₁₎ is the rate that n layers consume. The transport permits R bit/s. After a back-off it permits β·R
//! and increases by S bit/s each second. While it permits less than C(n), buffers supply the rest: a deficit of height
//! h = C(n) − R lasts h/S and takes
//!
//! ```text
//! D(h) = h²/(2S)                                        bits in all
//! Dᵢ(h) = [(h − aᵢ)² − (h − bᵢ)²]/(2S)                  bits of layer i, where aᵢ = min(C(i), h), bᵢ = min(C(i+1), h)
//! ```
//!
//! A buffer can supply no more than its own layer's rate, so layer i carries the slice of the triangle between C(i) and
//! C(i+1): the base layer most, for longest. Dᵢ generalizes Rejaie's optimal allocation, in which all layers have equal
//! rates.
//!
//! - **Reserve** for n layers and K back-offs: the larger of two scenarios. All K at once: Dᵢ(C(n) − βᴷR). Or one now
//!   and each of the others when the rate is back at C(n): Dᵢ(C(n) − βR) + (K − 1)·Dᵢ(C(n) − βC(n)). (Rejaie's two
//!   extreme scenarios. He fills through all of them in turn; here the larger one is the target.)
//! - **Add** layer n if R ≥ C(n+1) and the buffers hold the reserve of n+1 layers. *Ours*: full buffers suffice, since
//!   a live stream cannot be further ahead than its latency.
//! - **Drop** the highest layer while n > 1 and the buffers cannot supply the present deficit of height h = C(n) − R.
//!   They can if and only if for every set A of layers Σ₍A₎ bufferᵢ ≥ D(h − Σ₍others₎ rᵢ): the others supply at most
//!   their own rates. (*Ours*: Rejaie compares only the sum of all buffers, A = all, which counts bits that a layer
//!   cannot spend.) The base layer is never dropped.
//! - **Send** first for the lowest layer that holds less than the present deficit's Dᵢ, then for the lowest that holds
//!   less than its reserve. Then for the layer that is the least time ahead, the lower of equals, up to the limit of
//!   the receiver's buffer. So the base layer goes first whenever data are short.
//! - S: *ours*, as Jayaram specifies no value. It is one packet per RTT and RTT as in AIMD, and at most the slope that
//!   regains a back-off in the *recovery* time. Section 7.3 observes that TEAR's rate swings over a few seconds.
//!
//! A buffer counts without its *margin*, the data that must be in flight so that they arrive in time.

/// Most layers of a stream.
pub const MAX_LAYERS: usize = 8;

/// The expected rate of the transport.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// The rate permitted now, in bit/s.
    pub rate: f64,
    /// How fast that grows after a back-off, in bit/s per second; positive.
    pub slope: f64,
}

/// The receiver's buffers, as the sender estimates them.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Bits of each layer that are ahead of their play-out, without the margin.
    pub bits: [f64; MAX_LAYERS],
    /// Limit on a layer's buffer in seconds of play-out, without the margin.
    pub limit_s: f64,
}

/// A change of quality.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerChange {
    /// The highest layer was added.
    Added,
    /// The highest layer was dropped.
    Dropped,
}

/// The rules, and the number of layers sent.
#[derive(Clone, Debug)]
pub struct QualityAdaptation {
    rates: [f64; MAX_LAYERS],
    count: usize,
    active: usize,
    backoffs: u32,
    keep: f64,
}

impl QualityAdaptation {
    /// Begins with the base layer. `rates` are the layers' in bit/s, from the base upwards, at most [`MAX_LAYERS`] of
    /// them; `backoffs` is K, `keep` is β in (0, 1).
    pub fn new(rates: &[f64], backoffs: u32, keep: f64) -> QualityAdaptation {
        let mut all = [0.0; MAX_LAYERS];
        let count = rates.len().clamp(1, MAX_LAYERS);
        for (to, rate) in all.iter_mut().zip(rates) {
            *to = rate.max(1.0);
        }
        QualityAdaptation { rates: all, count, active: 1, backoffs, keep }
    }
    /// Layers that are being sent, at least 1.
    pub fn active(&self) -> usize {
        self.active
    }
    /// A layer's rate in bit/s.
    pub fn rate(&self, layer: usize) -> f64 {
        self.rates[layer]
    }
    /// C(n): the rate that the lowest `n` layers consume, in bit/s.
    pub fn consumption(&self, n: usize) -> f64 {
        self.rates[..n.min(self.count)].iter().sum()
    }

    /// Adds Dᵢ(height) `times` over to every layer.
    fn add_deficit(&self, to: &mut [f64; MAX_LAYERS], height: f64, slope: f64, times: f64) {
        let mut below = 0.0;
        for (layer, bits) in to.iter_mut().enumerate().take(self.count) {
            let (a, b) = (height.min(below), height.min(below + self.rates[layer]));
            if a < b {
                let (from, to) = (height - a, height - b);
                *bits += times * (from * from - to * to) / (2.0 * slope);
            }
            below += self.rates[layer];
        }
    }

    /// Dᵢ: bits of each layer that a deficit needs while `n` layers are played, if the rate only grows from now on.
    pub fn deficit(&self, n: usize, outlook: Outlook) -> [f64; MAX_LAYERS] {
        let mut bits = [0.0; MAX_LAYERS];
        self.add_deficit(&mut bits, self.consumption(n) - outlook.rate, outlook.slope, 1.0);
        bits
    }

    /// The reserve: bits of each layer that let `n` layers survive K back-offs.
    pub fn reserve(&self, n: usize, outlook: Outlook) -> [f64; MAX_LAYERS] {
        let consumed = self.consumption(n);
        let (mut at_once, mut in_turn) = ([0.0; MAX_LAYERS], [0.0; MAX_LAYERS]);
        if self.backoffs == 0 {
            return at_once;
        }
        let kept = (0..self.backoffs).fold(outlook.rate, |rate, _| rate * self.keep);
        self.add_deficit(&mut at_once, consumed - kept, outlook.slope, 1.0);
        self.add_deficit(&mut in_turn, consumed - self.keep * outlook.rate, outlook.slope, 1.0);
        let again = f64::from(self.backoffs - 1);
        self.add_deficit(&mut in_turn, consumed * (1.0 - self.keep), outlook.slope, again);
        let total = |bits: &[f64; MAX_LAYERS]| bits.iter().sum::<f64>();
        if total(&at_once) >= total(&in_turn) { at_once } else { in_turn }
    }

    /// Applies the rules once: drops as many layers as necessary, or adds one.
    pub fn adapt(&mut self, outlook: Outlook, buffers: &Buffers) -> Option<LayerChange> {
        let before = self.active;
        while self.active > 1 && !self.is_sustained(outlook, buffers) {
            self.active -= 1;
        }
        if self.active < before {
            return Some(LayerChange::Dropped);
        }
        let more = self.active + 1;
        if more > self.count || outlook.rate < self.consumption(more) {
            return None;
        }
        let reserve: f64 = self.reserve(more, outlook).iter().sum();
        let held: f64 = buffers.bits[..self.active].iter().sum();
        let full = buffers.limit_s * self.consumption(self.active);
        if held < reserve.min(0.9 * full) {
            return None;
        }
        self.active = more;
        Some(LayerChange::Added)
    }

    /// Whether the buffers can supply the present deficit.
    fn is_sustained(&self, outlook: Outlook, buffers: &Buffers) -> bool {
        let height = self.consumption(self.active) - outlook.rate;
        if height <= 0.0 {
            return true;
        }
        let layers = || self.rates.iter().zip(&buffers.bits).take(self.active).enumerate();
        (1..1u32 << self.active).all(|set| {
            let (mut held, mut others) = (0.0, 0.0);
            for (i, (rate, bits)) in layers() {
                match set >> i & 1 {
                    1 => held += bits,
                    _ => others += rate,
                }
            }
            let rest = (height - others).max(0.0);
            held >= rest * rest / (2.0 * outlook.slope)
        })
    }

    /// The layer for which to send next; `None` if every buffer is full.
    pub fn next_layer(&self, outlook: Outlook, buffers: &Buffers) -> Option<usize> {
        let short = |target: &[f64; MAX_LAYERS]| {
            (0..self.active).find(|i| {
                let max = buffers.limit_s * self.rates[*i];
                buffers.bits[*i] < target[*i].min(max)
            })
        };
        let ahead = |i: usize| buffers.bits[i] / self.rates[i];
        // Layers behind their margin come first.
        let behind = || (0..self.active).find(|i| buffers.bits[*i] < 0.0);
        behind()
            .or_else(|| short(&self.deficit(self.active, outlook)))
            .or_else(|| short(&self.reserve(self.active, outlook)))
            .or_else(|| {
                (0..self.active)
                    .filter(|i| ahead(*i) < buffers.limit_s)
                    .min_by(|a, b| ahead(*a).total_cmp(&ahead(*b)))
            })
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
