use super::*;
use crate::partial_file::open_regular;
use crate::requests::RequestSlot;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn old_file(dir: &Path, name: &str, bytes: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..bytes).map(|i| (i / 7 % 251) as u8).collect();
    std::fs::write(dir.join(name), &content).unwrap();
    content
}

fn source(key: u8) -> RequestSource {
    RequestSource::new(Some("192.0.2.1".parse().unwrap()), Some([key; 32]), false)
}

/// Hashes a prefix; also returns the bytes read for it.
fn hashed(h: &Hashing, dir: &Dir, name: &str, max: u64) -> (u64, blake3::Hash, u64) {
    let slot = RequestSlot::unlimited();
    let mut file = open_regular(dir, Path::new(name), name).unwrap();
    let hash = h.beginning(&mut file, max, name, &source(1), &slot.view(), &mut || Ok(()));
    let (bytes, hasher) = hash.unwrap();
    // The file's position is behind the prefix.
    let mut next = [0];
    let n = std::io::Read::read(&mut file, &mut next).unwrap();
    let at = file.stream_position().unwrap() - n as u64;
    assert_eq!(at, bytes);
    (bytes, hasher.finalize(), slot.view().bytes())
}

/// Twenty claims to hold a prefix of a file cost one reading of it, whatever lengths they name. A file that was written
/// since is read again.
#[test]
#[cfg(unix)]
fn hashed_file_is_not_read_again_until_written() {
    let folder = tempfile::tempdir().unwrap();
    let size = 40 << 20;
    let mut content = old_file(folder.path(), "f", size);
    let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
    let unsettled = Hashing::caching_after(Duration::from_secs(3600));
    let (_, _, first) = hashed(&unsettled, &dir, "f", size as u64);
    let (_, _, again) = hashed(&unsettled, &dir, "f", size as u64);
    assert_eq!(
        (first, again),
        (size as u64, size as u64),
        "a file written just now may still change"
    );
    let h = Hashing::caching_after(Duration::ZERO);
    let mut read = 0;
    for claim in 0..20 {
        let max = size as u64 - claim * 1000;
        let (bytes, hash, cost) = hashed(&h, &dir, "f", max);
        assert_eq!((bytes, hash), (max, blake3::hash(&content[..max as usize])));
        read += cost;
    }
    // The whole file once, and the last slice for each other length.
    assert!(read <= size as u64 + 20 * SLICE, "{read}");
    assert_eq!(hashed(&h, &dir, "f", size as u64).2, 0);
    content[5] ^= 1;
    std::fs::write(folder.path().join("f"), &content).unwrap();
    let (_, hash, cost) = hashed(&h, &dir, "f", size as u64);
    assert_eq!((hash, cost), (blake3::hash(&content), size as u64));
}

#[test]
fn remembered_hashes_are_bounded() {
    let mut known = HashCache::default();
    for n in 0..5000 {
        let file = Unchanged { device: 0, inode: n / 100, size: 1, times: [0; 2] };
        known.keep(file, n % 100, &Hasher::new());
    }
    assert!(known.states <= MAX_STATES);
    assert_eq!(known.states, known.files.values().map(|f| f.1.len()).sum::<usize>());
}

/// A client that requests many hashes gets as many turns as one that requests one.
#[test]
fn everybody_has_a_turn() {
    let mut turns = Turns::default();
    let scopes = |key: u8| source(key).scopes().to_vec();
    for ticket in 0..20 {
        turns.waiting.insert(ticket, scopes(1));
    }
    turns.waiting.insert(20, scopes(2));
    let mut order = Vec::new();
    while let Some(first) = turns.first() {
        for scope in turns.waiting.remove(&first).unwrap() {
            *turns.had.entry(scope).or_default() += 1;
        }
        order.push(first);
    }
    assert_eq!(order[..3], [0, 20, 1]);
}

#[test]
fn two_hash_at_the_same_time_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..6 {
        old_file(folder.path(), &n.to_string(), 300_000);
    }
    let h = Hashing::default();
    let now = Arc::new(AtomicUsize::new(0));
    let max = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..6_u8 {
            let h = &h;
            let now = &now;
            let max = &max;
            let path = folder.path();
            scope.spawn(move || {
                let dir = Dir::open_ambient_dir(path, ambient_authority()).unwrap();
                let name = n.to_string();
                let mut file = open_regular(&dir, Path::new(&name), &name).unwrap();
                let slot = RequestSlot::unlimited();
                let mut inside = false;
                h.beginning(&mut file, u64::MAX, &name, &source(n), &slot.view(), &mut || {
                    // The tick is also called while the hash waits: then no bytes were moved yet.
                    if slot.view().bytes() > 0 && !inside {
                        inside = true;
                        max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                    Ok(())
                })
                .unwrap();
            });
        }
    });
    assert!((1..=AT_ONCE).contains(&max.into_inner()));
}
