//! Files that users may write by hand, and addresses: no panic, and accepted texts are printed and parsed again.

use narrows_files::{CleanPath, Url};
use narrows_peers::access::{AllowList, known};
use narrows_peers::{error, key, learned};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(error::shown(text).chars().all(|c| !c.is_control()));
    if let Ok(url) = Url::read(text) {
        let shown = url.to_string();
        assert_eq!(Url::read(&shown).as_ref(), Ok(&url), "{shown}");
    }
    if let Ok(key) = key::read(text) {
        assert_eq!(key::read(&key::text(&key)), Ok(key));
    }
    if let Ok(path) = CleanPath::read(text) {
        assert_eq!(CleanPath::read(&path.to_string()), Ok(path));
    }
    one_line(AllowList::read(text).map(|list| assert!(list.len() <= text.len())));
    one_line(known(text, "host:1").map(|_| ()));
    one_line(learned::read(text).map(|all| {
        // Accepted values are usable: no rate of zero, no share above one.
        for known in all.values() {
            assert!(known.path.rate.is_none_or(|rate| rate.as_bps() >= 1));
            assert!(known.path.loss.is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }));
}

fn one_line(result: Result<(), narrows_peers::Error>) {
    if let Err(e) = result {
        assert!(e.line.chars().all(|c| !c.is_control()), "{:?}", e.line);
    }
}
