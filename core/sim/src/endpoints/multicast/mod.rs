//! Both ends of layered multicast over simulated packets; the receiver's rules are in `narrows_congestion::multicast`.

mod receiver;
mod sender;

pub use receiver::{MulticastReceiver, layer_of};
pub use sender::MulticastSender;
