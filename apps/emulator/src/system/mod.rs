//! Requests to the kernel: TUN devices, namespaces, addresses, routes.

pub mod forwarding;
pub mod interface;
pub mod leftovers;
pub mod namespace;
pub mod netlink;
pub mod nft;
pub mod own_files;
pub mod processes;
pub mod rights;
pub mod runtime_folder;
pub mod slot;
pub mod tun;
pub mod unsafe_calls;
pub mod user;
