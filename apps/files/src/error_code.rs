//! The numbers of errors in ERROR frames.

use narrows_peers::ErrorKind;

const CODES: &[(ErrorKind, u16)] = &[
    (ErrorKind::NotFound, 1),
    (ErrorKind::Denied, 2),
    (ErrorKind::WrongType, 3),
    (ErrorKind::BadPath, 4),
    (ErrorKind::ReadOnly, 5),
    (ErrorKind::Full, 6),
    (ErrorKind::Changed, 7),
    (ErrorKind::Corrupt, 8),
    (ErrorKind::Version, 9),
    (ErrorKind::Protocol, 10),
    (ErrorKind::Busy, 11),
    (ErrorKind::Refused, 12),
    (ErrorKind::Superseded, 13),
    (ErrorKind::Remote, 14),
    (ErrorKind::Exists, 15),
    (ErrorKind::TooLarge, 16),
];

/// The code in an ERROR frame.
pub fn code(kind: ErrorKind) -> u16 {
    CODES.iter().find(|(k, _)| *k == kind).map_or(14, |(_, c)| *c)
}

/// The kind of a code; [`ErrorKind::Remote`] for an unknown one.
pub fn from_code(code: u16) -> ErrorKind {
    CODES.iter().find(|(_, c)| *c == code).map_or(ErrorKind::Remote, |(k, _)| *k)
}
