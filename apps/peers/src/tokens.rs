//! Address tokens of servers, kept from one command to the next, so that a known server needs one round trip. A small
//! file of lines `ADDRESS TOKEN TIME`. It is a cache: unreadable lines count as absent. If two processes use one token
//! at once, the second needs the cookie round trip.

use crate::access::replace;
use crate::text_file;
use narrows_base::{Duration, Time};
use narrows_net::{Token, TokenStore};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most servers in the file: the newest.
const MAX_SERVERS: usize = 64;
/// Lifetime of a token at a server, s.
const LASTS: u64 = 24 * 3600;

/// The tokens of a process, in a file if there is one. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SavedTokens {
    file: Option<Arc<Path>>,
    /// With the time of each, seconds since 1970.
    tokens: Arc<Mutex<BTreeMap<SocketAddr, (Token, u64)>>>,
}

impl SavedTokens {
    /// Tokens of this file, which need not exist.
    pub fn at(file: PathBuf) -> SavedTokens {
        let tokens = Arc::new(Mutex::new(read(&file, now())));
        SavedTokens { file: Some(file.into()), tokens }
    }

    /// Writes the file, if there is one: the tokens received since it was read, and the file's current ones of other
    /// servers. If it cannot be written, the next command needs a round trip more.
    pub fn save(&self) {
        let Some(file) = &self.file else { return };
        let mut all = read(file, now());
        all.extend(self.tokens.lock().unwrap_or_else(PoisonError::into_inner).iter());
        let mut by_age: Vec<_> = all.into_iter().collect();
        by_age.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        let mut text = String::new();
        for (server, (token, time)) in by_age.into_iter().take(MAX_SERVERS) {
            let _ = write!(text, "{server} ");
            token.0.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            let _ = writeln!(text, " {time}");
        }
        let _ = replace(file, &text);
    }
}

impl TokenStore for SavedTokens {
    fn insert(&mut self, _: Time, server: SocketAddr, token: Token) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(server, (token, now()));
    }
    fn take(&mut self, _: Time, server: SocketAddr) -> Option<(Token, Duration)> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, time) = tokens.remove(&server)?;
        // The endpoint's clock ends with its process; this is the system's.
        Some((token, Duration::from_secs(now().saturating_sub(time))))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn read(file: &Path, now: u64) -> BTreeMap<SocketAddr, (Token, u64)> {
    let text = text_file::read(file, text_file::SHORT).unwrap_or_default();
    let good = text.lines().filter_map(line).filter(|(_, (_, time))| {
        // A token from the future, after the clock was set back, counts as expired.
        now.checked_sub(*time).is_some_and(|age| age < LASTS)
    });
    good.take(MAX_SERVERS).collect()
}

fn line(line: &str) -> Option<(SocketAddr, (Token, u64))> {
    let mut words = line.split_ascii_whitespace();
    let server = words.next()?;
    let hex = words.next()?;
    let time = words.next()?;
    let mut token = Token([0; 36]);
    if hex.len() != 2 * token.0.len() || words.next().is_some() {
        return None;
    }
    for (at, byte) in token.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some((server.parse().ok()?, (token, time.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(n: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], n))
    }

    #[test]
    fn saved_tokens_are_used_once_across_processes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/tokens");
        let mut first = SavedTokens::at(file.clone());
        assert_eq!(first.take(Time::ZERO, server(1)), None);
        first.insert(Time::ZERO, server(1), Token([7; 36]));
        first.insert(Time::ZERO, server(2), Token([8; 36]));
        first.save();
        let mut second = SavedTokens::at(file.clone());
        let (token, age) = second.take(Time::ZERO, server(1)).unwrap();
        assert!(token == Token([7; 36]) && age < Duration::from_secs(60));
        assert_eq!(second.take(Time::ZERO, server(1)), None, "once");
        // A token that another process wrote meanwhile stays.
        let mut third = SavedTokens::at(file.clone());
        third.insert(Time::ZERO, server(3), Token([9; 36]));
        third.save();
        second.insert(Time::ZERO, server(1), Token([10; 36]));
        second.save();
        let mut last = SavedTokens::at(file.clone());
        let all = [1, 2, 3].map(|n| last.take(Time::ZERO, server(n)).map(|(token, _)| token.0[0]));
        assert_eq!(all, [Some(10), Some(8), Some(9)]);
        for n in 0..500 {
            last.insert(Time::ZERO, server(n), Token([1; 36]));
        }
        last.save();
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), MAX_SERVERS);
    }

    /// The next process has the token's age; otherwise early data would be refused.
    #[test]
    fn the_age_of_a_token_outlasts_a_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let given = now() - 5000;
        std::fs::write(&file, format!("192.0.2.1:1 {} {given}", "07".repeat(36))).unwrap();
        let (_, age) = SavedTokens::at(file).take(Time::ZERO, server(1)).unwrap();
        assert!(age >= Duration::from_secs(5000) && age < Duration::from_secs(5060), "{age:?}");
    }

    #[test]
    fn unreadable_or_old_token_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let hex = "07".repeat(36);
        let now = now();
        let lines = [
            format!("192.0.2.1:1 {hex} {now}"),
            format!("192.0.2.1:2 {hex} {}", now - LASTS),
            format!("192.0.2.1:3 {hex} {}", now + 10_000),
            format!("192.0.2.1:4 {}é{now} 1", &hex[..70]),
            format!("192.0.2.1:5 {}zz {now}", &hex[..70]),
            format!("192.0.2.1:6 {hex} {now} more"),
            format!("nowhere {hex} {now}"),
            "192.0.2.1:8".into(),
        ];
        std::fs::write(&file, lines.join("\n")).unwrap();
        let tokens = SavedTokens::at(file.clone());
        let servers: Vec<SocketAddr> = tokens.tokens.lock().unwrap().keys().copied().collect();
        assert_eq!(servers, [server(1)]);
        std::fs::write(&file, [0xff; 100]).unwrap();
        assert!(SavedTokens::at(file).tokens.lock().unwrap().is_empty());
        // A folder in its place, or a path that cannot be written: no error.
        SavedTokens::at(folder.path().to_path_buf()).save();
    }
}
