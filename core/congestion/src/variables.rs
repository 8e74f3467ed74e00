//! Variables that several controllers report over time. A name stands for one quantity in one unit,
//! because the time series of different controllers share columns.

use narrows_base::Variable;

/// The controller's sending rate.
pub const RATE: Variable =
    Variable::new("rate_bps", "bit/s", "rate at which the controller lets packets leave");
/// An estimate of the bottleneck's rate.
pub const BANDWIDTH: Variable =
    Variable::new("bandwidth_bps", "bit/s", "estimated bandwidth of the path");
/// Propagation delay: the smallest measured RTT.
pub const MIN_RTT: Variable =
    Variable::new("min_rtt_s", "s", "smallest round-trip time that the controller goes by");
/// How packets are spread on their way.
pub const SPACING_RATIO: Variable = Variable::new(
    "spacing_ratio",
    "",
    "mean spacing of arrivals over that of departures (r of the RRTP thesis)",
);
/// The RTT used in an equation.
pub const SMOOTHED_RTT: Variable =
    Variable::new("srtt_s", "s", "smoothed round-trip time that the controller goes by");
/// Packets of this flow in queues, estimated from delay.
pub const BACKLOG: Variable =
    Variable::new("backlog", "packets", "own packets that wait in queues, estimated from delay");
/// 1 / the mean loss interval.
pub const LOSS_EVENT_RATE: Variable = Variable::new(
    "loss_event_rate",
    "fraction",
    "loss events per packet that the sender goes by (p of RFC 5348)",
);
/// Packets since the last loss event.
pub const OPEN_LOSS_INTERVAL: Variable =
    Variable::new("open_loss_interval", "packets", "packets since the last loss event began");
