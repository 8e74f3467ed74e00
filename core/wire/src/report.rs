//! REPORT: rrtp's acknowledgement frame (CACK, NACK, SACK and regular reports).
//!
//! ```text
//! | flags | highest | echo (4) | delay | [marks] | [feedback: length, bytes] | nonce sum (1) | count | runs … |
//! run:  | arrived - 1 | missing * 2 + radio   |
//! ```
//!
//! Runs go downwards from the highest number: a count of packets that arrived, then a count of missing packets below
//! them. Only the last run may have 0 missing. Numbers below the last run are not reported.

use crate::bytes::{BufferFull, ByteReader, Malformed, Sink};
use narrows_base::run;

pub use narrows_base::PacketRun;

/// The most runs of a report.
pub const MAX_RUNS: usize = 32;
/// The most bytes of a controller's feedback, in a report or beside data.
pub const MAX_FEEDBACK_BYTES: usize = 16;

const MARKS: u8 = 4;
const FEEDBACK: u8 = 8;
const KNOWN: u8 = 0x0f;

/// Why a report was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportReason {
    /// The controller's receiver side requested it, or a timer expired.
    Regular = 0,
    /// CACK: cumulative; no packet is missing since the last report.
    Cumulative = 1,
    /// NACK: one packet is missing.
    Missing = 2,
    /// SACK: several packets are missing.
    Selective = 3,
}

/// A report. Its runs are checked, but still encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report<'a> {
    /// Why it was sent.
    pub reason: ReportReason,
    /// The highest packet number that arrived.
    pub highest: u64,
    /// The stamp of the first packet that arrived since the previous report ([`crate::prelude`]).
    pub echo: u32,
    /// Microseconds from that arrival to this report.
    pub delay: u64,
    /// Number of packets received with CE since the connection began; absent if this endpoint
    /// cannot read ECN marks.
    pub marks: Option<u64>,
    /// Feedback for the controller's sender side: at most 16 bytes, or empty.
    pub feedback: &'a [u8],
    /// The XOR of the last tag bytes of all packets that the runs report as received. It cannot be computed without
    /// those packets.
    pub nonce_sum: u8,
    /// Which packets arrived and which are missing.
    pub runs: Runs<'a>,
}

/// The runs of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runs<'a> {
    bytes: &'a [u8],
    count: u8,
}

impl<'a> Runs<'a> {
    fn read(source: &mut ByteReader<'a>, highest: u64) -> Result<Runs<'a>, Malformed> {
        let count = source.byte()?;
        if count == 0 || usize::from(count) > MAX_RUNS {
            return Err(Malformed::new("a report has 1 to 32 runs"));
        }
        let all = source.rest();
        // Packet numbers not covered yet.
        let mut left = highest.saturating_add(1);
        for i in (0..count).rev() {
            let run = read_run(source)?;
            left = left
                .checked_sub(run.arrived)
                .and_then(|l| l.checked_sub(run.missing))
                .ok_or(Malformed::new("a report's runs reach below number 0"))?;
            if i > 0 && run.missing == 0 {
                return Err(Malformed::new("a run without missing packets is not the last"));
            }
        }
        let bytes = all.get(..all.len() - source.rest().len()).unwrap_or_default();
        Ok(Runs { bytes, count })
    }

    /// The runs, from the highest packet number downwards.
    pub fn iter(&self) -> impl Iterator<Item = PacketRun> + 'a {
        let mut source = ByteReader::new(self.bytes);
        (0..self.count).map_while(move |_| read_run(&mut source).ok())
    }
}

fn read_run(source: &mut ByteReader<'_>) -> Result<PacketRun, Malformed> {
    let arrived = source.varint()? + 1;
    let missing = source.varint()?;
    Ok(PacketRun { arrived, missing: missing / 2, radio: missing % 2 == 1 })
}

/// Encodes runs into a buffer, for use as [`Report::runs`]. Runs beyond 32, or beyond the buffer
/// (515 bytes always suffice), are dropped from the low end.
pub fn runs<'b>(buffer: &'b mut [u8], list: impl IntoIterator<Item = PacketRun>) -> Runs<'b> {
    let mut sink = Sink::new(buffer);
    let mut count = 0;
    for run in list.into_iter().take(MAX_RUNS) {
        let before = sink.used();
        let Some(arrived) = run.arrived.checked_sub(1) else { break };
        let missing = run.missing.saturating_mul(2).saturating_add(u64::from(run.radio));
        if sink.varint(arrived).and_then(|()| sink.varint(missing)).is_err() {
            sink.back_to(before);
            break;
        }
        count += 1;
        if run.missing == 0 {
            break;
        }
    }
    let used = sink.used();
    Runs { bytes: buffer.get(..used).unwrap_or_default(), count }
}

impl<'a> Report<'a> {
    /// The packets that arrived, as ranges `[from, to)` in descending order.
    pub fn arrived(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        run::arrived(self.highest, self.runs.iter())
    }

    /// The missing packets, as ranges `[from, to)` in descending order, each with whether the receiver attributes it to
    /// the radio link.
    pub fn missing(&self) -> impl Iterator<Item = (u64, u64, bool)> + 'a {
        run::missing(self.highest, self.runs.iter())
    }

    pub(crate) fn read(source: &mut ByteReader<'a>) -> Result<Report<'a>, Malformed> {
        let flags = source.byte()?;
        if flags & !KNOWN != 0 {
            return Err(Malformed::new("a report with reserved flags"));
        }
        let reason = match flags & 3 {
            0 => ReportReason::Regular,
            1 => ReportReason::Cumulative,
            2 => ReportReason::Missing,
            _ => ReportReason::Selective,
        };
        let highest = source.varint()?;
        let echo = source.u32()?;
        if echo >= crate::prelude::STAMPS {
            return Err(Malformed::new("an echo of 30 bits has more"));
        }
        let delay = source.varint()?;
        let marks = if flags & MARKS != 0 { Some(source.varint()?) } else { None };
        let feedback = if flags & FEEDBACK != 0 { read_feedback(source)? } else { &[] };
        let nonce_sum = source.byte()?;
        let runs = Runs::read(source, highest)?;
        Ok(Report { reason, highest, echo, delay, marks, feedback, nonce_sum, runs })
    }

    pub(crate) fn write(&self, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let has_feedback = !self.feedback.is_empty();
        sink.byte(
            self.reason as u8 | flag(self.marks.is_some(), MARKS) | flag(has_feedback, FEEDBACK),
        )?;
        sink.varint(self.highest)?;
        sink.number(u64::from(self.echo % crate::prelude::STAMPS), 4)?;
        sink.varint(self.delay)?;
        if let Some(marks) = self.marks {
            sink.varint(marks)?;
        }
        if has_feedback {
            write_feedback(self.feedback, sink)?;
        }
        sink.byte(self.nonce_sum)?;
        sink.byte(self.runs.count)?;
        sink.put(self.runs.bytes)
    }
}

/// Reads a length of 1 to 16 and that many bytes.
pub(crate) fn read_feedback<'a>(source: &mut ByteReader<'a>) -> Result<&'a [u8], Malformed> {
    let length = usize::from(source.byte()?);
    if length == 0 || length > MAX_FEEDBACK_BYTES {
        return Err(Malformed::new("feedback has 1 to 16 bytes"));
    }
    source.take(length)
}

pub(crate) fn write_feedback(feedback: &[u8], sink: &mut Sink<'_>) -> Result<(), BufferFull> {
    if feedback.is_empty() || feedback.len() > MAX_FEEDBACK_BYTES {
        return Err(BufferFull);
    }
    sink.byte(feedback.len() as u8)?;
    sink.put(feedback)
}
