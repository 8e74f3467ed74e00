use crate::protocol::{FlowProtocol, Preset};
use crate::{PacketEventKind, Simulation, dumbbell, run};
use narrows_base::{Spec, Time};

/// Logged packets equal the counts of the result, and logging does not change the run.
#[test]
fn logged_packets_are_those_that_the_result_counts() {
    for name in ["cubic", "rrtp"] {
        let protocol =
            FlowProtocol::read(&Spec::parse(name).unwrap(), Preset::Linux, 1000).unwrap();
        let network = dumbbell(3, 10, 2, protocol);
        let mut simulation = Simulation::new(&network).unwrap();
        simulation.log_packets(2);
        let mut sent = [0; 3];
        let mut again = [0; 3];
        let mut acknowledged = [0; 3];
        let mut dropped = [0; 3];
        let mut step = 0.0;
        while simulation.now() < network.end {
            step += 0.1;
            simulation.advance(Time::from_secs_f64(step), &mut |_| true).unwrap();
            simulation.packets(&mut |event, link| {
                let count = match event.kind {
                    PacketEventKind::Sent { again: false } => &mut sent,
                    PacketEventKind::Sent { again: true } => &mut again,
                    PacketEventKind::Acknowledged => &mut acknowledged,
                    _ => &mut dropped,
                };
                count[event.flow as usize] += 1;
                let on_link =
                    matches!(event.kind, PacketEventKind::Dropped | PacketEventKind::Lost);
                assert_eq!(on_link, link.is_some());
            });
        }
        for flow in 0..2 {
            let counters = simulation.counters(flow);
            // A few packets of rrtp carry no data: its handshake and ACK-only packets.
            let others = sent[flow] + again[flow] - counters.sent;
            assert!(if name == "cubic" { others == 0 } else { others < 20 }, "{name}: {others}");
            assert!(
                acknowledged[flow] > 0
                    && simulation.received(flow).0 > narrows_base::Duration::ZERO
            );
        }
        assert_eq!((sent[2], acknowledged[2]), (0, 0), "of the first two flows");
        let result = simulation.finish();
        let counted: u64 =
            result.links.iter().flat_map(|l| &l.groups).map(|g| g.dropped + g.lost).sum();
        assert!(dropped.iter().sum::<u64>() >= counted, "{name}: {dropped:?}");
        assert_eq!(result.digest, run(&network, &mut |_| true).unwrap().digest);
    }
}
