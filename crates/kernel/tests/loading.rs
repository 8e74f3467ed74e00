//! The programs pass the kernel's verifier, and what was loaded leaves nothing behind. As root; skipped without.
#![cfg(target_os = "linux")]

use narrows_kernel::{Agent, Choice, Error, Programs};

fn known(name: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    all.unwrap_or_default().split_whitespace().any(|n| n == name)
}

#[test]
fn a_congestion_control_comes_and_goes() {
    let programs = match Programs::prepare() {
        Ok(programs) => programs,
        Err(e @ (Error::NotPermitted | Error::NoBtf | Error::NoStructOps)) => {
            eprintln!("skipped: {e}");
            return;
        }
        Err(e) => panic!("{e}"),
    };
    let loaded = programs.register("nw_comes_goes").unwrap();
    assert!(known("nw_comes_goes"));
    let again = Programs::prepare().unwrap().register("nw_comes_goes").unwrap_err();
    assert!(matches!(again, Error::NameInUse(_)), "{again}");
    let agent = Agent::start(loaded, Choice::new("reno").unwrap()).unwrap();
    drop(agent);
    assert!(!known("nw_comes_goes"), "dropping it takes it from the list");
}
