use super::*;

fn path(mbit: f64) -> MeasuredPath {
    let rate = Rate::from_bps_f64(mbit * 1e6);
    let rtt = Duration::from_millis(80);
    MeasuredPath::from(PathHints { rate: Some(rate), rtt: Some(rtt), loss: None })
}

fn in_folder() -> (tempfile::TempDir, LearnedPaths) {
    let folder = tempfile::tempdir().unwrap();
    let learned = LearnedPaths::at(folder.path().join("paths.toml"));
    (folder, learned)
}

#[test]
fn learned_path_is_found_and_malformed_line_named() {
    let (_folder, learned) = in_folder();
    assert_eq!(learned.get("a:1").unwrap(), None);
    learned.keep("a:1", path(1.5)).unwrap();
    learned.keep("[::1]:2", MeasuredPath::default()).unwrap();
    assert_eq!(learned.get("a:1").unwrap().unwrap().path, path(1.5).path);
    let mut all_is_lost = path(1.0);
    all_is_lost.path.loss = Some(2.0);
    assert!(learned.keep("a:1", all_is_lost).is_err());
    for text in ["x", "['a:1']\nloss = 7.0\n", "['a:1']\nspeed = 1\n"] {
        std::fs::write(learned.path(), text).unwrap();
        assert!(learned.get("a:1").unwrap_err().line.contains("paths.toml"));
    }
}

#[test]
fn old_paths_are_forgotten_but_not_the_users() {
    let (_folder, learned) = in_folder();
    let long_ago = now() - LASTS - 1;
    std::fs::write(learned.path(), "['by-hand:1']\nrate_bps = 5.0\n").unwrap();
    learned.keep_at(long_ago, "old:1", path(1.0)).unwrap();
    assert_eq!(learned.get("old:1").unwrap(), None);
    learned.keep("new:1", path(2.0)).unwrap();
    let all = learned.load().unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["by-hand:1", "new:1"]);
}

#[test]
fn the_file_stays_small_and_the_oldest_goes() {
    let (_folder, learned) = in_folder();
    let first = now() - 10_000;
    let mut text = String::from("['by-hand:1']\nrate_bps = 5.0\n");
    for i in 0..MAX_PLACES as u64 {
        text += &format!("['p:{i}']\nmeasured = {}\n", first + i);
    }
    std::fs::write(learned.path(), text).unwrap();
    learned.keep("new:1", path(1.0)).unwrap();
    let all = learned.load().unwrap();
    assert_eq!(all.len(), MAX_PLACES);
    let there = |name: &str| all.contains_key(name);
    assert!(there("new:1") && there("by-hand:1") && there("p:2"));
    assert!(!there("p:0") && !there("p:1"));
}

#[test]
fn a_client_is_known_by_its_key_and_address() {
    let of = |key: u8, a: &str| client(&[key; 32], a.parse().unwrap());
    assert_eq!(of(1, "::ffff:192.0.2.77"), of(1, "192.0.2.77"));
    for other in [of(2, "192.0.2.77"), of(1, "192.0.2.78"), of(1, "2001:db8::1")] {
        assert_ne!(other, of(1, "192.0.2.77"));
    }
}

/// A client that creates a key for every connection must not evict other clients from the file.
#[test]
fn one_address_has_few_places_whatever_its_keys() {
    let (_folder, learned) = in_folder();
    let honest = client(&[1; 32], "192.0.2.1".parse().unwrap());
    learned.keep(&honest, path(2.0)).unwrap();
    for key in 2..100 {
        let hostile = client(&[key; 32], "198.51.100.1".parse().unwrap());
        learned.keep(&hostile, path(1.0)).unwrap();
    }
    let all = learned.load().unwrap();
    assert!(all.contains_key(&honest));
    assert_eq!(all.len(), 1 + MAX_OF_ADDRESS);
}

/// False acknowledgements of a receiver raise the measured rate, and a server may report any rate.
#[test]
fn no_rate_is_kept_that_was_not_delivered() {
    let found = PathHints { rate: Some(Rate::from_bps(2_170_000_000)), rtt: None, loss: None };
    let begin = Instant::now();
    let at = |ms: u64| begin + std::time::Duration::from_millis(ms);
    let delivered = |total: u64, ms: u64| {
        let mut delivered = Delivered::default();
        (0..=ms / 50).for_each(|i| delivered.seen(at(i * 50), total * i * 50 / ms));
        delivered
    };
    let rate = |d: &Delivered| {
        MeasuredPath::verified(&found, d).map(|c| c.path.rate.unwrap().as_bps() as f64)
    };
    let slow = rate(&delivered(1_250_000, 10_000)).unwrap();
    assert!((0.9e6..1.01e6).contains(&slow), "{slow}");
    assert_eq!(rate(&delivered(999_999, 10_000)), None, "too little to say something");
    // All at once: the rate is that over a quarter of a second.
    let mut burst = Delivered::default();
    burst.seen(at(0), 0);
    burst.seen(at(1), 2_000_000);
    assert_eq!(rate(&burst), Some(64e6));
    // A lower measured rate is not raised.
    let slow = PathHints { rate: Some(Rate::from_bps(500_000)), ..found };
    let kept = MeasuredPath::verified(&slow, &delivered(1_250_000, 10_000)).unwrap();
    assert_eq!(kept.path.rate, Some(Rate::from_bps(500_000)));
}

#[test]
fn a_path_with_another_round_trip_time_is_another_path() {
    let known = path(1.0);
    assert!(known.may_be(Duration::from_millis(80)) && known.may_be(Duration::from_millis(500)));
    assert!(!known.may_be(Duration::from_millis(30)) && !known.may_be(Duration::from_secs(1)));
    assert!(MeasuredPath::default().may_be(Duration::from_secs(1)));
}

/// RFC 9959 section 3.5: a stored path whose first flight met congestion is forgotten, unless it was measured anew.
#[test]
fn a_path_that_met_congestion_is_forgotten() {
    let (_folder, learned) = in_folder();
    for (found, retreated, left) in
        [(None, false, Some(1.0)), (Some(path(2.0)), true, Some(2.0)), (None, true, None)]
    {
        learned.keep("a:1", path(1.0)).unwrap();
        learned.end("a:1", found, retreated).unwrap();
        let now = learned.get("a:1").unwrap().map(|known| known.path);
        assert_eq!(now, left.map(|mbps| path(mbps).path), "{retreated}");
    }
}
