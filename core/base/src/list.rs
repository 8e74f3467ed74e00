//! Lists of parts that are chosen by name: the built-in ones, and those that a program adds.
//!
//! Parsers, listings and tests that cover every part iterate over these lists, so they include an added part. A list
//! can be extended only once and only before it is first read, so a name means the same thing throughout a process.
//!
//! A part with a limited lifetime, such as a class of an interpreter, is *lent* instead. While its [`Lent`] lives, the
//! part is found by its name. It is in no listing and no family.

use crate::spec::SpecError;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A part that users choose by name.
pub trait Listed: 'static {
    /// The name that users write.
    fn name(&self) -> &'static str;
}

/// All parts of one kind.
#[derive(Debug)]
pub struct List<E: 'static> {
    kind: &'static str,
    built_in: &'static [E],
    added: OnceLock<Vec<E>>,
    lent: RwLock<Vec<&'static E>>,
}

/// Keeps a part in its list until dropped.
#[derive(Debug)]
#[must_use]
pub struct Lent<E: 'static> {
    list: &'static List<E>,
    part: &'static E,
}

impl<E> Drop for Lent<E> {
    fn drop(&mut self) {
        let mut lent = self.list.lent.write().unwrap_or_else(PoisonError::into_inner);
        lent.retain(|part| !std::ptr::eq(*part, self.part));
    }
}

impl<E: Listed> List<E> {
    /// A list of the built-in parts of a kind, such as `"queue"`.
    pub const fn new(kind: &'static str, built_in: &'static [E]) -> List<E> {
        List { kind, built_in, added: OnceLock::new(), lent: RwLock::new(Vec::new()) }
    }

    /// All parts: the built-in ones first, then additions in the order in which they were added. Lent parts are left
    /// out: listings must not depend on other threads.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static E> + Clone {
        self.built_in.iter().chain(self.added.get_or_init(Vec::new))
    }

    /// The built-in parts only. Does not end the time in which parts can be added.
    pub const fn built_in(&self) -> &'static [E] {
        self.built_in
    }

    /// The names of all parts.
    pub fn names(&'static self) -> Vec<&'static str> {
        self.iter().map(Listed::name).collect()
    }

    /// Finds a part by name.
    ///
    /// # Errors
    /// No part has this name; the message suggests a similar one.
    pub fn find(&'static self, name: &str) -> Result<&'static E, SpecError> {
        self.iter().find(|e| e.name() == name).or_else(|| self.find_lent(name)).ok_or_else(|| {
            let lent = self.lent();
            let names = self.iter().chain(lent).map(Listed::name).collect::<Vec<_>>();
            SpecError::unknown(self.kind, name, &names)
        })
    }

    /// The parts that are lent at present.
    pub fn lent(&self) -> Vec<&'static E> {
        self.lent.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find_lent(&self, name: &str) -> Option<&'static E> {
        let lent = self.lent.read().unwrap_or_else(PoisonError::into_inner);
        lent.iter().copied().find(|e| e.name() == name)
    }

    /// Adds a part until the result is dropped. Its name may have capital letters.
    ///
    /// # Errors
    /// The name cannot be written in a specification, or another part has it.
    pub fn lend(&'static self, part: &'static E) -> Result<Lent<E>, SpecError> {
        let kind = self.kind;
        let name = part.name();
        if !is_name(&name.to_ascii_lowercase()) {
            return Err(SpecError::new(format!(
                "{kind} '{name}' cannot be lent: a name is at most 40 letters, digits, '-', '_' and '+', and begins \
                 with a letter"
            )));
        }
        if self.iter().any(|e| e.name() == name) {
            return Err(SpecError::new(format!(
                "{kind} '{name}' cannot be lent: Narrows has a {kind} of that name"
            )));
        }
        let mut lent = self.lent.write().unwrap_or_else(PoisonError::into_inner);
        if lent.iter().any(|e| e.name() == name) {
            return Err(SpecError::new(format!(
                "{kind} '{name}' cannot be lent: another {kind} of that name is in use"
            )));
        }
        lent.push(part);
        Ok(Lent { list: self, part })
    }

    /// Checks whether these parts could be added, without adding them.
    ///
    /// # Errors
    /// A name cannot be written in a specification, is in use, or occurs twice among the additions; or the list has
    /// been read or extended already.
    pub fn check(&self, additions: &[E]) -> Result<(), SpecError> {
        let kind = self.kind;
        for (i, e) in additions.iter().enumerate() {
            let name = e.name();
            if !is_name(name) {
                return Err(SpecError::new(format!(
                    "{kind} '{name}' cannot be registered: a name is lower-case letters, digits, '-', '_' and \
                     '+', and begins with a letter"
                )));
            }
            if self.built_in.iter().any(|b| b.name() == name) {
                return Err(SpecError::new(format!(
                    "{kind} '{name}' cannot be registered: Narrows has a {kind} of that name"
                )));
            }
            if additions[..i].iter().any(|b| b.name() == name) {
                return Err(SpecError::new(format!("{kind} '{name}' is registered twice")));
            }
        }
        if !additions.is_empty() && self.added.get().is_some() {
            return Err(SpecError::new(format!(
                "{kind} '{}' comes too late: the list has been read or added to already; install all additions \
                 at once, before anything else",
                additions[0].name()
            )));
        }
        Ok(())
    }

    /// Adds parts. Possible once, before the list is first read.
    ///
    /// # Errors
    /// As [`check`](List::check). After an error, the list is unchanged.
    pub fn add(&self, additions: Vec<E>) -> Result<(), SpecError> {
        self.check(&additions)?;
        if additions.is_empty() {
            return Ok(());
        }
        let kind = self.kind;
        self.added.set(additions).map_err(|late| {
            let name = late.first().map_or("", Listed::name);
            SpecError::new(format!("{kind} '{name}' comes too late: the list is in use"))
        })
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestPart(&'static str);
    impl Listed for TestPart {
        fn name(&self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn added_entries_are_found_like_built_in_ones() {
        static LIST: List<TestPart> = List::new("queue", &[TestPart("red"), TestPart("pie")]);
        LIST.add(vec![TestPart("mine"), TestPart("other-2")]).unwrap();
        assert_eq!(LIST.names(), ["red", "pie", "mine", "other-2"]);
        assert_eq!(LIST.find("mine").unwrap().0, "mine");
        let e = LIST.find("mime").err().unwrap().to_string();
        assert_eq!(e, "unknown queue 'mime'; did you mean 'mine'?");
    }

    /// A lent part is found by its name until it is returned. No listing shows it, since listings must not depend on
    /// other threads.
    #[test]
    fn lent_entry_is_found_until_it_is_returned() {
        static LIST: List<TestPart> = List::new("queue", &[TestPart("red")]);
        static MINE: TestPart = TestPart("Mine");
        let lent = LIST.lend(&MINE).unwrap();
        assert_eq!(LIST.find("Mine").unwrap().0, "Mine");
        assert_eq!(LIST.names(), ["red"]);
        let e = LIST.find("mime").err().unwrap().to_string();
        assert!(e.contains("did you mean 'Mine'"), "{e}");
        for (part, hint) in [
            (&TestPart("Mine"), "in use"),
            (&TestPart("red"), "has a"),
            (&TestPart("_x"), "a name is"),
        ] {
            let e = LIST.lend(part).err().unwrap().to_string();
            assert!(e.contains(hint) && !e.contains('\n'), "{e}");
        }
        drop(lent);
        assert!(LIST.find("Mine").is_err());
        let _again = LIST.lend(&MINE).unwrap();
    }

    #[test]
    fn a_name_has_one_meaning() {
        static LIST: List<TestPart> = List::new("queue", &[TestPart("red")]);
        for (names, hint) in [
            (&["red"][..], "has a queue of that name"),
            (&["a", "b", "a"], "registered twice"),
            (&["two words"], "a name is"),
            (&["rate,10"], "a name is"),
            (&["10ms"], "a name is"),
            (&[""], "a name is"),
        ] {
            let e = LIST.add(names.iter().map(|n| TestPart(n)).collect()).unwrap_err().to_string();
            assert!(e.contains(hint) && !e.contains('\n'), "{e}");
        }
        assert_eq!(LIST.names(), ["red"], "what was refused left nothing behind");
        let e = LIST.add(vec![TestPart("late")]).unwrap_err().to_string();
        assert!(e.contains("too late"), "{e}");
        LIST.add(Vec::new()).unwrap();
    }
}
