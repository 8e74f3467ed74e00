//! The sending end: from a local UDP port to a receiver, connected again whenever the connection is lost.

use crate::connection::{for_media, readable};
use crate::encoder::{EncoderRate, Range};
use crate::flow::{Flow, State, Through};
use crate::hello::{Answer, STATUS, hello, read_status};
use crate::receiver::Received;
use narrows_base::{Duration, Rate};
use narrows_files::{Error, Identity, Kind, key};
use narrows_net::tap::Tap;
use narrows_net::{
    ConnectOptions, Connection, Endpoint, Error as NetError, Options, ReceiveStream, SendStream,
};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{sleep, timeout};

/// The next attempt to connect follows after a pause that doubles.
const MIN_PAUSE: Wait = Wait::from_millis(500);
const MAX_PAUSE: Wait = Wait::from_secs(15);
/// A receiver has so long to answer.
const ANSWERING: Wait = Wait::from_secs(10);

/// Whether a key is the right one.
pub type Judge = Box<dyn Fn(&PublicKey) -> Result<(), Error> + Send + Sync>;

/// How a sender is made.
pub struct SendOptions {
    /// The receiver's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its key; without one the first that is met is judged, and kept from then on.
    pub key: Option<PublicKey>,
    /// Judges a key of the first meeting.
    pub judge: Judge,
    /// This end's key.
    pub identity: Identity,
    /// How connections behave.
    pub config: ConnectionConfig,
    /// An attempt is given up after so long.
    pub patience: Duration,
    /// The latency that is allowed beyond the path's shortest time.
    pub latency: Duration,
    /// The rates that the encoder can have.
    pub encoder: Range,
    /// The rate of each layer, the base layer first; one, if the stream has no layers.
    pub layers: Vec<Rate>,
    /// Told each rate for the encoder.
    pub on_rate: Box<dyn Fn(Rate) + Send + Sync>,
    /// Told a line when something happens that people should know.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
    /// What observes the endpoint of each connection.
    pub tap: Option<Arc<dyn Tap>>,
    /// Told what is known 20 times a second, while there is a connection, and when it is lost.
    pub on_state: Option<Box<dyn Fn(&State) + Send + Sync>>,
}

/// The sending end.
pub struct Sending {
    options: SendOptions,
    sockets: Vec<UdpSocket>,
    key: Mutex<Option<PublicKey>>,
    state: Mutex<State>,
    /// Of the present connection.
    endpoint: Mutex<Option<Endpoint>>,
}

/// Why a connection was of no use.
enum Ended {
    /// Another attempt may succeed; the reason.
    Lost(String),
    Final(Error),
}

impl Sending {
    /// From these sockets, one for each layer.
    pub fn new(sockets: Vec<UdpSocket>, options: SendOptions) -> Arc<Sending> {
        let rate = EncoderRate::new(options.encoder).rate();
        let state = State { bits_per_second: rate.as_bps(), ..State::default() };
        let key = Mutex::new(options.key);
        Arc::new(Sending {
            options,
            sockets,
            key,
            state: Mutex::new(state),
            endpoint: Mutex::default(),
        })
    }

    /// What is known now.
    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if let Some(on_state) = &self.options.on_state {
            on_state(&state);
        }
    }

    /// Connects and sends, and does so again whenever the connection is lost.
    ///
    /// # Errors
    /// What another attempt would not change: the receiver has another key, refuses this one, or speaks another version.
    pub async fn keep(&self) -> Result<(), Error> {
        let (mut pause, mut told) = (MIN_PAUSE, String::new());
        loop {
            let ended = match self.discarding(self.connect()).await {
                Ok((connection, endpoint)) => {
                    *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint);
                    let (at, began) = (connection.remote(), connection.now());
                    let ended = self.send_over(&connection).await;
                    self.change(|state| state.connected = false);
                    if connection.now().since(began) > Duration::from_secs(10) {
                        (pause, told) = (MIN_PAUSE, String::new());
                    }
                    connection.close(0, "");
                    match ended {
                        Ended::Lost(why) => {
                            let at = at.map_or("the receiver".into(), |at| at.to_string());
                            Ended::Lost(format!("the connection to {at} is lost ({why})"))
                        }
                        other => other,
                    }
                }
                Err(e) if e.kind == Kind::Unreachable || e.kind == Kind::Busy => {
                    Ended::Lost(e.line)
                }
                Err(e) => Ended::Final(e),
            };
            match ended {
                Ended::Final(e) => return Err(e),
                // Once for each cause, not for each attempt.
                Ended::Lost(why) if told != why => {
                    (self.options.tell)(&format!("{why}; connecting again"));
                    told = why;
                }
                Ended::Lost(_) => {}
            }
            self.discarding(sleep(pause)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Tells the receiver that this end goes.
    pub fn leave(&self) {
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(endpoint) = endpoint {
            endpoint.leave(0, "");
        }
    }

    /// Throws away what comes meanwhile: it would be too late.
    async fn discarding<T>(&self, until: impl Future<Output = T>) -> T {
        let discard = async {
            let mut byte = [0];
            loop {
                readable(&self.sockets).await;
                for socket in &self.sockets {
                    while socket.try_recv(&mut byte).is_ok() {}
                }
            }
        };
        tokio::select! {
            done = until => done,
            () = discard => std::future::pending().await,
        }
    }

    async fn connect(&self) -> Result<(Connection, Endpoint), Error> {
        let SendOptions { host, port, config, identity, patience, judge, tell, tap, .. } =
            &self.options;
        let unknown = || {
            let line = format!("{}: no such host", narrows_files::error::shown(host));
            Error::new(Kind::Unreachable, line)
        };
        let mut found = lookup_host((host.as_str(), *port)).await.map_err(|_| unknown())?;
        let address = found.next().ok_or_else(unknown)?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = |e: String| Error::new(Kind::Local, e);
        let ours = StaticKey::new(*identity.private()).map_err(|e| local(e.to_string()))?;
        let options = Options::client(ours, for_media(config.clone())?).tapped(tap.clone());
        let endpoint =
            Endpoint::bind((any, 0).into(), options).map_err(|e| local(e.to_string()))?;
        let expected = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let server = expected.map_or(ServerKey::Any, ServerKey::Is);
        let mut how = ConnectOptions::new(server, for_media(config.clone())?);
        (how.suite, how.patience) = (key::suite(), *patience);
        let connected = endpoint.connect(address, how).await;
        let connection = connected.map_err(|e| refused(&e, identity))?;
        if expected.is_none() {
            let found = connection.peer_key();
            let cut = || Error::new(Kind::Unreachable, "the connection was cut");
            let found = found.ok_or_else(cut)?;
            judge(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        tell(&format!("connected to {address}"));
        Ok((connection, endpoint))
    }

    async fn send_over(&self, connection: &Connection) -> Ended {
        let asked = timeout(ANSWERING, self.discarding(greet(connection, &self.options)));
        // The stream that says what is sent stays open for as long as media come.
        let (_send, mut receive) = match asked.await {
            Ok(Ok((Answer::Come, send, receive))) => (send, receive),
            Ok(Ok((Answer::Busy, ..))) => {
                return Ended::Lost("another sends to this receiver".into());
            }
            Ok(Ok((Answer::Bad, ..))) => {
                let line = "the receiver is of another version, or takes no such latency";
                return Ended::Final(Error::new(Kind::Version, line));
            }
            Ok(Err(e)) => return Ended::Lost(e.to_string()),
            Err(_) => return Ended::Lost("it does not answer".into()),
        };
        self.change(|state| state.connected = true);
        let SendOptions { latency, encoder, layers, on_rate, tell, .. } = &self.options;
        let through = Through {
            sockets: &self.sockets,
            connection,
            on_rate,
            tell,
            on_state: &|state| self.change(|known| *known = State { late: known.late, ..state }),
        };
        let mut flow = Flow::new(through, *latency, *encoder, layers);
        tokio::select! {
            why = flow.run() => Ended::Lost(why.to_string()),
            why = statuses(&mut receive, |received| {
                self.change(|state| state.late = received.missed);
            }) => Ended::Lost(match why {
                Some(e) => e.to_string(),
                None => connection.closed().await.to_string(),
            }),
        }
    }
}

async fn greet(
    connection: &Connection,
    options: &SendOptions,
) -> Result<(Answer, SendStream, ReceiveStream), NetError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.send_all(&hello(options.latency, options.layers.len())).await?;
    let mut code = [u8::MAX];
    receive.receive(&mut code).await?;
    let [code] = code;
    Ok((Answer::from_code(code), send, receive))
}

/// What the receiver says every second, until its stream ends or breaks.
async fn statuses(receive: &mut ReceiveStream, on: impl Fn(Received)) -> Option<NetError> {
    loop {
        let (mut bytes, mut filled) = ([0; STATUS], 0);
        while let Some(into) = bytes.get_mut(filled..).filter(|into| !into.is_empty()) {
            match receive.receive(into).await {
                Ok(0) => return None,
                Ok(n) => filled += n,
                Err(e) => return Some(e),
            }
        }
        on(read_status(&bytes));
    }
}

fn refused(e: &NetError, identity: &Identity) -> Error {
    let kind = match e {
        NetError::Refused { .. } => {
            let own = key::text(identity.public());
            let line =
                format!("the receiver does not know this sender: its list of clients lacks {own}");
            return Error::new(Kind::Refused, line);
        }
        NetError::WrongKey { address, found, .. } => {
            let found = key::text(found);
            let line = format!("{address} has another key than expected ({found} now)");
            return Error::new(Kind::WrongKey, line);
        }
        NetError::Version { .. }
        | NetError::NoCommonProtocol { .. }
        | NetError::UnknownProtocol { .. } => Kind::Version,
        NetError::Busy { .. } => Kind::Busy,
        NetError::System(_) | NetError::TooMany => Kind::Local,
        _ => Kind::Unreachable,
    };
    Error::new(kind, e.to_string())
}
