//! The service over `rrtp`: one connection, one stream per request. Here the client; `rrtp/server.rs`.

mod server;

use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::message::Wishes;
use crate::stream::{Output, Session, Stream};
use crate::until::Until;
use narrows_base::{Duration, Rate};
use narrows_control::Profile;
use narrows_drive::tap::Tap;
use narrows_drive::{
    ConnectOptions, Connection, Endpoint, Options, ReceiveStream, SendStream, block_on_for,
};
use narrows_flow::connection::ConnectionConfig;
use narrows_flow::port::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

#[cfg(test)]
pub(crate) use server::remember;
pub use server::{End, Permit, Server};

/// A client asks for a sign of life when nothing came for so long: a server at work says something
/// every second, so by then it is away, or does not know where the client is now.
const ASK: Duration = Duration::from_secs(5);
/// A stream that is reset with this and an ERROR's code ends as with that ERROR.
const GIVEN_UP: u64 = 256;
/// How often a waiting call looks whether the user has stopped it.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);

/// Waits for something, but not longer than it may.
fn wait<F: Future>(until: &Until, future: F) -> Result<F::Output, Error> {
    let mut future = pin!(future);
    let mut either = pin!(poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        until.poll(context.waker()).map_or(Poll::Pending, |e| Poll::Ready(Err(e)))
    }));
    loop {
        if let Some(done) = block_on_for(LOOK, either.as_mut()) {
            return done;
        }
        if let Some(e) = until.over() {
            return Err(e);
        }
    }
}

fn told(e: narrows_drive::Error, ours: &PublicKey) -> Error {
    use narrows_drive::Error as E;
    let kind = match &e {
        E::Refused { .. } => return crate::service::refused(ours),
        E::NoAnswer { .. } | E::Busy { .. } | E::Address { .. } | E::Bind { .. } => {
            Kind::Unreachable
        }
        E::WrongKey { address, found, .. } => {
            let found = crate::key::text(found);
            let line = format!("{address} has another key than expected ({found} now)");
            return Error::new(Kind::WrongKey, line);
        }
        E::Version { .. } => Kind::Version,
        E::System(_) | E::TooMany => Kind::Local,
        // Given up in the middle of what was being said: the code is an ERROR's.
        E::StreamReset(code) if *code > GIVEN_UP => {
            let kind = Kind::from_code(u16::try_from(code - GIVEN_UP).unwrap_or_default());
            let line = "the server is busy and gave this request up: try again later";
            let other = format!("the server gave this request up (code {code})");
            return if kind == Kind::Busy {
                Error::new(kind, line)
            } else {
                Error::new(kind, other)
            };
        }
        _ => return Error::new(Kind::Cut, format!("the connection was cut ({e})")),
    };
    Error::new(kind, e.to_string())
}

fn static_key(identity: &Identity) -> Result<StaticKey, Error> {
    StaticKey::new(*identity.private()).map_err(|e| Error::new(Kind::Local, e.to_string()))
}

/// Whom a client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// This key.
    Key(PublicKey),
    /// Somebody new: the key is judged by whoever connects.
    Anybody,
}

/// A client's connection.
pub struct RrtpSession {
    connection: Connection,
    endpoint: Endpoint,
    label: String,
    ours: PublicKey,
    stop: &'static AtomicBool,
}

impl RrtpSession {
    /// Connects to `host:port`; `tap` watches.
    ///
    /// # Errors
    /// The name leads nowhere, nobody answers, the key is another one.
    pub fn connect(
        host: &str,
        port: u16,
        identity: &Identity,
        expect: Expect,
        config: ConnectionConfig,
        tap: Option<Arc<dyn Tap>>,
        stop: &'static AtomicBool,
    ) -> Result<RrtpSession, Error> {
        let addresses = (host, port)
            .to_socket_addrs()
            .map_err(|_| Error::new(Kind::Unreachable, format!("{host}: no such host is known")))?;
        let mut last = Error::new(Kind::Unreachable, format!("{host}: the name has no address"));
        for address in addresses {
            match RrtpSession::to(address, identity, expect, config.clone(), tap.clone(), stop) {
                Err(e) if e.kind == Kind::Unreachable => last = e,
                other => return other,
            }
        }
        Err(last)
    }

    fn to(
        address: SocketAddr,
        identity: &Identity,
        expect: Expect,
        config: ConnectionConfig,
        tap: Option<Arc<dyn Tap>>,
        stop: &'static AtomicBool,
    ) -> Result<RrtpSession, Error> {
        let ours = *identity.public();
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let label = config.protocol.label().to_string();
        let config = ConnectionConfig { keep_alive: ASK, ..config };
        let options = Options::client(static_key(identity)?, config.clone()).tapped(tap);
        let endpoint =
            Endpoint::bind(SocketAddr::new(any, 0), options).map_err(|e| told(e, &ours))?;
        let server_key = match expect {
            Expect::Key(key) => ServerKey::Is(key),
            Expect::Anybody => ServerKey::Any,
        };
        let options = ConnectOptions {
            suite: crate::key::suite(),
            ..ConnectOptions::new(server_key, config)
        };
        let connected = wait(&Until::Stopped(stop), endpoint.connect(address, options))?;
        let connection = connected.map_err(|e| told(e, &ours))?;
        Ok(RrtpSession { connection, endpoint, label, ours, stop })
    }

    /// The server's key.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.connection.peer_key()
    }

    /// What this end has learned of the path.
    pub fn learned(&self) -> Profile {
        self.connection.learned()
    }

    /// For how long nothing has come from the server, and after how much of it the connection is
    /// given up; `None` when it is over.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        self.connection.silence().ok()
    }
}

impl Drop for RrtpSession {
    /// The server shall not have to find out by silence.
    fn drop(&mut self) {
        self.endpoint.leave(0, "");
    }
}

impl Session for RrtpSession {
    fn open(&self) -> Result<Stream, Error> {
        let (send, receive) = wait(&Until::Stopped(self.stop), self.connection.open_bi())?
            .map_err(|e| told(e, &self.ours))?;
        Ok(stream(send, receive, Until::Stopped(self.stop), self.ours))
    }
    fn protocol(&self) -> String {
        self.label.clone()
    }
}

fn stream(send: SendStream, receive: ReceiveStream, until: Until, ours: PublicKey) -> Stream {
    let input = Box::new(Half { half: receive, until: until.clone(), ours });
    Stream { input, output: Box::new(Half { half: send, until, ours }) }
}

/// A half that blocks, as long as it may.
struct Half<S> {
    half: S,
    until: Until,
    ours: PublicKey,
}

impl Read for Half<ReceiveStream> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        wait(&self.until, self.half.receive(into))
            .and_then(|read| read.map_err(|e| told(e, &self.ours)))
            .map_err(Error::into_io)
    }
}

impl Write for Half<SendStream> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let half = &mut self.half;
        wait(&self.until, poll_fn(|context| half.poll_send(context, bytes)))
            .and_then(|sent| sent.map_err(|e| told(e, &self.ours)))
            .map_err(Error::into_io)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Half<SendStream> {
    fn finish(&mut self) -> io::Result<()> {
        self.half.finish().map_err(|e| told(e, &self.ours).into_io())
    }
    fn abort(&mut self, why: &Error) {
        // A connection that is over has nothing to be told.
        let _ = self.half.reset(GIVEN_UP + u64::from(why.kind.code()));
    }
}

/// What a profile is on the wire.
pub fn wishes(profile: &Profile, controller: &str) -> Wishes {
    Wishes {
        rate_bps: profile.rate.map(Rate::as_bps),
        rtt_ns: profile.rtt.map(Duration::as_nanos),
        loss_ppb: profile.loss.map(|x| (x * 1e9) as u64),
        controller: controller.to_string(),
    }
}

/// And back.
pub fn profile(wishes: &Wishes) -> Profile {
    Profile {
        rate: wishes.rate_bps.filter(|r| *r > 0).map(Rate::from_bps),
        rtt: wishes.rtt_ns.map(Duration::from_nanos),
        loss: wishes.loss_ppb.map(|n| n as f64 * 1e-9),
    }
}
