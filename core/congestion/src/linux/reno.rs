//! Reno as in Linux 6.1, `tcp_cong.c`.

use super::window::{LinuxWindow, WindowEffect};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};

pub fn build(environment: &Environment) -> Box<dyn Controller> {
    Box::new(LinuxReno(LinuxWindow::new(environment)))
}

#[derive(Clone, Debug)]
struct LinuxReno(LinuxWindow);

impl Controller for LinuxReno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.0.admits(ack) {
            self.0.reno(ack.newly_delivered);
        }
    }
    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if self.0.on_event(event, LinuxWindow::half) == WindowEffect::Reduced {
            let acked = self.0.take_pending();
            self.0.reno(acked);
        }
    }
    fn send_limits(&self) -> SendLimits {
        self.0.limits()
    }
}
