//! Layered streams and video through the engine, over protocols for media and over TCP.

use crate::two_links::{group, link, network};
use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkChange, QueueLimit};
use narrows_sim::{FrameResult, SourceSpec, run};

/// One flow for a minute over 1.5 Mbit/s and 25 ms each way; from 30 s on the rate is `later_kbps`. Measured from 20 s.
fn played(protocol: &str, source: &str, later_kbps: u64) -> FrameResult {
    let delay = Duration::from_millis(25);
    let mut there = link(1.5e6, delay, QueueLimit::Packets(15), None, "none");
    let back = there.clone();
    there.changes = true;
    let mut group = group("main", protocol, 1000, [0.0]);
    group.source = SourceSpec::read(&Spec::parse(source).unwrap()).unwrap();
    let mut spec = network([there, back], vec![group], (20.0, 60.0), 3);
    let later = LinkChange::Rate(Rate::from_bps(later_kbps * 1000));
    spec.changes = vec![(Time::from_secs_f64(30.0), 0, later)];
    let mut result = run(&spec, &mut |_| true).unwrap();
    *result.groups[0].flows.remove(0).frames.unwrap()
}

const MEDIA: [&str; 5] = ["tear", "tear-wireless", "tfrc", "tfwc", "scream"];

/// The buffer bridges the time in which the rate falls to a third and layers are dropped down to the base layer.
#[test]
fn layered_stream_never_freezes_if_base_layer_fits() {
    for protocol in MEDIA {
        let steady = played(protocol, "layers(count=4,rate=250kbit/s)", 1500);
        let shown = steady.layers as f64 / steady.due as f64;
        assert!(steady.due == 1000 && shown > 2.0, "{protocol}: {steady:?}");
        assert!(steady.frozen <= 20, "{protocol}: {steady:?}");
        let less = played(protocol, "layers(count=4,rate=250kbit/s)", 500);
        assert!(less.frozen <= 60 && less.layers < steady.layers, "{protocol}: {less:?}");
        assert!(less.switches >= 1, "{protocol}: {less:?}");
    }
}

/// Media do not drop or repeat data: a drop by a full queue is a frozen frame. A stream shows all frames, but later.
#[test]
fn video_is_measured_over_media_and_streams() {
    let video = "video(max=800kbit/s)";
    for protocol in MEDIA {
        let r = played(protocol, video, 1500);
        assert!(r.due > 950 && r.most_layers == 1 && r.switches == 0, "{protocol}: {r:?}");
        assert!(r.frozen < 100, "{protocol}: {r:?}");
        assert!(r.delay.quantile(0.5).unwrap() >= 25_000_000, "{protocol}: a way takes 25 ms");
    }
    for protocol in ["rrtp", "cubic"] {
        let r = played(protocol, video, 1500);
        assert!(r.due > 950 && r.frozen < 100, "{protocol}: {r:?}");
        // At least 64 kbit/s do not fit into 50.
        let r = played(protocol, video, 50);
        assert!(r.late > 100 && r.stalls > 0, "{protocol}: {r:?}");
    }
}
