//! What the kernel is asked for: TUN devices, namespaces, addresses, routes.

pub mod interface;
pub mod namespace;
pub mod netlink;
pub mod slot;
pub mod tun;
pub mod unsafe_calls;
