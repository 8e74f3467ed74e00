//! The command `narrows`.

use std::process::ExitCode;

fn main() -> ExitCode {
    narrows_cli::run(narrows_cli::Registry::new())
}
