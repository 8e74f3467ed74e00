//! Errors: one line for people, and a kind for programs.

use std::fmt;
use std::io;

/// Classes of failures; each has its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
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

impl ErrorKind {
    /// A word for counters.
    pub fn word(self) -> &'static str {
        match self {
            ErrorKind::Input => "input",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Denied => "denied",
            ErrorKind::WrongType => "wrong_type",
            ErrorKind::BadPath => "bad_path",
            ErrorKind::ReadOnly => "read_only",
            ErrorKind::Full => "full",
            ErrorKind::Changed => "changed",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Version => "version",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Busy => "busy",
            ErrorKind::Refused => "not_listed",
            ErrorKind::Superseded => "superseded",
            ErrorKind::Exists => "exists",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::Remote => "remote",
            ErrorKind::WrongKey => "wrong_key",
            ErrorKind::Unreachable => "unreachable",
            ErrorKind::Cut => "cut",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Local => "local",
        }
    }
}

/// One line with the fault, its place, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Error {
    /// Category, for programs.
    pub kind: ErrorKind,
    /// Text without a line end, for people.
    pub line: String,
}

impl Error {
    /// An error with this text.
    pub fn new(kind: ErrorKind, line: impl Into<String>) -> Error {
        Error { kind, line: line.into() }
    }

    /// A system call on a file failed. `what` names the file.
    pub fn file(what: &str, e: &io::Error) -> Error {
        let kind = match e.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ErrorKind::Full,
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => ErrorKind::WrongType,
            _ => ErrorKind::Local,
        };
        let why = match kind {
            ErrorKind::NotFound => "no such file or folder".to_string(),
            ErrorKind::Denied => "permission denied".to_string(),
            ErrorKind::Full => "the disk is full".to_string(),
            _ => plain(&e.to_string()),
        };
        Error { kind, line: format!("{what}: {why}") }
    }

    /// A thread could not be started.
    pub fn no_thread(e: &io::Error) -> Error {
        let why = plain(&e.to_string());
        let line =
            format!("the system starts no more threads ({why}): raise ulimit -u or the pids limit");
        Error::new(ErrorKind::Local, line)
    }

    /// Reading from or writing to the peer failed.
    pub fn stream(e: io::Error) -> Error {
        let text = e.to_string();
        if let Some(inner) = e.into_inner()
            && let Ok(own_error) = inner.downcast::<Error>()
        {
            return *own_error;
        }
        Error::new(ErrorKind::Cut, format!("the connection was cut ({})", plain(&text)))
    }

    /// The user stopped the transfer.
    pub fn interrupted() -> Error {
        Error::new(ErrorKind::Interrupted, "interrupted")
    }

    /// The peer violated the protocol; `what` it sent is shown to the user.
    pub fn protocol(what: &str) -> Error {
        Error::new(ErrorKind::Protocol, format!("the peer does not keep to the protocol: {what}"))
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
