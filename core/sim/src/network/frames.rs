//! An application that writes frames.

use super::Network;
use crate::calendar::{EventKind, SimEvent};
use crate::endpoints::SenderInput;
use crate::source::{StartedSource, TransportState};
use narrows_base::Machine;

impl Network {
    /// The application of a flow writes frames.
    pub(super) fn on_frames(&mut self, number: u32) {
        let now = self.now;
        let a = &mut self.applications[number as usize];
        let sender = &mut self.flows[number as usize].sender;
        let (StartedSource::Frames(source), Some(meter)) = (&mut a.source, &mut a.frames) else {
            return;
        };
        let state = TransportState {
            allowed_bps: sender.allowed().as_bps() as f64,
            unsent_bytes: sender.unsent(),
            srtt: sender.srtt(),
            payload_bytes: sender.payload_bytes(),
        };
        let mut parts = meter.take_parts();
        let next = source.write(now, &state, &mut parts);
        if !a.opened {
            a.opened = true;
            sender.handle(now, SenderInput::Open);
        }
        for part in &parts {
            sender.handle(now, SenderInput::Frame(*part));
        }
        let next = next.min(a.stop);
        let to_many = self.written_to_all(number, &parts);
        if let Some(meter) = &mut self.applications[number as usize].frames {
            if !to_many {
                parts.iter().for_each(|part| meter.written(now, part));
            }
            meter.give_back(parts);
        }
        if !next.is_never() {
            self.calendar.push(SimEvent::new(next, EventKind::Source, number));
        }
        self.pump(number);
    }
}
