//! Why a transfer failed: one line for people, and a kind for programs.

use std::fmt;
use std::io;

/// What went wrong. Those with a number travel in an ERROR frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// What the user wrote is wrong.
    Input,
    /// No such file or folder.
    NotFound,
    /// The system does not permit it.
    Denied,
    /// A folder where a file is expected, or the other way round.
    WrongType,
    /// A path that no service takes.
    BadPath,
    /// The server takes no files.
    ReadOnly,
    /// No space left.
    Full,
    /// The source changed while it was read.
    Changed,
    /// The bytes are not those of the source.
    Corrupt,
    /// The two ends speak different versions.
    Version,
    /// The peer broke the protocol.
    Protocol,
    /// Too much at once.
    Busy,
    /// The client's key is not on the list.
    Refused,
    /// A newer upload of the same file took over.
    Superseded,
    /// Another file has that name, and is not to be replaced.
    Exists,
    /// Larger than what is taken.
    TooLarge,
    /// Something else at the peer.
    Remote,
    /// The server has another key than expected.
    WrongKey,
    /// Nobody answers there.
    Unreachable,
    /// The connection ended before the transfer did.
    Cut,
    /// The user stopped it.
    Interrupted,
    /// Something else here.
    Local,
}

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

impl Kind {
    /// The number in an ERROR frame.
    pub fn code(self) -> u16 {
        CODES.iter().find(|(k, _)| *k == self).map_or(14, |(_, c)| *c)
    }
    /// From that number; an unknown one is [`Kind::Remote`].
    pub fn from_code(code: u16) -> Kind {
        CODES.iter().find(|(_, c)| *c == code).map_or(Kind::Remote, |(k, _)| *k)
    }
}

/// One line that says what is wrong, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Error {
    /// What kind of thing went wrong.
    pub kind: Kind,
    /// The line.
    pub line: String,
}

impl Error {
    /// With this line.
    pub fn new(kind: Kind, line: impl Into<String>) -> Error {
        Error { kind, line: line.into() }
    }

    /// A system call on a file failed. `what` is the file.
    pub fn file(what: &str, e: &io::Error) -> Error {
        let kind = match e.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            io::ErrorKind::PermissionDenied => Kind::Denied,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Kind::Full,
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => Kind::WrongType,
            _ => Kind::Local,
        };
        let why = match kind {
            Kind::NotFound => "no such file or folder".to_string(),
            Kind::Denied => "permission denied".to_string(),
            Kind::Full => "the disk is full".to_string(),
            _ => plain(&e.to_string()),
        };
        Error { kind, line: format!("{what}: {why}") }
    }

    /// A thread could not be started.
    pub fn no_thread(e: &io::Error) -> Error {
        let why = plain(&e.to_string());
        let line =
            format!("the system starts no more threads ({why}): raise ulimit -u or the pids limit");
        Error::new(Kind::Local, line)
    }

    /// Reading from or writing to the peer failed.
    pub fn stream(e: io::Error) -> Error {
        let text = e.to_string();
        if let Some(inner) = e.into_inner()
            && let Ok(ours) = inner.downcast::<Error>()
        {
            return *ours;
        }
        Error::new(Kind::Cut, format!("the connection was cut ({})", plain(&text)))
    }

    /// Stopped by the user.
    pub fn interrupted() -> Error {
        Error::new(Kind::Interrupted, "interrupted")
    }

    /// The peer said what no peer says.
    pub fn protocol(what: &str) -> Error {
        Error::new(Kind::Protocol, format!("the peer does not keep to the protocol: {what}"))
    }

    /// The same error, told where it is.
    #[must_use]
    pub fn at(mut self, place: &str) -> Error {
        self.line = format!("{place}: {}", self.line);
        self
    }

    /// The same error with more to say.
    #[must_use]
    pub fn and(mut self, more: &str) -> Error {
        self.line = format!("{}; {more}", self.line);
        self
    }

    /// For APIs that carry [`io::Error`]; [`Error::stream`] gives it back.
    pub fn into_io(self) -> io::Error {
        io::Error::other(self)
    }
}

/// Without the system's number, which helps nobody.
fn plain(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_string()
}

/// Text of a peer, or a name, as it may be shown: everything hidden is written out.
pub fn shown(text: &str) -> String {
    narrows_base::text::shown(text).into_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Error {}
