//! The couplings, one file each.

pub(crate) mod balia;
pub(crate) mod lia;
pub(crate) mod olia;
pub(crate) mod shared;
#[cfg(test)]
mod tests;
pub(crate) mod uncoupled;
