//! A placeholder.
use super::outcome::Outcome;
/// The page.
pub fn html(_o: &Outcome<'_>) -> String {
    String::new()
}
