//! The words after a command: flags, some with a value after them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads flags one after another.
pub struct Flags<'a> {
    words: std::slice::Iter<'a, String>,
    flag: &'a str,
}

impl<'a> Flags<'a> {
    pub fn new(words: &'a [String]) -> Flags<'a> {
        Flags { words: words.iter(), flag: "" }
    }

    /// The next flag.
    pub fn advance(&mut self) -> Option<&'a str> {
        self.flag = self.words.next()?;
        Some(self.flag)
    }

    /// The value of the present flag.
    pub fn value(&mut self) -> Result<&'a str, String> {
        let value = self.words.next().map(String::as_str);
        value.ok_or_else(|| format!("{} wants a value after it", self.flag))
    }

    /// A value of several words with commas between them.
    #[cfg(feature = "measure")]
    pub fn list(&mut self) -> Result<Vec<String>, String> {
        Ok(self.value()?.split(',').map(|word| word.trim().to_string()).collect())
    }

    /// A number in a range.
    pub fn number<N: FromStr + PartialOrd + Display>(
        &mut self,
        range: RangeInclusive<N>,
    ) -> Result<N, String> {
        let text = self.value()?;
        let number = text.parse().ok().filter(|n| range.contains(n));
        let min = range.start();
        let max = range.end();
        number.ok_or_else(|| format!("{} '{text}': {min} to {max}", self.flag))
    }

    /// The error of a flag that the command does not have.
    #[cfg(feature = "measure")]
    pub fn unknown<T>(&self, known: &str) -> Result<T, String> {
        Err(format!("'{}' is not known; there are {known}", self.flag))
    }
}
