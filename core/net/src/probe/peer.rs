//! One end of a probe: sends the packets of trains on schedule, and receives packets and frames.

use super::ProbeError;
use crate::{Connection, ReceiveStream, SendStream, block_on_for};
use narrows_base::{Duration, Time};
use narrows_probe::ecn::{CE, ECT0};
use narrows_probe::frames::{FrameReader, HEADER, ProbeFrame, TrainFrame, TrainHeader};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

/// Time limit for sending a frame.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
/// A sender that is late by more packets than this does not catch up.
const MOST_TOGETHER: u64 = 8;
/// Interval of checking whether a packet has left.
const LOOK: Duration = Duration::from_micros(200);
/// A train that exceeds its duration by this time is ended.
const MAX_DELAY: Duration = Duration::from_millis(250);
const CHUNK: usize = 16 << 10;

/// Received items.
#[derive(Debug)]
pub(super) enum PeerEvent {
    Frame(ProbeFrame),
    /// A packet of a train, its arrival time, and its ECN field.
    Packet(Time, u8, TrainHeader),
}

pub(super) struct ProbePeer {
    pub connection: Connection,
    send: SendStream,
    receive: ReceiveStream,
    reader: FrameReader,
}

impl ProbePeer {
    pub fn new(connection: Connection, (send, receive): (SendStream, ReceiveStream)) -> ProbePeer {
        ProbePeer { connection, send, receive, reader: FrameReader::default() }
    }

    pub fn say(&mut self, frame: &ProbeFrame) -> Result<(), ProbeError> {
        let sent = block_on_for(PATIENCE, self.send.send_all(&frame.bytes()));
        Ok(sent.ok_or(ProbeError::Silent)??)
    }

    /// The next event, or `None` after `max`. Packets come before frames, because a train's end was sent after its
    /// packets.
    pub fn wait(&mut self, max: Duration) -> Result<Option<PeerEvent>, ProbeError> {
        let max = std::time::Duration::from_nanos(max.as_nanos());
        let received = block_on_for(max, pin!(poll_fn(|context| self.poll(context))));
        received.transpose()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<PeerEvent, ProbeError>> {
        while let Poll::Ready(received) = self.connection.poll_whole_message(context) {
            let message = received?;
            if let Some(header) = TrainHeader::read(&message.bytes) {
                return Poll::Ready(Ok(PeerEvent::Packet(message.at, message.ecn, header)));
            }
        }
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(frame) = self.reader.next_frame()? {
                return Poll::Ready(Ok(PeerEvent::Frame(frame)));
            }
            match self.receive.poll_receive(context, &mut chunk) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(crate::Error::Closed.into())),
                Poll::Ready(Ok(n)) => self.reader.push(chunk.get(..n).unwrap_or_default()),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e.into())),
            }
        }
    }

    /// Sends a train until it is complete or the peer stops it. Returns the send time of each packet.
    pub fn send_train(&mut self, train: &TrainFrame) -> Result<Vec<u64>, ProbeError> {
        let mut message = vec![0x5a; usize::from(train.bytes).max(HEADER)];
        let gap = Duration::from_nanos(train.gap_ns);
        let whole = gap.saturating_mul(u64::from(train.packets));
        let mut due = self.connection.now();
        let over = due + whole + MAX_DELAY;
        let mut sent = Vec::with_capacity(train.packets as usize);
        let first_ce = train.packets.saturating_sub(u32::from(train.ce)) as usize;
        self.connection.set_ecn_field(ECT0)?;
        while sent.len() < train.packets as usize {
            let now = self.connection.now();
            if now > over {
                break;
            }
            // A train without gaps leaves at once; otherwise each packet leaves before the next one is stamped.
            let held = gap > Duration::ZERO && self.connection.messages_waiting()? > 0;
            if now < due || held {
                let wait = if held { LOOK } else { due.since(now) };
                match self.wait(wait)? {
                    Some(PeerEvent::Frame(ProbeFrame::Stop { train: which }))
                        if which == train.train =>
                    {
                        break;
                    }
                    Some(PeerEvent::Frame(ProbeFrame::Refused { why })) => {
                        return Err(ProbeError::Refused { reason: why });
                    }
                    _ => continue,
                }
            }
            let header = TrainHeader {
                train: train.train,
                index: sent.len() as u32,
                sent_ns: now.as_nanos(),
            };
            if sent.len() == first_ce {
                self.connection.set_ecn_field(CE)?;
            }
            if let Some(place) = message.first_chunk_mut::<HEADER>() {
                *place = header.bytes();
            }
            self.connection.send_message(&message, Duration::ZERO)?;
            sent.push(now.as_nanos());
            due += gap;
            let late = gap.saturating_mul(MOST_TOGETHER);
            if due + late < now {
                due = now;
            }
        }
        // Let the last packet leave before the ECN field changes: control frames are not marked.
        while self.connection.messages_waiting()? > 0 && self.connection.now() < over {
            self.wait(LOOK)?;
        }
        self.connection.set_ecn_field(ECT0)?;
        Ok(sent)
    }
}
