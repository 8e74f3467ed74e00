//! Software versions of functions that round differently in different C libraries.
//!
//! Runs of the same scenario and seed are identical on every machine only if `exp`, `ln` and `pow`
//! are. `sqrt` and the four operations are exact by IEEE 754 and need no wrapper.

/// e^x.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}
/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}
/// Logarithm to base 2.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}
/// x^y.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}
/// Cube root.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// The sine of an angle in radians.
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}
