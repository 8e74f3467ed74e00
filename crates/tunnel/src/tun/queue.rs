//! Packets that wait for the connection: FQ-CoDel (RFC 8290), so that no flow fills the tunnel with a queue of its own. It
//! marks packets of flows that know ECN where it would drop others.

use super::packet::{Packet, mark};
use narrows_base::{Duration, ParamValue, RandomKey, Rate, Spec, Time};
use narrows_link::queue::{self, Discipline, QueueObserver, QueuedPacket};
use narrows_link::{LinkConfig, QueueConfig};
use std::collections::HashMap;
