//! Connections that are cut at any byte: a repeated request resumes, and the result has the same bytes.

use crate::Error;
use crate::bench_tests::{Memory, bytes, control, is_cut, open, random_key};
use crate::client::{Summary, get, put};
use crate::path::{CleanPath, part_name};
use crate::service::Permits;
use std::path::Path;
use std::sync::atomic::Ordering;

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// Where the next attempt is cut: any position, with small and large budgets equally likely.
fn cut_at(seed: u64, attempt: u64) -> i64 {
    let max = 1 << random_key(seed, 2 * attempt, 19);
    random_key(seed, 2 * attempt + 1, max) as i64
}

/// Repeats `transfer`, which moves `f` between the served folder and the client's, until it is not cut any more.
fn resumed(
    permits: fn() -> Permits,
    to_client: bool,
    transfer: fn(&Memory, &Path) -> Result<Summary, Error>,
) {
    // At once, since each waits for the disk.
    let all = std::thread::scope(|scope| {
        let lanes = [0..50, 50..100, 100..150, 150..200];
        let lanes = lanes
            .map(|seeds| scope.spawn(move || resumed_each(seeds, permits, to_client, transfer)));
        lanes.map(|lane| lane.join().unwrap())
    });
    let (cuts, held) = all.iter().fold((0, 0), |sum, lane| (sum.0 + lane.0, sum.1 + lane.1));
    assert!(cuts > 500 && held > 1_000_000, "{cuts} cuts, {held} bytes held: nothing was tested");
}

/// The cuts, and the bytes that were held after them.
fn resumed_each(
    seeds: std::ops::Range<u64>,
    permits: fn() -> Permits,
    to_client: bool,
    transfer: fn(&Memory, &Path) -> Result<Summary, Error>,
) -> (u64, u64) {
    let mut cuts = 0;
    let mut held = 0;
    for seed in seeds {
        let root = tempfile::tempdir().unwrap();
        let here = tempfile::tempdir().unwrap();
        let (from, to) = if to_client { (&root, &here) } else { (&here, &root) };
        let content = bytes(seed, random_key(seed, 1000, 400_000) as usize);
        std::fs::write(from.path().join("f"), &content).unwrap();
        let memory = Memory::new(root.path(), permits());
        let target = to.path().join("f");
        let part = to.path().join(part_name("f"));
        let mut kept = 0;
        for attempt in 0.. {
            // Now and then the connection is not cut, so that the test ends.
            let budget = if attempt % 12 == 11 { i64::MAX } else { cut_at(seed, attempt) };
            memory.budget.store(budget, Ordering::SeqCst);
            let result = transfer(&memory, here.path());
            memory.settle();
            if let Ok(done) = result {
                held += done.held;
                assert_eq!(std::fs::read(&target).unwrap(), content, "seed {seed}");
                assert!(!part.exists(), "seed {seed}");
                break;
            }
            assert!(is_cut(&result), "seed {seed}: {result:?}");
            cuts += 1;
            // The cut may have hit an upload's last frame: then the file is complete.
            if target.exists() && !to_client {
                assert_eq!(std::fs::read(&target).unwrap(), content, "seed {seed}");
                continue;
            }
            assert!(!target.exists(), "seed {seed}: half a file under its name");
            assert!(size(&part) >= kept, "seed {seed}: what was held is gone");
            kept = size(&part);
        }
    }
    (cuts, held)
}

#[test]
fn download_cut_at_any_byte_resumes_to_identical_bytes() {
    resumed(Permits::default, true, |memory, here| {
        get(memory, &CleanPath::read("f")?, &open(here), "f", &control())
    });
}

#[test]
fn upload_cut_at_any_byte_resumes_to_identical_bytes() {
    resumed(
        || Permits { put: true, overwrite: true, ..Permits::default() },
        false,
        |memory, here| put(memory, &open(here), Path::new("f"), &CleanPath::read("f")?, &control()),
    );
}

#[test]
fn source_changed_between_attempts_never_gives_a_mixture() {
    for seed in 0..60 {
        let root = tempfile::tempdir().unwrap();
        let here = tempfile::tempdir().unwrap();
        let mut versions = vec![bytes(seed, 200_000)];
        // The same size; a changed byte in the held part; a shorter file; a longer one.
        let mut second = versions[0].clone();
        second[random_key(seed, 1, 100_000) as usize] ^= 1;
        versions.push(second);
        versions.push(versions[0][..150_000].to_vec());
        versions.push([&versions[0][..], b"more"].concat());
        let memory = Memory::new(root.path(), Permits::default());
        let path = CleanPath::read("f").unwrap();
        for (i, version) in versions.iter().enumerate() {
            std::fs::write(root.path().join("f"), version).unwrap();
            let last = i + 1 == versions.len();
            let budget = if last {
                i64::MAX
            } else {
                60_000 + random_key(seed, 9 + i as u64, 80_000) as i64
            };
            memory.budget.store(budget, Ordering::SeqCst);
            let result = get(&memory, &path, &open(here.path()), "f", &control());
            memory.settle();
            if result.is_ok() {
                assert_eq!(&std::fs::read(here.path().join("f")).unwrap(), version, "seed {seed}");
            }
            assert_eq!(result.is_ok(), here.path().join("f").exists() && result.is_ok());
        }
        assert_eq!(std::fs::read(here.path().join("f")).unwrap(), versions[3], "seed {seed}");
    }
}
