//! The transport parameters, sealed in START-ECHO and FINISH: the *hello*.
//!
//! ```text
//! | connection id (4) | kind (1) | length (1) | value | kind | length | value | …
//! ```
//!
//! Kinds are in ascending order, each at most once. Integers are variable-length and fill their value exactly. Unknown
//! kinds are skipped; an absent kind means 0, or an empty list.

use crate::application::ApplicationProtocols;
use crate::bytes::{BufferFull, ByteReader, Malformed, Sink};
use crate::header::ConnectionId;

/// The most bytes of a hello.
pub const MAX_HELLO_BYTES: usize = 512;
/// The most bytes of a controller's name with its parameters.
pub const MAX_CONTROLLER_BYTES: usize = 128;

/// An endpoint's connection id and parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The id in packets *to* this endpoint.
    pub connection: ConnectionId,
    /// Transport parameters of the sender.
    pub params: Params,
}

/// Limits and choices of one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Params {
    /// Idle timeout in milliseconds; 0 disables it.
    pub idle_timeout_ms: u64,
    /// Largest UDP payload that this endpoint receives, in bytes; 0 means 1200.
    pub max_datagram: u64,
    /// Initial flow-control limit of the connection, in bytes.
    pub max_data: u64,
    /// Initial flow-control limit of each stream, in bytes.
    pub max_stream: u64,
    /// Initial limit on the bidirectional streams that the peer may open.
    pub max_streams_both: u64,
    /// Initial limit on the unidirectional streams that the peer may open.
    pub max_streams_one: u64,
    /// Longest content of a DATAGRAM frame that this endpoint accepts, in bytes; 0: no DATAGRAM
    /// frames.
    pub max_message: u64,
    /// Client: the version of its first SYN, which reveals a forged VERSION.
    pub offered: Option<u32>,
    /// The token in a RESET of this endpoint.
    pub reset_token: Option<[u8; 16]>,
    /// The congestion controller of this endpoint's sender, as a specification (`tfrc`,
    /// `cubic:beta=0.7`), so that the peer can run its receiver side. Printable ASCII.
    pub controller: String,
    /// Client: the application protocols that it offers.
    pub applications: ApplicationProtocols,
    /// Number of the latest packets that this endpoint keeps in order to rebuild a lost one from REPAIR frames. With 0
    /// it neither accepts nor sends REPAIR frames.
    pub repair: u64,
    /// Number of paths that this endpoint can use at once; 0 and 1 mean one path.
    pub paths: u64,
}

const OFFERED: u8 = 8;
const RESET_TOKEN: u8 = 9;
const CONTROLLER: u8 = 10;
const APPLICATIONS: u8 = 11;
const REPAIR: u8 = 12;
const PATHS: u8 = 13;

impl Hello {
    /// Writes the hello.
    ///
    /// # Errors
    /// It does not fit, a number is above 2^62 - 1, or the controller's name is invalid.
    pub fn write(&self, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
        let p = &self.params;
        sink.number(u64::from(self.connection.0), 4)?;
        let numbers = [
            p.idle_timeout_ms,
            p.max_datagram,
            p.max_data,
            p.max_stream,
            p.max_streams_both,
            p.max_streams_one,
            p.max_message,
        ];
        for (kind, number) in (1u8..).zip(numbers) {
            write_number(sink, kind, number)?;
        }
        if let Some(version) = p.offered {
            sink.put(&[OFFERED, 4])?;
            sink.number(u64::from(version), 4)?;
        }
        if let Some(token) = &p.reset_token {
            sink.put(&[RESET_TOKEN, 16])?;
            sink.put(token)?;
        }
        if !p.controller.is_empty() {
            let name = p.controller.as_bytes();
            if !is_name(name) {
                return Err(BufferFull);
            }
            sink.put(&[CONTROLLER, name.len() as u8])?;
            sink.put(name)?;
        }
        if !p.applications.is_empty() {
            sink.byte(APPLICATIONS)?;
            p.applications.write(sink)?;
        }
        write_number(sink, REPAIR, p.repair)?;
        write_number(sink, PATHS, p.paths)
    }

    /// Reads a hello.
    ///
    /// # Errors
    /// The hello is truncated, too long or out of order, or a value is invalid.
    pub fn read(bytes: &[u8]) -> Result<Hello, Malformed> {
        if bytes.len() > MAX_HELLO_BYTES {
            return Err(Malformed::new("parameters above 512 bytes"));
        }
        let mut source = ByteReader::new(bytes);
        let connection = ConnectionId(source.u32()?);
        let mut p = Params::default();
        let mut last = 0;
        while !source.is_empty() {
            let kind = source.byte()?;
            let length = usize::from(source.byte()?);
            let value = source.take(length)?;
            if kind <= last {
                return Err(Malformed::new("parameters are not in rising order"));
            }
            last = kind;
            match kind {
                1 => p.idle_timeout_ms = whole(value)?,
                2 => p.max_datagram = whole(value)?,
                3 => p.max_data = whole(value)?,
                4 => p.max_stream = whole(value)?,
                5 => p.max_streams_both = whole(value)?,
                6 => p.max_streams_one = whole(value)?,
                7 => p.max_message = whole(value)?,
                OFFERED => p.offered = Some(u32::from_be_bytes(exact(value)?)),
                RESET_TOKEN => p.reset_token = Some(exact(value)?),
                CONTROLLER => {
                    if !is_name(value) {
                        return Err(Malformed::new("a controller's name is printable ASCII"));
                    }
                    p.controller = value.iter().map(|b| char::from(*b)).collect();
                }
                APPLICATIONS => p.applications = ApplicationProtocols::read(value)?,
                REPAIR => p.repair = whole(value)?,
                PATHS => p.paths = whole(value)?,
                _ => {}
            }
        }
        Ok(Hello { connection, params: p })
    }
}

fn write_number(sink: &mut Sink<'_>, kind: u8, number: u64) -> Result<(), BufferFull> {
    if number == 0 {
        return Ok(());
    }
    sink.put(&[kind, crate::bytes::varint_len(number) as u8])?;
    sink.varint(number)
}

fn whole(value: &[u8]) -> Result<u64, Malformed> {
    let mut source = ByteReader::new(value);
    let number = source.varint()?;
    if source.is_empty() { Ok(number) } else { Err(WRONG) }
}

fn exact<const N: usize>(value: &[u8]) -> Result<[u8; N], Malformed> {
    value.try_into().map_err(|_| WRONG)
}

const WRONG: Malformed = Malformed::new("a parameter of the wrong length");

fn is_name(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_CONTROLLER_BYTES && bytes.iter().all(|b| (0x20..0x7f).contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hellos_come_back(
            id in any::<u32>(), n in prop::array::uniform7(0u64..1 << 62), shift in 0u32..62,
            offered in any::<Option<u32>>(), reset_token in any::<Option<[u8; 16]>>(),
            controller in "[ -~]{0,128}", names in prop::collection::btree_set("[!-+\\--~]{1,20}", 0..6), repair in 0u64..1000,
            paths in 0u64..300, cut in any::<prop::sample::Index>(),
            corrupt in any::<(prop::sample::Index, u8)>(),
        ) {
            let [a, b, c, d, e, f, g] = n.map(|x| x >> shift);
            let hello = Hello { connection: ConnectionId(id), params: Params {
                idle_timeout_ms: a, max_datagram: b, max_data: c, max_stream: d,
                max_streams_both: e, max_streams_one: f, max_message: g, offered, reset_token, controller,
                applications: ApplicationProtocols::new(names).unwrap(), repair, paths,
            } };
            let mut buffer = [0; MAX_HELLO_BYTES];
            let mut sink = Sink::new(&mut buffer);
            hello.write(&mut sink).unwrap();
            let mut bytes = sink.written().to_vec();
            prop_assert_eq!(Hello::read(&bytes), Ok(hello));
            // Data that a later version appends are skipped.
            let known = bytes.len();
            bytes.extend_from_slice(&[200, 3, 1, 2, 3]);
            prop_assert!(Hello::read(&bytes).is_ok());
            bytes.truncate(known);
            let _ = Hello::read(&bytes[..cut.index(known)]);
            bytes[corrupt.0.index(known)] = corrupt.1;
            let _ = Hello::read(&bytes);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (bytes, why) in [
            (&[0, 0, 0][..], "cut off"),
            (&[0, 0, 0, 1, 1], "no length"),
            (&[0, 0, 0, 1, 1, 2, 5], "value cut off"),
            (&[0, 0, 0, 1, 2, 1, 5, 1, 1, 5], "falling"),
            (&[0, 0, 0, 1, 1, 1, 5, 1, 1, 5], "twice"),
            (&[0, 0, 0, 1, 1, 2, 5, 5], "more than the integer"),
            (&[0, 0, 0, 1, 9, 2, 5, 5], "a short token"),
            (&[0, 0, 0, 1, 10, 1, 7], "a bell in a name"),
            (&[0, 0, 0, 1, 11, 2, 2, 65], "an application protocol cut off"),
        ] {
            assert!(Hello::read(bytes).is_err(), "{why}");
        }
    }
}
