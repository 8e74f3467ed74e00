//! The columns of time series that the engine itself samples. A controller's own columns are in its
//! list entry.

use crate::endpoints::SendingLimit;
use narrows_base::Variable;

/// Columns of the tables of flows (`kind` is `flow`) and links (`link`). Counts cover the interval that ends at the
/// sample.
pub const COLUMNS: &[Variable] = &[
    // Flows.
    Variable::new("cwnd", "packets", "congestion window; none where it is not bounded"),
    Variable::new("ssthresh", "packets", "slow-start threshold; missing before it is set"),
    Variable::new("in_flight", "packets", "packets sent and neither acknowledged nor given up"),
    Variable::new("rtt_s", "s", "round-trip time that the last acknowledgement showed"),
    Variable::new("acked", "packets", "packets acknowledged since the start"),
    Variable::new("retransmissions", "packets", "packets sent again"),
    Variable::state("limited_by", "what keeps the sender from sending more", &SendingLimit::NAMES),
    Variable::new("layers", "", "layers of the stream that are sent"),
    Variable::new(
        "buffer_s",
        "s",
        "play-out time that the receiver holds of the base layer, as the sender estimates it",
    ),
    // Flows and links.
    Variable::new(
        "throughput_bps",
        "bit/s",
        "flow: data that its receiver got; group: its data that the bottleneck served; link: all \
         that it served; with headers and copies",
    ),
    // Links.
    Variable::new("queue", "packets", "packets that wait, the one in transmission not counted"),
    Variable::new("queue_max", "packets", "most packets that waited"),
    Variable::new("queue_average", "packets", "average that the queue discipline itself keeps"),
    Variable::new("drops", "packets", "packets that the queue dropped"),
    Variable::new("losses", "packets", "packets lost on the link after transmission"),
];
