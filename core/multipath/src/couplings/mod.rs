//! The couplings, one file each.

pub(crate) mod balia;
pub(crate) mod lia;
pub(crate) mod olia;
#[cfg(test)]
mod tests;
pub(crate) mod uncoupled;
