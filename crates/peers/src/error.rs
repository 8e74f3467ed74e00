//! Errors: one line for people, and a kind for programs.

use std::fmt;
use std::io;

/// Kinds of errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The user's input is wrong.
    Input,
    /// No such file or folder.
    NotFound,
    /// The system denies permission.
    Denied,
    /// A folder where a file is expected, or a file where a folder is.
    WrongType,
    /// A path that the service does not accept.
    BadPath,
    /// The server does not accept uploads.
    ReadOnly,
    /// No space is left, or the quota is used up.
    Full,
    /// The source changed while it was read.
    Changed,
    /// The hash does not match the source's.
    Corrupt,
    /// The two ends use different versions.
    Version,
    /// The peer violated the protocol.
    Protocol,
    /// A limit on concurrent work is reached; retry later.
    Busy,
    /// The server's allow list lacks the client's key.
    Refused,
    /// A newer upload of the same file took over.
    Superseded,
    /// Another file has that name, and must not be replaced.
    Exists,
    /// The file exceeds the server's size limit.
    TooLarge,
    /// Another error at the peer.
    Remote,
    /// The server's key is not the expected one.
    WrongKey,
    /// The peer does not answer.
    Unreachable,
    /// The connection ended before the transfer did.
    Cut,
    /// The user stopped the transfer.
    Interrupted,
    /// Another error at this end.
    Local,
}

impl Kind {
    /// A word for counters.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::NotFound => "not_found",
            Kind::Denied => "denied",
            Kind::WrongType => "wrong_type",
            Kind::BadPath => "bad_path",
            Kind::ReadOnly => "read_only",
            Kind::Full => "full",
            Kind::Changed => "changed",
            Kind::Corrupt => "corrupt",
            Kind::Version => "version",
            Kind::Protocol => "protocol",
            Kind::Busy => "busy",
            Kind::Refused => "not_listed",
            Kind::Superseded => "superseded",
            Kind::Exists => "exists",
            Kind::TooLarge => "too_large",
            Kind::Remote => "remote",
            Kind::WrongKey => "wrong_key",
            Kind::Unreachable => "unreachable",
            Kind::Cut => "cut",
            Kind::Interrupted => "interrupted",
            Kind::Local => "local",
        }
    }
}

/// One line with the fault, its place, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Error {
    /// Category, for programs.
    pub kind: Kind,
    /// Text without a line end, for people.
    pub line: String,
}

impl Error {
    /// An error with this text.
    pub fn new(kind: Kind, line: impl Into<String>) -> Error {
        Error { kind, line: line.into() }
    }

    /// A system call on a file failed. `what` names the file.
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

    /// The user stopped the transfer.
    pub fn interrupted() -> Error {
        Error::new(Kind::Interrupted, "interrupted")
    }

    /// The peer violated the protocol; `what` it sent is shown to the user.
    pub fn protocol(what: &str) -> Error {
        Error::new(Kind::Protocol, format!("the peer does not keep to the protocol: {what}"))
    }

    /// The same error with its place in front.
    #[must_use]
    pub fn at(mut self, place: &str) -> Error {
        self.line = format!("{place}: {}", self.line);
        self
    }

    /// The same error with more text at its end.
    #[must_use]
    pub fn and(mut self, more: &str) -> Error {
        self.line = format!("{}; {more}", self.line);
        self
    }

    /// For APIs that carry [`io::Error`]; [`Error::stream`] restores the error.
    pub fn into_io(self) -> io::Error {
        io::Error::other(self)
    }
}

/// Removes the system's error number.
fn plain(text: &str) -> String {
    text.split(" (os error").next().unwrap_or(text).to_string()
}

/// Text of a peer, or a name, safe for a terminal: control characters are escaped.
pub fn shown(text: &str) -> String {
    narrows_base::text::shown(text).into_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Error {}
