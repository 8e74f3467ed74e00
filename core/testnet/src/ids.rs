//! Names of the parts of a network.

/// A host, router or address translator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Its number, in the order of adding.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A duplex link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub(crate) usize);
