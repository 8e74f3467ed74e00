//! The numbers of errors in ERROR frames.

use narrows_peers::Kind;

const CODES: &[(Kind, u16)] = &[
    (Kind::NotFound, 1),
    (Kind::Denied, 2),
    (Kind::WrongType, 3),
    (Kind::BadPath, 4),
    (Kind::ReadOnly, 5),
    (Kind::Full, 6),
    (Kind::Changed, 7),
    (Kind::Corrupt, 8),
    (Kind::Version, 9),
    (Kind::Protocol, 10),
    (Kind::Busy, 11),
    (Kind::Refused, 12),
    (Kind::Superseded, 13),
    (Kind::Remote, 14),
    (Kind::Exists, 15),
    (Kind::TooLarge, 16),
];

/// The code in an ERROR frame.
pub fn code(kind: Kind) -> u16 {
    CODES.iter().find(|(k, _)| *k == kind).map_or(14, |(_, c)| *c)
}

/// The kind of a code; [`Kind::Remote`] for an unknown one.
pub fn from_code(code: u16) -> Kind {
    CODES.iter().find(|(_, c)| *c == code).map_or(Kind::Remote, |(k, _)| *k)
}
