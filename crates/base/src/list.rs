//! Lists of parts that can be named: those that are built in, and those that a program adds.
//!
//! Whoever reads a name, shows what there is or tries every part walks one of these, so that an
//! addition is known everywhere. A list takes additions once, before anything has read it: a name
//! never means two things in one process.

use crate::spec::SpecError;
use std::sync::OnceLock;

/// A part with a name by which users know it.
pub trait Listed: 'static {
    /// The name.
    fn name(&self) -> &'static str;
}

/// A list of parts of one kind.
#[derive(Debug)]
pub struct List<E: 'static> {
    kind: &'static str,
    built_in: &'static [E],
    added: OnceLock<Vec<E>>,
}

impl<E: Listed> List<E> {
    /// The built-in parts of a kind, such as `"queue"`.
    pub const fn new(kind: &'static str, built_in: &'static [E]) -> List<E> {
        List { kind, built_in, added: OnceLock::new() }
    }

    /// What there is: first what is built in, then additions in their order.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static E> + Clone {
        self.built_in.iter().chain(self.added.get_or_init(Vec::new))
    }

    /// What is built in, whether or not additions are still possible.
    pub const fn built_in(&self) -> &'static [E] {
        self.built_in
    }

    /// The names of all.
    pub fn names(&'static self) -> Vec<&'static str> {
        self.iter().map(Listed::name).collect()
    }

    /// The part of that name.
    ///
    /// # Errors
    /// There is none; a near name is suggested.
    pub fn find(&'static self, name: &str) -> Result<&'static E, SpecError> {
        self.iter()
            .find(|e| e.name() == name)
            .ok_or_else(|| SpecError::unknown(self.kind, name, &self.names()))
    }

    /// Whether these could be added: nothing changes.
    ///
    /// # Errors
    /// A name that cannot be written in a specification, is taken, or stands twice among them; or the
    /// list has been read or added to already.
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

    /// Adds parts, once, before the list is read.
    ///
    /// # Errors
    /// As [`check`](List::check); then nothing is added.
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

    struct Part(&'static str);
    impl Listed for Part {
        fn name(&self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn additions_are_found_like_what_is_built_in() {
        static LIST: List<Part> = List::new("queue", &[Part("red"), Part("pie")]);
        LIST.add(vec![Part("mine"), Part("other-2")]).unwrap();
        assert_eq!(LIST.names(), ["red", "pie", "mine", "other-2"]);
        assert_eq!(LIST.find("mine").unwrap().0, "mine");
        let e = LIST.find("mime").err().unwrap().to_string();
        assert_eq!(e, "unknown queue 'mime'; did you mean 'mine'?");
    }

    #[test]
    fn a_name_has_one_meaning() {
        static LIST: List<Part> = List::new("queue", &[Part("red")]);
        for (names, hint) in [
            (&["red"][..], "has a queue of that name"),
            (&["a", "b", "a"], "registered twice"),
            (&["two words"], "a name is"),
            (&["rate,10"], "a name is"),
            (&["10ms"], "a name is"),
            (&[""], "a name is"),
        ] {
            let e = LIST.add(names.iter().map(|n| Part(n)).collect()).unwrap_err().to_string();
            assert!(e.contains(hint) && !e.contains('\n'), "{e}");
        }
        assert_eq!(LIST.names(), ["red"], "what was refused left nothing behind");
        let e = LIST.add(vec![Part("late")]).unwrap_err().to_string();
        assert!(e.contains("too late"), "{e}");
        LIST.add(Vec::new()).unwrap();
    }
}
