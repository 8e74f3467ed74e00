//! Reno as in Linux 6.1, `tcp_cong.c`.

use super::window::{Turn, Window};
use crate::{Ack, CongestionEvent, Controller, Environment, SendLimits};

pub fn build(environment: &Environment) -> Box<dyn Controller> {
    Box::new(Reno(Window::new(environment)))
}

#[derive(Clone, Debug)]
struct Reno(Window);

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.0.admits(ack) {
            self.0.reno(ack.newly_delivered);
        }
    }
    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        if self.0.on_event(event, Window::half) == Turn::Reduced {
            let acked = self.0.take_pending();
            self.0.reno(acked);
        }
    }
    fn send_limits(&self) -> SendLimits {
        self.0.limits()
    }
}
