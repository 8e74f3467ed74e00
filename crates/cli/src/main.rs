//! The command `narrows`.

use std::process::ExitCode;

fn main() -> ExitCode {
    narrows::run(narrows::Registry::new())
}
