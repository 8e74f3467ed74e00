//! The kernel's packets and super-frames as bytes.

pub mod checksum;
pub mod frame;
pub mod ip;
pub mod join;
pub mod split;

#[cfg(test)]
mod tests;
