//! What a transfer moved.

/// The result of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Files that are now complete under their names.
    pub files: u64,
    /// Those of `files` that were complete before.
    pub unchanged: u64,
    /// Sum of the sizes of `files`.
    pub bytes: u64,
    /// File bytes moved by this transfer.
    pub moved: u64,
    /// Bytes that did not have to be moved: present from an earlier attempt, or unchanged.
    pub held: u64,
    /// Entries that cannot be transferred: links to folders, names that are not UTF-8, devices.
    pub skipped: u64,
    /// Hidden files and folders that were left out because the target folder existed before.
    pub hidden: u64,
}

impl Summary {
    pub(super) fn add(&mut self, other: Summary) {
        // A server may report any size.
        let sum = |all: &mut u64, one: u64| *all = all.saturating_add(one);
        sum(&mut self.files, other.files);
        sum(&mut self.unchanged, other.unchanged);
        sum(&mut self.bytes, other.bytes);
        sum(&mut self.moved, other.moved);
        sum(&mut self.held, other.held);
        sum(&mut self.skipped, other.skipped);
        sum(&mut self.hidden, other.hidden);
    }
}
