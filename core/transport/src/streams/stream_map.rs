//! A map by stream ID, for streams in use. Streams of a kind are opened in order and usually end soon. So each kind
//! (opener and direction: the two low bits of an ID) has a window of consecutive streams, in which the ID gives the
//! index. Streams that stay open while many newer ones come and go move from the window into an ordered map. So memory
//! is proportional to the number of entries, for any IDs in use.

use std::collections::{BTreeMap, VecDeque};

/// Kinds of streams: client or server, bidirectional or unidirectional.
const KINDS: usize = 4;
/// Limit on empty places of a window, beyond the number in use.
const MAX_EMPTY: usize = 32;
/// Limit on the capacity of an empty window, in places.
const MAX_KEPT: usize = 64;

/// Values by stream ID.
#[derive(Debug)]
pub struct StreamMap<T> {
    /// Absent before the first stream of a kind: most connections use one or two kinds.
    windows: [Option<Box<OrdinalWindow<T>>>; KINDS],
    /// Streams older than their window, by ID.
    old: BTreeMap<u64, T>,
    len: usize,
}

#[derive(Debug)]
struct OrdinalWindow<T> {
    /// Ordinal of the first stream, which is in use unless the window is empty.
    first: u64,
    places: VecDeque<Option<T>>,
    used: usize,
}

impl<T> Default for OrdinalWindow<T> {
    fn default() -> OrdinalWindow<T> {
        OrdinalWindow { first: 0, places: VecDeque::new(), used: 0 }
    }
}

impl<T> Default for StreamMap<T> {
    fn default() -> StreamMap<T> {
        StreamMap { windows: Default::default(), old: BTreeMap::new(), len: 0 }
    }
}

#[inline]
fn kind(id: u64) -> usize {
    (id % KINDS as u64) as usize
}
#[inline]
fn ordinal(id: u64) -> u64 {
    id / KINDS as u64
}

impl<T> OrdinalWindow<T> {
    #[inline]
    fn index(&self, ordinal: u64) -> Option<usize> {
        usize::try_from(ordinal.checked_sub(self.first)?).ok()
    }
    /// Removes empty places at the beginning.
    #[inline]
    fn trim(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        if self.places.is_empty() && self.places.capacity() > MAX_KEPT {
            self.places = VecDeque::new();
        }
    }
    #[inline]
    fn is_sparse(&self) -> bool {
        self.places.len() > 2 * self.used + MAX_EMPTY
    }
}

impl<T> StreamMap<T> {
    /// The value of this stream.
    #[inline]
    pub fn get(&self, id: u64) -> Option<&T> {
        let window = self.windows.get(kind(id))?.as_deref()?;
        match window.index(ordinal(id)) {
            Some(index) => window.places.get(index)?.as_ref(),
            None => self.old.get(&id),
        }
    }
    /// Mutable access to the value of this stream.
    #[inline]
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let window = self.windows.get_mut(kind(id))?.as_deref_mut()?;
        match window.index(ordinal(id)) {
            Some(index) => window.places.get_mut(index)?.as_mut(),
            None => self.old.get_mut(&id),
        }
    }
    /// Whether this stream has a value.
    #[inline]
    pub fn contains(&self, id: u64) -> bool {
        self.get(id).is_some()
    }

    /// Sets the value of a stream. Returns the previous one.
    #[inline]
    pub fn insert(&mut self, id: u64, value: T) -> Option<T> {
        let StreamMap { windows, old, len } = self;
        let window = &mut **windows.get_mut(kind(id))?.get_or_insert_default();
        if window.places.is_empty() {
            // `first` never decreases: `old` has the streams below it.
            window.first = window.first.max(ordinal(id));
        }
        let before = match window.index(ordinal(id)) {
            None => old.insert(id, value),
            Some(index) if index < window.places.len() => {
                let before = window.places.get_mut(index)?.replace(value);
                window.used += usize::from(before.is_none());
                before
            }
            Some(index) => {
                if index > window.places.len() + MAX_EMPTY {
                    // The gap is too large to fill, so the window restarts there.
                    move_out(window, old, kind(id), usize::MAX);
                    window.first = ordinal(id);
                } else {
                    window.places.resize_with(index, || None);
                }
                window.places.push_back(Some(value));
                window.used += 1;
                None
            }
        };
        *len += usize::from(before.is_none());
        if window.is_sparse() {
            move_out(window, old, kind(id), 1);
        }
        before
    }

    /// The value of a stream, which is inserted if absent.
    #[inline]
    pub fn get_or_insert_default(&mut self, id: u64) -> Option<&mut T>
    where
        T: Default,
    {
        if !self.contains(id) {
            self.insert(id, T::default());
        }
        self.get_mut(id)
    }

    /// Removes and returns the value of a stream.
    #[inline]
    pub fn remove(&mut self, id: u64) -> Option<T> {
        let StreamMap { windows, old, len } = self;
        let window = windows.get_mut(kind(id))?.as_deref_mut()?;
        let removed = match window.index(ordinal(id)) {
            None => old.remove(&id)?,
            Some(index) => {
                let removed = window.places.get_mut(index)?.take()?;
                window.used -= 1;
                window.trim();
                removed
            }
        };
        *len -= 1;
        if window.is_sparse() {
            move_out(window, old, kind(id), 1);
        }
        Some(removed)
    }

    /// Number of streams with a value.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether no stream has a value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// All values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let windows = self.windows.iter().flatten().flat_map(|w| w.places.iter().flatten());
        self.old.values().chain(windows)
    }
    /// Mutable access to all values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let windows = self.windows.iter_mut().flatten().flat_map(|w| w.places.iter_mut().flatten());
        self.old.values_mut().chain(windows)
    }
    /// The IDs of all streams with a value.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        let windows = (0u64..).zip(&self.windows).flat_map(|(kind, window)| {
            let places = window.iter().flat_map(|w| (w.first..).zip(&w.places));
            places.filter(|p| p.1.is_some()).map(move |p| p.0 * KINDS as u64 + kind)
        });
        self.old.keys().copied().chain(windows)
    }

    /// Releases unused capacity of the windows.
    pub fn release(&mut self) {
        for window in self.windows.iter_mut().flatten() {
            window.places.shrink_to_fit();
        }
    }
    /// Bytes on the heap, without those of the values.
    pub fn memory(&self) -> usize {
        let places: usize = self.windows.iter().flatten().map(|w| w.places.capacity()).sum();
        places * size_of::<Option<T>>() + 2 * self.old.len() * size_of::<(u64, T)>()
    }
}

/// Moves the first streams of a window to `old`: at least `least` of them, and until the window is no longer sparse.
#[cold]
fn move_out<T>(
    window: &mut OrdinalWindow<T>,
    old: &mut BTreeMap<u64, T>,
    kind: usize,
    least: usize,
) {
    let mut moved = 0;
    while moved < least || window.is_sparse() {
        let Some(place) = window.places.pop_front() else { break };
        if let Some(value) = place {
            old.insert(window.first * KINDS as u64 + kind as u64, value);
            window.used -= 1;
            moved += 1;
        }
        window.first += 1;
        window.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Operations of an application or a peer.
    #[derive(Clone, Copy, Debug)]
    enum MapOperation {
        /// Opens the next stream of a kind, after skipping this many IDs.
        Open(u64, u64),
        /// Sets the value of any ID.
        Set(u64),
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = MapOperation> {
        prop_oneof![
            8 => (0u64..4, 0u64..3).prop_map(|(kind, skipped)| MapOperation::Open(kind, skipped)),
            1 => (0u64..4).prop_map(|kind| MapOperation::Open(kind, 1000)),
            1 => (0u64..3000).prop_map(MapOperation::Set),
            8 => (0usize..1000).prop_map(MapOperation::Remove),
        ]
    }

    proptest! {
        /// The map equals an ordered map, and its windows are never much longer than the number of their values.
        #[test]
        fn stream_map_matches_a_map(steps in prop::collection::vec(step(), 1..400)) {
            let mut map = StreamMap::default();
            let mut model = BTreeMap::new();
            let mut next = [0; KINDS];
            for (value, step) in steps.into_iter().enumerate() {
                let id = match step {
                    MapOperation::Open(kind, skipped) => {
                        next[kind as usize] += skipped + 1;
                        (next[kind as usize] - 1) * 4 + kind
                    }
                    MapOperation::Set(id) => id,
                    MapOperation::Remove(nth) => {
                        let id = model.keys().nth(nth % model.len().max(1)).copied().unwrap_or(1);
                        prop_assert_eq!(map.remove(id), model.remove(&id));
                        id
                    }
                };
                if !matches!(step, MapOperation::Remove(_)) {
                    prop_assert_eq!(map.insert(id, value), model.insert(id, value));
                }
                prop_assert_eq!(map.get(id), model.get(&id));
                prop_assert_eq!(map.get_mut(id), model.get_mut(&id));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                for window in map.windows.iter().flatten() {
                    prop_assert!(window.places.len() <= 2 * window.used + MAX_EMPTY);
                    prop_assert!(!matches!(window.places.front(), Some(None)));
                }
            }
            let mut ids: Vec<u64> = map.ids().collect();
            let mut values: Vec<usize> = map.values().copied().collect();
            ids.sort_unstable();
            values.sort_unstable();
            let mut expected: Vec<usize> = model.values().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(ids, model.keys().copied().collect::<Vec<u64>>());
            prop_assert_eq!(values, expected);
        }
    }

    /// A stream that stays open does not keep the places of other streams.
    #[test]
    fn a_stream_that_stays_open_holds_no_places_of_others() {
        let mut map = StreamMap::default();
        for ordinal in 0..1_000_000u64 {
            map.insert(ordinal * 4, ordinal);
            if ordinal % 250_000 != 0 {
                map.remove(ordinal * 4);
            }
            assert!(map.memory() <= 16 * (4 * MAX_EMPTY + 8), "{} bytes", map.memory());
        }
        assert_eq!(map.ids().collect::<Vec<u64>>(), [0, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(map.get(1_000_000), Some(&250_000));
    }
}
