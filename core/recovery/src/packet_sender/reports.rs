//! Processing of reports.

use super::forward_delay::ForwardTime;
use super::losses::PACKET_THRESHOLD;
use super::sent_packet::PacketClass;
use super::spurious::LateArrivals;
use super::{PacketSender, PayloadSource};
use narrows_base::{Duration, Time};
use narrows_congestion::{Ack, Feedback, RateSample};

/// The fields of a report, without the ranges of arrived and missing packets.
#[derive(Clone, Copy, Debug)]
pub struct AckReport {
    /// The highest number that it acknowledges.
    pub largest_acked: u64,
    /// RTT of the packet that it echoes, without the receiver's delay.
    pub rtt: Duration,
    /// Forward time of that packet.
    pub forward: ForwardTime,
    /// Packets received so far with a CE mark, modulo [`MARKS`](super::MARKS).
    pub marks: u32,
    /// Feedback of the controller's receiver side.
    pub feedback: Feedback,
}

impl<P: Default> PacketSender<P> {
    /// Whether a report can be true: it acknowledges no packet that was never sent, neither above the highest sent
    /// number nor among the skipped ones. Reordering and loss never make a conforming receiver's report fail this
    /// check.
    #[inline]
    pub fn is_possible(&self, highest: u64, mut arrived: impl Iterator<Item = (u64, u64)>) -> bool {
        highest < self.ledger.next_packet_number()
            && arrived.all(|(from, to)| self.ledger.skipped(from, to) == 0)
    }

    /// Whether a report with this highest number is relevant. A report older than all known outcomes is not. A report
    /// that only repeats the newest known number is, because it may bring feedback.
    #[inline]
    pub fn is_relevant(&self, highest: u64) -> bool {
        // Packets that are not in flight are resolved without a report.
        let end = highest.saturating_add(1);
        highest < self.ledger.next_packet_number()
            && (end >= self.ledger.lowest_wanted() || end >= self.ledger.reported())
    }

    /// Lower bound of relevant reports: [`is_relevant`](PacketSender::is_relevant) is false if a report's highest number plus
    /// one is below this.
    #[inline]
    pub fn smallest_tracked(&self) -> u64 {
        self.ledger.lowest_wanted().min(self.ledger.reported())
    }

    /// Processes a report: `arrived` has the acknowledged ranges `[from, to)`, highest first, and `radio` the losses
    /// that the receiver attributes to the radio link. Returns the delivery rate sample, if there is one.
    #[inline]
    pub fn on_report(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = P>,
        ack_report: &AckReport,
        arrived: impl Iterator<Item = (u64, u64)>,
        radio: impl Iterator<Item = (u64, u64)>,
    ) -> Option<RateSample> {
        if !self.is_relevant(ack_report.largest_acked) {
            return None;
        }
        let end = ack_report.largest_acked + 1;
        self.ledger.lost.forget(now, self.path.expected());
        let mut fresh = 0;
        self.path.begin_report(now);
        let is_of_this_path = self.ledger.is_of_this_path(ack_report.largest_acked);
        if is_of_this_path && self.ledger.is_on_path_since(now, ack_report.rtt) {
            self.limiter.on_rtt(now, ack_report.rtt);
        }
        let mut late = self.feed.none_late();
        for (from, to) in arrived {
            if to <= self.ledger.lowest_wanted() {
                break;
            }
            if from < self.ledger.least_unacked() {
                self.take_late(now, source, (from, to), &mut late);
            }
            fresh += self.take_arrived(now, source, from, to);
        }
        for (from, to) in radio {
            if to <= self.ledger.least_unacked() {
                break;
            }
            self.ledger.take_radio(from, to);
        }
        let known = self.ledger.least_unacked().min(self.ledger.reported());
        if fresh == 0 && late.is_empty() && end < known {
            return None; // It was overtaken by a newer one.
        }
        self.limiter.on_report(now);
        let prior = self.ledger.packets_in_flight();
        self.ledger.leave_flight(fresh);
        let marks = self.feed.new_marks(ack_report.marks, fresh);
        if marks > 0 {
            self.ledger.take_marks(marks, end);
            self.counters.retreats += u64::from(self.limiter.on_marks(now));
        }
        self.ledger.report(end);
        let Some(rtt) = self.rtt_of_this_path(now, is_of_this_path, ack_report.rtt) else {
            // The controller gets no event.
            self.find_losses(now, source);
            self.arm(now, source);
            return None;
        };
        let rtt = self.loss.clamp_after_clock_leap(
            now,
            ack_report.largest_acked,
            rtt,
            &self.ledger,
            &self.path,
        );
        let newest_rtt = self.path.sample(now, rtt);
        let overtaken = self.overtaken(now, ack_report.largest_acked);
        let forward_delay = self.path.forward_delay(ack_report.forward, newest_rtt);
        let round_start = self.feed.begin_round(end, self.ledger.next_packet_number());
        // As measured: the corrected RTT does not contain the return path's delay.
        let measured = (ack_report.rtt, forward_delay);
        let wait = self.follow_return_path(now, measured, round_start);
        let rtt = self.feed.without_wait(newest_rtt, wait, &self.path);
        if fresh > 0 || !late.is_empty() {
            self.loss.reset_pto_count();
        }
        let found = self.find_losses(now, source);
        let next = self.ledger.next_packet_number();
        let sent_since = next - end - self.ledger.skipped(end, next);
        let ledger = &self.ledger;
        let path = &self.path;
        let ack_report = (rtt, round_start, marks, ack_report.feedback);
        let ack = self.feed.ack(now, ack_report, (prior, sent_since), ledger, path);
        let ack = Ack { forward_delay: Some(forward_delay), ..ack };
        let overtaken = overtaken.map(|(packets, overtaken_rtt)| {
            let rtt = self.feed.without_wait(overtaken_rtt, wait, &self.path);
            let forward_delay =
                Some(forward_delay + (overtaken_rtt - overtaken_rtt.min(newest_rtt)));
            (packets, Ack { rtt, forward_delay, ..ack })
        });
        if let Some(rate) = ack.rate.filter(|r| !r.app_limited) {
            self.return_path.on_rate(rate.per_second());
        }
        self.feed.tell_acks(&ack, overtaken.as_ref(), fresh);
        self.feed.tell_spurious(now, &late, &self.ledger, &self.path);
        self.tell_losses(now, &found);
        self.feed.tell_marks(now, marks, &self.ledger, &self.path, &mut self.counters);
        self.arm(now, source);
        ack.rate
    }

    /// Number and mean RTT of packets that arrived behind ones of an earlier report; adds the RTT to the estimate.
    #[inline]
    fn overtaken(&mut self, now: Time, highest: u64) -> Option<(u64, Duration)> {
        let (packets, rtt) = self.path.overtaken()?;
        let rtt = self.loss.clamp_after_clock_leap(now, highest, rtt, &self.ledger, &self.path);
        self.path.sample_overtaken(rtt);
        Some((packets, rtt))
    }

    /// The waiting time of this report on the return path; `delays` are its RTT and forward delay.
    #[inline]
    fn follow_return_path(
        &mut self,
        now: Time,
        delays: (Duration, Duration),
        is_start: bool,
    ) -> Duration {
        let base = self.path.min_rtt();
        let next = self.ledger.next_packet_number();
        // Read for each report, because the controller may have been replaced.
        self.return_path.set_presses(!self.feed.keeps_own_timer());
        let wait = self.return_path.on_report(now, delays, base, next, is_start);
        let paced =
            || self.pacing_rate().map_or(0.0, |r| r.as_bps() as f64 / self.feed.full_bits());
        let unreported = self.return_path.unreported(paced);
        self.feed.on_unreported(self.return_path.wait(), unreported);
        self.loss.on_spacing(self.return_path.longest_spacing());
        wait
    }

    /// The report's RTT for the present path: that of the echoed packet if it took this path, else of the newest
    /// acknowledged packet. `None` if the report is of another path.
    #[inline]
    fn rtt_of_this_path(&self, now: Time, is_of_this: bool, told: Duration) -> Option<Duration> {
        if !is_of_this {
            None
        } else if self.ledger.is_on_path_since(now, told) {
            Some(told)
        } else {
            self.feed.newest_sent().map(|sent| now.since(sent))
        }
    }

    /// Packet records examined because of reports.
    #[cfg(any(test, feature = "inspect"))]
    pub fn packets_looked_at(&self) -> u64 {
        self.ledger.looked_at
    }

    /// Marks `[from, to)` as arrived; returns how many counted packets are newly acknowledged.
    #[inline]
    fn take_arrived(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = P>,
        from: u64,
        to: u64,
    ) -> u64 {
        let PacketSender { ledger, path, loss, limiter, feed, .. } = self;
        let short_queue = path.short_queue();
        let in_order = ledger.reported().saturating_sub(PACKET_THRESHOLD);
        ledger.take_arrived((from, to), (now, short_queue), |seq, p| match p.class {
            PacketClass::InFlight => {
                if seq < in_order {
                    loss.on_reordered(now.since(p.sent), path);
                    path.on_overtaken(now.since(p.sent));
                }
                path.on_arrived(p.bytes);
                source.arrived(&p.payload);
                limiter.on_arrived(now, p.sent, p.bytes);
                feed.on_arrived(now, p.sent, &p.stamp);
            }
            PacketClass::MtuProbe | PacketClass::OldPath => source.arrived(&p.payload),
            PacketClass::AckOnly | PacketClass::Skipped => {}
        })
    }

    /// Marks packets of `[from, to)` that were declared lost as arrived.
    #[inline]
    fn take_late(
        &mut self,
        now: Time,
        source: &mut impl PayloadSource<Payload = P>,
        range: (u64, u64),
        late: &mut LateArrivals,
    ) {
        let PacketSender { ledger, path, loss, limiter, feed, counters, .. } = self;
        let before = *late;
        ledger.lost.take_arrived(range, |p| {
            late.add(&p);
            source.arrived(p.payload);
            limiter.on_arrived(now, p.sent, p.bytes);
            feed.on_late(now);
            loss.on_reordered(now.since(p.sent), path);
            loss.end_run();
        });
        let packets = late.packets - before.packets;
        counters.spurious += packets;
        ledger.take_back_losses(packets, late.at_short_queue - before.at_short_queue);
    }
}
