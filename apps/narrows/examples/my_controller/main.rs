//! The command `narrows` with a controller of one's own, without a fork:
//! `cargo run -p narrows --example my_controller -- compare --protocols 'gentle,gentle(limit=1.5),reno'`.

mod gentle;

use narrows::Registry;
use narrows::congestion::ControllerEntry as Controller;
use narrows::sim::protocol::ProtocolEntry as Protocol;
use std::process::ExitCode;

fn main() -> ExitCode {
    let controller =
        Controller::new(&gentle::DESCRIPTOR, gentle::build).with_variables(gentle::VARIABLES);
    let summary = "leaves a seventh when the round trip stretches";
    let over_tcp = Protocol::tcp("gentle", "gentle", "sack", summary);
    narrows::run(Registry::new().controller(controller).protocol(over_tcp))
}
