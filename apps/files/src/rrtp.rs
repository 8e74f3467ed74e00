//! The service over `rrtp`. This file has the parts that both ends share; the client's connections are in
//! `rrtp/session.rs`, the server in `rrtp/server.rs`.

mod server;
mod session;

use crate::error_code;
use crate::silence::Silence;
use crate::stream::{FileStream, Output};
use crate::until::Until;
use narrows_net::{ReceiveStream, SendStream, block_on_for};
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_transport::connection::ConnectionConfig;
use narrows_wire::noise::PublicKey;
use narrows_wire::{ApplicationProtocols, StaticKey};
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

#[cfg(test)]
pub(crate) use server::remember;
pub use server::{Permit, RrtpServer, ServerControl};
pub use session::{Expect, RrtpSession, SessionOptions};

/// The application protocol of this service: its messages have a version of their own.
const APPLICATION: &str = "narrows-files";

/// Sets the application protocol in the handshake.
pub(crate) fn for_files(config: ConnectionConfig) -> Result<ConnectionConfig, Error> {
    let applications = ApplicationProtocols::new([APPLICATION])
        .map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
    Ok(ConnectionConfig { applications, ..config })
}

/// A stream reset with this plus an ERROR's code ends as with that ERROR.
const GIVEN_UP: u64 = 256;
/// Interval at which a blocking call checks whether the user has stopped the transfer.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);

/// Waits for a future until its deadline.
fn wait<F: Future>(
    until: &Until,
    silence: Option<&Silence>,
    future: F,
) -> Result<F::Output, Error> {
    wait_and_look(until, silence, || (), future)
}

/// As [`wait`]; also calls `look` at every wakeup.
fn wait_and_look<F: Future>(
    until: &Until,
    silence: Option<&Silence>,
    mut look: impl FnMut(),
    future: F,
) -> Result<F::Output, Error> {
    let since = Instant::now();
    let mut future = pin!(future);
    let mut either = pin!(poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        until.poll(context.waker()).map_or(Poll::Pending, |e| Poll::Ready(Err(e)))
    }));
    loop {
        if let Some(done) = block_on_for(LOOK, either.as_mut()) {
            if let Some(silence) = silence {
                silence.moved();
            }
            return done;
        }
        look();
        if let Some(e) = until.over().or_else(|| silence.and_then(|s| s.over(since))) {
            return Err(e);
        }
    }
}

fn transport_error(e: narrows_net::Error, own_key: &PublicKey) -> Error {
    use narrows_net::Error as E;
    let kind = match &e {
        E::NoAddress { failed } => {
            let kinds =
                failed.iter().map(|failed| transport_error(failed.cause.clone(), own_key).kind);
            narrows_peers::dial::kind_of_all(kinds)
        }
        E::Refused { .. } => return crate::service::refused(own_key),
        E::NoAnswer { .. }
        | E::NoListener { .. }
        | E::SmallPath { .. }
        | E::Address { .. }
        | E::Bind { .. } => ErrorKind::Unreachable,
        E::Busy { .. } => ErrorKind::Busy,
        E::WrongKey { address, found, .. } => {
            let found = narrows_peers::key::text(found);
            let line = format!("{address} has another key than expected ({found} now)");
            return Error::new(ErrorKind::WrongKey, line);
        }
        E::Version { .. } | E::NoCommonProtocol { .. } => ErrorKind::Version,
        E::System(_) | E::TooMany => ErrorKind::Local,
        // A stream that was abandoned in the middle of a frame: the code is an ERROR's.
        E::StreamReset(code) if *code > GIVEN_UP => {
            let kind = error_code::from_code(u16::try_from(code - GIVEN_UP).unwrap_or_default());
            let line = "the server is busy and gave this request up: try again later";
            let other = format!("the server gave this request up (code {code})");
            return if kind == ErrorKind::Busy {
                Error::new(kind, line)
            } else {
                Error::new(kind, other)
            };
        }
        _ => return Error::new(ErrorKind::Cut, format!("the connection was cut ({e})")),
    };
    Error::new(kind, e.to_string())
}

fn static_key(identity: &Identity) -> Result<StaticKey, Error> {
    StaticKey::new(*identity.private()).map_err(|e| Error::new(ErrorKind::Local, e.to_string()))
}

pub(crate) fn stream(
    send: SendStream,
    receive: ReceiveStream,
    until: Until,
    silence: Option<Silence>,
    own_key: PublicKey,
) -> FileStream {
    let input = Box::new(StreamHalf {
        half: receive,
        until: until.clone(),
        silence: silence.clone(),
        own_key,
    });
    FileStream { input, output: Box::new(StreamHalf { half: send, until, silence, own_key }) }
}

/// Half of a stream, as a blocking reader or writer.
struct StreamHalf<S> {
    half: S,
    until: Until,
    /// `None` at a server, where requests have deadlines of their own.
    silence: Option<Silence>,
    own_key: PublicKey,
}

impl Read for StreamHalf<ReceiveStream> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        wait(&self.until, self.silence.as_ref(), self.half.receive(into))
            .and_then(|read| read.map_err(|e| transport_error(e, &self.own_key)))
            .map_err(Error::into_io)
    }
}

impl Write for StreamHalf<SendStream> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let half = &mut self.half;
        let sent = poll_fn(|context| half.poll_send(context, bytes));
        wait(&self.until, self.silence.as_ref(), sent)
            .and_then(|sent| sent.map_err(|e| transport_error(e, &self.own_key)))
            .map_err(Error::into_io)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for StreamHalf<SendStream> {
    fn finish(&mut self) -> io::Result<()> {
        self.half.finish().map_err(|e| transport_error(e, &self.own_key).into_io())
    }
    fn abort(&mut self, why: &Error) {
        // Fails only if the connection has ended.
        let _ = self.half.reset(GIVEN_UP + u64::from(error_code::code(why.kind)));
    }
}
