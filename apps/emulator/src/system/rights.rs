//! Advice for refused permissions: run as another user or, for root in a container, add a capability.

use crate::error::Error;
use rustix::process::geteuid;
use std::fmt::Display;
use std::io;

/// A capability: its bit in `/proc/self/status`, and its name (`linux/capability.h`).
#[derive(Clone, Copy, Debug)]
pub struct Capability(u32, &'static str);

/// Needed for devices, addresses and routes.
pub const NET_ADMIN: Capability = Capability(12, "NET_ADMIN");
/// Needed for namespaces and mounts.
pub const SYS_ADMIN: Capability = Capability(21, "SYS_ADMIN");

/// An error for a failed action `what`. If a permission was missing, it names the needed one and how to get it.
pub fn failed(what: impl Display, e: &io::Error, needed: Capability) -> Error {
    if e.kind() != io::ErrorKind::PermissionDenied {
        return Error::system(what, e);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Error::new(format!("no permission: {what}: {}", advice(needed, &status, geteuid().is_root())))
}

/// `status` is the process's `/proc/self/status`.
fn advice(Capability(bit, name): Capability, status: &str, is_root: bool) -> String {
    if !is_root {
        return format!("run as root (CAP_{name})");
    }
    let number = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = number.and_then(|number| u64::from_str_radix(number.trim(), 16).ok());
    let container = "`narrows relay` needs no rights";
    match effective {
        Some(all) if all >> bit & 1 == 0 => format!(
            "this root lacks CAP_{name}; docker run --cap-add {name} --device /dev/net/tun gives it; {container}"
        ),
        _ => format!(
            "this root has CAP_{name}, so a filter forbids it; docker run --security-opt seccomp=unconfined \
             --security-opt apparmor=unconfined has none; {container}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_capability_gets_the_containers_missing_right() {
        // Effective capabilities: Docker's default set, the full set, the empty set.
        for (effective, needed, part) in [
            ("00000000a80425fb", NET_ADMIN, "lacks CAP_NET_ADMIN; docker run --cap-add NET_ADMIN"),
            ("00000000a80425fb", SYS_ADMIN, "lacks CAP_SYS_ADMIN; docker run --cap-add SYS_ADMIN"),
            ("00000000a80435fb", NET_ADMIN, "a filter forbids it"),
            ("000001ffffffffff", SYS_ADMIN, "a filter forbids it"),
            ("0000000000000000", SYS_ADMIN, "lacks CAP_SYS_ADMIN"),
        ] {
            let status = format!("Name:\tnarrows\nCapPrm:\t0\nCapEff:\t{effective}\nCapBnd:\t0\n");
            let line = advice(needed, &status, true);
            assert!(line.contains(part) && line.contains("`narrows relay` needs no"), "{line}");
            assert_eq!(advice(needed, &status, false), format!("run as root (CAP_{})", needed.1));
        }
    }
}
