//! Scenarios with two ends.

use super::*;
use narrows_wire::{FrameWriter, Frames, Prelude};

pub(super) const LIMITS: FlowControlLimits =
    FlowControlLimits { data: 40_000, stream: 10_000, both: 4, one_way: 2 };

pub(super) fn pair(limits: FlowControlLimits, send_buffer: usize) -> (Streams, Streams) {
    let mut client = Streams::new(Side::Client, limits, send_buffer);
    let mut server = Streams::new(Side::Server, limits, send_buffer);
    client.peer_permits(limits);
    server.peer_permits(limits);
    (client, server)
}

/// One packet of at most `room` bytes; `None` if there is no frame to send.
pub(super) fn packet(from: &mut Streams, room: usize) -> Option<(Vec<u8>, Vec<SentFrame>)> {
    let something = from.has_something();
    let mut buffer = vec![0; room];
    let mut sent_frames = Vec::new();
    let prelude = Prelude { stamp: 0, distance: 0 };
    let mut writer = FrameWriter::new(&mut buffer, prelude).unwrap();
    from.fill(&mut writer, &mut |piece| sent_frames.push(piece));
    let length = writer.len();
    let apart = writer.apart();
    if apart > 0 {
        buffer[length - apart..length].copy_from_slice(from.bytes(sent_frames.last().unwrap()));
    }
    assert_eq!(something, !sent_frames.is_empty(), "what has_something says, fill does");
    buffer.truncate(length);
    (!sent_frames.is_empty()).then_some((buffer, sent_frames))
}

pub(super) fn deliver(to: &mut Streams, packet: &[u8]) -> Result<(), Violation> {
    let (_, frames) = Frames::read(packet).unwrap();
    for frame in frames {
        assert!(to.on_frame(&frame.unwrap())?, "all frames are about streams");
    }
    Ok(())
}

/// Delivers and acknowledges everything that `from` has to send.
fn talk(from: &mut Streams, to: &mut Streams) {
    while let Some((bytes, sent_frames)) = packet(from, 1200) {
        deliver(to, &bytes).unwrap();
        sent_frames.iter().for_each(|p| from.arrived(p));
    }
}

fn events(of: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| of.event()).collect()
}

fn read_all(of: &mut Streams, id: u64) -> (Vec<u8>, Result<Read, StreamError>) {
    let mut all = Vec::new();
    let mut some = [0; 700];
    loop {
        match of.read(id, &mut some) {
            Ok(Read::Bytes(n)) => all.extend(&some[..n]),
            other => return (all, other),
        }
    }
}

fn stream(id: u64, offset: u64, data: &[u8], fin: bool) -> Frame<'_> {
    Frame::Stream { id, offset, fin, data }
}

#[test]
fn a_question_and_its_answer() {
    let (mut client, mut server) = pair(LIMITS, 8_000);
    let id = client.open(false).unwrap();
    assert_eq!(id, 0);
    assert_eq!(client.write(id, b"question"), Ok(8));
    client.finish(id).unwrap();
    assert_eq!(client.write(id, b"more"), Err(StreamError::Finished));
    talk(&mut client, &mut server);
    assert_eq!(events(&mut client), [StreamEvent::Arrived(0)]);
    assert_eq!(events(&mut server), [StreamEvent::Opened, StreamEvent::Readable(0)]);
    assert_eq!(server.accept(), Some(0));
    assert_eq!(server.accept(), None);
    assert_eq!(read_all(&mut server, 0), (b"question".to_vec(), Ok(Read::End)));
    server.write(0, b"answer").unwrap();
    server.finish(0).unwrap();
    talk(&mut server, &mut client);
    assert_eq!(read_all(&mut client, 0), (b"answer".to_vec(), Ok(Read::End)));
    assert_eq!(client.read(0, &mut [0; 9]), Err(StreamError::Unknown));
    assert_eq!(server.write(0, b"more"), Err(StreamError::Unknown));
    assert!(client.map.is_empty() && server.map.is_empty(), "both are forgotten");
    // A copy of old frames has no effect.
    assert_eq!(server.on_frame(&stream(0, 0, b"question", true)), Ok(true));
    assert_eq!(server.on_frame(&Frame::Stop { id: 0, code: 1 }), Ok(true));
    assert!(server.map.is_empty() && server.event() == Some(StreamEvent::Arrived(0)));
}

#[test]
fn ids_are_as_the_format_says() {
    let (mut client, mut server) = pair(LIMITS, 8_000);
    let ids = |s: &mut Streams| [s.open(false), s.open(true), s.open(false), s.open(true)];
    assert_eq!(ids(&mut client), [Some(0), Some(2), Some(4), Some(6)]);
    assert_eq!(ids(&mut server), [Some(1), Some(3), Some(5), Some(7)]);
    assert_eq!(client.read(2, &mut [0]), Err(StreamError::Unknown), "no such direction");
    client.write(6, b"x").unwrap();
    talk(&mut client, &mut server);
    assert_eq!((server.accept(), server.accept(), server.accept()), (Some(2), Some(6), None));
    assert_eq!(server.write(6, b"x"), Err(StreamError::Unknown), "no such direction");
}

/// A file truncated by its sender must not look complete.
#[test]
fn reset_is_no_end_even_after_all_data() {
    let (mut client, mut server) = pair(LIMITS, 8_000);
    let id = client.open(true).unwrap();
    client.write(id, b"half of it").unwrap();
    talk(&mut client, &mut server);
    assert_eq!(server.accept(), Some(id));
    client.reset(id, 300).unwrap();
    assert_eq!(client.reset(id, 301), Err(StreamError::Finished));
    assert_eq!(client.write(id, b"x"), Err(StreamError::Finished));
    talk(&mut client, &mut server);
    assert_eq!(server.read(id, &mut [0; 99]), Err(StreamError::Reset(300)));
    assert!(client.map.is_empty() && server.map.is_empty());
}

#[test]
fn complete_end_is_not_revoked() {
    let (_, mut server) = pair(LIMITS, 8_000);
    server.on_frame(&stream(2, 0, b"whole", true)).unwrap();
    server.on_frame(&Frame::ResetStream { id: 2, code: 1, size: 5 }).unwrap();
    assert_eq!(read_all(&mut server, 2), (b"whole".to_vec(), Ok(Read::End)));
}

#[test]
fn stopped_stream_is_reset_and_writer_gets_the_reason() {
    let (mut client, mut server) = pair(LIMITS, 8_000);
    let id = client.open(true).unwrap();
    client.write(id, &[1; 8_000]).unwrap();
    talk(&mut client, &mut server);
    server.stop(id, 404).unwrap();
    assert_eq!(server.read(id, &mut [0; 9]), Err(StreamError::Finished));
    talk(&mut server, &mut client);
    talk(&mut client, &mut server);
    assert!(events(&mut client).contains(&StreamEvent::Writable(id)));
    assert_eq!(client.write(id, b"x"), Err(StreamError::Stopped(404)));
    assert!(client.map.is_empty() && server.map.is_empty());
    assert_eq!(server.all.window.taken(), 8_000, "what was dropped counts as read");
}

#[test]
fn a_lost_stop_reset_or_end_is_said_again() {
    let (mut client, mut server) = pair(LIMITS, 8_000);
    let id = client.open(true).unwrap();
    client.write(id, b"abc").unwrap();
    let (_, first) = packet(&mut client, 1200).unwrap();
    client.finish(id).unwrap();
    let (_, end) = packet(&mut client, 1200).unwrap();
    assert_eq!(end, [SentFrame::Stream { id, offset: 3, length: 0, fin: true }]);
    assert!(client.lost(&end[0]) && !client.all_arrived());
    assert_eq!(packet(&mut client, 1200).unwrap().1, end, "the end alone");
    assert!(client.lost(&end[0]) && client.lost(&first[0]));
    let (bytes, both) = packet(&mut client, 1200).unwrap();
    assert_eq!(both, [SentFrame::Stream { id, offset: 0, length: 3, fin: true }]);
    deliver(&mut server, &bytes).unwrap();
    assert_eq!(read_all(&mut server, id), (b"abc".to_vec(), Ok(Read::End)));
    client.reset(id, 7).unwrap();
    let (_, reset) = packet(&mut client, 1200).unwrap();
    assert_eq!(reset, [SentFrame::Reset(id)]);
    assert!(client.lost(&reset[0]));
    assert_eq!(packet(&mut client, 1200).unwrap().1, reset);
    client.arrived(&reset[0]);
    assert!(!client.lost(&reset[0]) && client.all_arrived() && client.map.is_empty());

    let id = client.open(false).unwrap();
    client.stop(id, 5).unwrap();
    let (_, stop) = packet(&mut client, 1200).unwrap();
    assert_eq!(stop, [SentFrame::Stop(id)]);
    assert!(client.lost(&stop[0]));
    assert_eq!(packet(&mut client, 1200).unwrap().1, stop);
}

#[test]
fn stream_blocks_once_at_limit_and_resumes_half_read() {
    let (mut client, mut server) = pair(LIMITS, 20_000);
    let id = client.open(false).unwrap();
    assert_eq!(client.write(id, &[7; 30_000]), Ok(20_000));
    let mut sent_frames = Vec::new();
    while let Some((bytes, said)) = packet(&mut client, 1200) {
        deliver(&mut server, &bytes).unwrap();
        sent_frames.extend(said);
    }
    assert_eq!(sent_frames.iter().filter(|p| **p == SentFrame::Blocked).count(), 1);
    let sent: u32 = sent_frames
        .iter()
        .map(|p| if let SentFrame::Stream { length, .. } = p { *length } else { 0 })
        .sum();
    assert_eq!(sent, 10_000);
    // The peer is blocked, so every read raises the limit at once.
    assert_eq!(server.read(id, &mut [0; 100]), Ok(Read::Bytes(100)));
    let (bytes, said) = packet(&mut server, 1200).unwrap();
    assert_eq!(said, [SentFrame::MaxStream(id)]);
    deliver(&mut client, &bytes).unwrap();
    assert_eq!(client.map.get(id).unwrap().send.as_ref().unwrap().credit.most(), 10_100);
    // Now the peer is not blocked: the limit rises only after half of the window.
    assert_eq!(server.read(id, &mut [0; 4_000]), Ok(Read::Bytes(4_000)));
    assert!(packet(&mut server, 1200).is_none());
    assert_eq!(server.read(id, &mut [0; 1_000]), Ok(Read::Bytes(1_000)));
    assert_eq!(packet(&mut server, 1200).unwrap().1, [SentFrame::MaxStream(id)]);
}

/// An unread stream must not block the remaining streams for ever.
#[test]
fn an_unread_stream_does_not_starve_the_rest() {
    let limits = FlowControlLimits { data: 10_000, stream: 9_000, ..LIMITS };
    let (mut client, mut server) = pair(limits, 30_000);
    let unread = client.open(true).unwrap();
    let read = client.open(true).unwrap();
    client.write(unread, &[1; 9_000]).unwrap();
    talk(&mut client, &mut server);
    client.write(read, &[2; 30_000]).unwrap();
    client.finish(read).unwrap();
    let mut got = 0;
    for _ in 0..100 {
        talk(&mut client, &mut server);
        got += read_all(&mut server, read).0.len();
        talk(&mut server, &mut client);
    }
    assert_eq!(got, 30_000);
}

#[test]
fn waiting_writer_wakes_when_a_quarter_is_free() {
    let (mut client, _) = pair(LIMITS, 4_000);
    let id = client.open(true).unwrap();
    assert_eq!(client.write(id, &[0; 5_000]), Ok(4_000));
    assert_eq!(client.write(id, &[0; 5_000]), Ok(0));
    let mut freed = 0;
    let mut told = 0;
    while let Some((_, sent_frames)) = packet(&mut client, 500) {
        sent_frames.iter().for_each(|p| client.arrived(p));
        freed += sent_frames
            .iter()
            .map(|p| if let SentFrame::Stream { length, .. } = p { *length } else { 0 })
            .sum::<u32>();
        let now = events(&mut client);
        assert!(now.is_empty() || freed >= 1_000);
        told += now.len();
    }
    assert_eq!((freed, told), (4_000, 1));
}

#[test]
fn streams_are_permitted_anew_as_they_end() {
    let (mut client, mut server) = pair(LIMITS, 4_000);
    let ids: Vec<u64> = std::iter::from_fn(|| client.open(true)).collect();
    assert_eq!(ids, [2, 6]);
    talk(&mut client, &mut server);
    for id in ids {
        client.finish(id).unwrap();
    }
    talk(&mut client, &mut server);
    assert_eq!(client.open(true), None);
    assert_eq!(server.read(2, &mut [0]), Ok(Read::End));
    talk(&mut server, &mut client);
    let heard = events(&mut client);
    assert!(heard.contains(&StreamEvent::MayOpen), "{heard:?}");
    assert_eq!(client.open(true), Some(10));
}

#[test]
fn streams_take_turns_packet_by_packet() {
    let (mut client, _) = pair(LIMITS, 9_000);
    for _ in 0..3 {
        let id = client.open(false).unwrap();
        client.write(id, &[0; 9_000]).unwrap();
    }
    let order: Vec<Vec<u64>> = (0..6)
        .map(|_| packet(&mut client, 1000).unwrap().1)
        .map(|p| {
            p.iter().map(|p| if let SentFrame::Stream { id, .. } = p { *id } else { 99 }).collect()
        })
        .collect();
    assert_eq!(order, [[0], [4], [8], [0], [4], [8]]);
}

#[test]
fn a_full_packet_is_full_to_the_last_byte() {
    let (mut client, _) = pair(LIMITS, 9_000);
    let id = client.open(false).unwrap();
    client.write(id, &[0; 9_000]).unwrap();
    assert_eq!(packet(&mut client, 1000).unwrap().0.len(), 1000);
    assert_eq!(packet(&mut client, 1000).unwrap().0.len(), 1000);
}

#[test]
fn protocol_violations_are_named() {
    let cases: [(&[Frame<'_>], u64); 14] = [
        // Streams: beyond the limit, not opened yet, in a direction that does not exist.
        (&[stream(4 * 4, 0, b"x", false)], 2),
        (&[Frame::Stop { id: 4 * 4, code: 0 }], 2),
        (&[stream(1, 0, b"x", false)], 3),
        (&[Frame::MaxStream { id: 5, most: 1 }], 3),
        (&[stream(3, 0, b"x", false)], 3),
        (&[Frame::MaxStream { id: 2, most: 1 }], 3),
        (&[Frame::Stop { id: 2, code: 1 }], 3),
        // Data beyond the limits of the stream and of all streams.
        (&[stream(0, 9_999, b"xx", false)], 2),
        (&[Frame::ResetStream { id: 0, code: 0, size: 10_001 }], 2),
        (
            &[
                stream(0, 9_999, b"x", false),
                stream(4, 9_999, b"x", false),
                stream(8, 9_999, b"x", false),
                stream(12, 9_999, b"x", false),
                stream(2, 0, b"x", false),
            ],
            2,
        ),
        // Final sizes.
        (&[stream(0, 0, b"abc", true), stream(0, 3, b"d", false)], 3),
        (&[stream(0, 0, b"abc", true), stream(0, 0, b"ab", true)], 3),
        (&[stream(0, 0, b"abc", false), stream(0, 0, b"ab", true)], 3),
        (&[stream(0, 0, b"abc", false), Frame::ResetStream { id: 0, code: 0, size: 2 }], 3),
    ];
    for (frames, code) in cases {
        let (_, mut server) = pair(LIMITS, 9_000);
        let (last, first) = frames.split_last().unwrap();
        for frame in first {
            assert_eq!(server.on_frame(frame), Ok(true), "{frame:?}");
        }
        assert_eq!(server.on_frame(last).map_err(|v| v.code), Err(code), "{last:?}");
    }
}

#[test]
fn reordered_and_repeated_data_is_read_in_order() {
    let (_, mut server) = pair(LIMITS, 9_000);
    for (offset, data) in [(6, "GHI"), (2, "CD"), (6, "xxxJ"), (1, "BxxE"), (0, "xx"), (5, "F")] {
        assert_eq!(server.on_frame(&stream(0, offset, data.as_bytes(), false)), Ok(true));
    }
    assert_eq!(read_all(&mut server, 0), (b"xBCDEFGHIJ".to_vec(), Ok(Read::Blocked)));
    assert_eq!(events(&mut server), [StreamEvent::Opened, StreamEvent::Readable(0)]);
    server.on_frame(&stream(0, 3, b"old news", false)).unwrap();
    assert_eq!(read_all(&mut server, 0), (b"s".to_vec(), Ok(Read::Blocked)));
}

/// A writer that finishes after its data have left sends the end in a frame of its own. If that frame arrives first,
/// the data must still be read unchanged.
#[test]
fn empty_end_that_overtakes_data_changes_no_byte() {
    let (mut client, mut server) = pair(LIMITS, 10_000);
    let id = client.open(false).unwrap();
    for (offset, data, fin) in [(5, &b""[..], true), (0, b"hello", false)] {
        server.on_frame(&stream(id, offset, data, fin)).unwrap();
    }
    assert_eq!(server.accept(), Some(id));
    assert_eq!(read_all(&mut server, id), (b"hello".to_vec(), Ok(Read::End)));

    let id = client.open(false).unwrap();
    for (offset, data, fin) in [(8, &b""[..], true), (4, b"EFGH", false), (0, b"ABCD", false)] {
        server.on_frame(&stream(id, offset, data, fin)).unwrap();
    }
    assert_eq!(read_all(&mut server, id), (b"ABCDEFGH".to_vec(), Ok(Read::End)));
}

#[test]
fn events_come_once_until_the_application_did_something() {
    let (_, mut server) = pair(LIMITS, 9_000);
    for k in 0..50u64 {
        server.on_frame(&stream(0, k, b"x", false)).unwrap();
    }
    assert_eq!(events(&mut server), [StreamEvent::Opened, StreamEvent::Readable(0)]);
    server.on_frame(&stream(0, 50, b"x", false)).unwrap();
    assert_eq!(server.event(), None, "it has not read yet");
    assert_eq!(read_all(&mut server, 0).0.len(), 51);
    server.on_frame(&stream(0, 51, b"x", true)).unwrap();
    assert_eq!(server.event(), Some(StreamEvent::Readable(0)));
    // The short read takes all data; the end still needs an event.
    assert_eq!(server.read(0, &mut [0; 9]), Ok(Read::Bytes(1)));
    assert_eq!(server.event(), Some(StreamEvent::Readable(0)));
}

/// Turns of `turn_bytes`: a stream with less completes before the next one begins; a stream with more lets the next one
/// begin.
#[test]
fn turns_are_as_long_as_is_said() {
    let order = |turn_bytes: u64| {
        let (mut client, mut server) = pair(LIMITS, 1 << 20);
        client.set_turn(turn_bytes);
        let ids: Vec<u64> = (0..3).map(|_| client.open(false).unwrap()).collect();
        for (id, bytes) in ids.iter().zip([3000, 9000, 3000]) {
            client.write(*id, &vec![1; bytes]).unwrap();
        }
        let mut order: Vec<usize> = Vec::new();
        while let Some((bytes, sent)) = packet(&mut client, 1200) {
            deliver(&mut server, &bytes).unwrap();
            for frame in sent {
                client.arrived(&frame);
                if let SentFrame::Stream { id, .. } = frame {
                    order.push(ids.iter().position(|i| *i == id).unwrap());
                }
            }
        }
        order.dedup();
        order
    };
    assert_eq!(order(0)[..6], [0, 1, 2, 0, 1, 2]);
    assert_eq!(order(4000), [0, 1, 2, 1]);
    assert_eq!(order(1 << 20), [0, 1, 2]);
}
