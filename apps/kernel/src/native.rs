//! ST-PD wholly inside the kernel: its parameters as `bpf/stpd.h` has them.

use crate::Error;
use narrows_base::Spec;
use narrows_congestion::Environment;
use narrows_congestion::stpd::{self, StpdParameters, StpdStartup};

/// The only controller that is inside the kernel, in both of its forms.
const NAMES: [&str; 2] = ["stpd", "stpd-paper"];
/// Binary places of windows, of errors and of gains.
const WINDOW: u32 = 32;
const ERROR: u32 = 16;
const GAIN: u32 = 24;

/// A controller that runs inside the kernel, without user space.
#[derive(Clone, Debug)]
pub struct Native {
    text: String,
    numbers: StpdParameters,
}

impl Native {
    /// `"stpd"`, with parameters: `"stpd(reference=2)"`.
    ///
    /// # Errors
    /// Another controller, or parameters that it does not have.
    pub fn new(specification: &str) -> Result<Native, Error> {
        let spec = Spec::parse(specification)?;
        let entry = narrows_congestion::find(&spec.name)?;
        if !NAMES.contains(&entry.descriptor.name) {
            return Err(Error::NotNative(entry.descriptor.name));
        }
        let settings = entry.read(&spec)?;
        entry.refuse_unread(&settings, &Environment::default())?;
        let numbers = stpd::numbers(&settings);
        Ok(Native { text: specification.to_string(), numbers })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `struct stpd_parameters`.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let n = &self.numbers;
        let mut bytes = Vec::new();
        for (value, binary) in [(n.reference, ERROR), (n.max_rise, WINDOW), (n.max_fall, WINDOW)] {
            bytes.extend((places(value, binary) as i64).to_ne_bytes());
        }
        bytes.extend(startup(n.startup).to_ne_bytes());
        bytes.extend(u32::from(n.falls).to_ne_bytes());
        bytes
    }

    /// `struct stpd_gains`, for each BDP of the table.
    pub(crate) fn gains(&self) -> impl Iterator<Item = [u8; 8]> {
        self.numbers.gains.iter().map(|(kp, kd)| {
            let [kp, kd] = [kp, kd].map(|gain| (places(*gain, GAIN) as u32).to_ne_bytes());
            [kp[0], kp[1], kp[2], kp[3], kd[0], kd[1], kd[2], kd[3]]
        })
    }
}

/// `STPD_CONTROL`, `STPD_SLOW` or `STPD_DRAIN`.
fn startup(startup: StpdStartup) -> u32 {
    match startup {
        StpdStartup::Control => 0,
        StpdStartup::Slow => 1,
        StpdStartup::Drain => 2,
    }
}

/// Rounded to `places` binary places.
fn places(value: f64, places: u32) -> f64 {
    (value * f64::from(places).exp2()).round()
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
