//! The sending side, independent of the end that connects: the programs' sockets, and the media of successive
//! connections.

use crate::connection::readable;
use crate::dial::Ended;
use crate::encoder::{EncoderRate, Range};
use crate::flow::{Flow, OnState, State, Through};
use crate::hello::{Answer, STATUS, hello, read_status};
use crate::receiver::Received;
use narrows_base::{Duration, Rate};
use narrows_net::{Connection, Error as NetError, ReceiveStream, SendStream};
use narrows_peers::{Error, Kind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time that a receiver has for its answer.
const ANSWERING: Wait = Wait::from_secs(10);

/// Settings of the media, and callbacks.
pub struct Media {
    /// Latency allowed beyond the path's shortest delay.
    pub latency: Duration,
    /// Limits of the encoder's rate.
    pub encoder: Range,
    /// The rate of each layer, the base layer first; one rate if the stream has no layers.
    pub layers: Vec<Rate>,
    /// Called with each new target rate for the encoder.
    pub on_rate: Box<dyn Fn(Rate) + Send + Sync>,
    /// Called with log lines for the user.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
    /// Called with the state 20 times a second during a connection, and when it is lost.
    pub on_state: Option<OnState>,
}

/// Takes media from programs' sockets and sends them over connections.
pub struct Outlet {
    media: Media,
    sockets: Vec<UdpSocket>,
    state: Mutex<State>,
}

impl Outlet {
    /// An outlet for these sockets, one for each layer.
    pub fn new(sockets: Vec<UdpSocket>, media: Media) -> Outlet {
        let rate = EncoderRate::new(media.encoder).rate();
        let state = State { bits_per_second: rate.as_bps(), ..State::default() };
        Outlet { media, sockets, state: Mutex::new(state) }
    }

    /// The current state.
    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Reports a line to the user.
    pub fn tell(&self, line: &str) {
        (self.media.tell)(line);
    }
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if let Some(on_state) = &self.media.on_state {
            on_state(&state);
        }
    }

    /// Discards datagrams until `until` is ready; they would be too late for the next connection.
    pub async fn discarding<T>(&self, until: impl Future<Output = T>) -> T {
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

    /// Sends over a connection until it ends.
    pub async fn over(&self, connection: &Connection) -> Ended {
        let ended = self.send(connection).await;
        self.idle();
        ended
    }

    /// Reports the state without a connection.
    pub fn idle(&self) {
        self.change(|state| state.connected = false);
    }

    async fn send(&self, connection: &Connection) -> Ended {
        let asked = timeout(ANSWERING, self.discarding(greet(connection, &self.media)));
        // The stream with the hello stays open for the connection's lifetime.
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
        let Media { latency, encoder, layers, on_rate, tell, .. } = &self.media;
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
    media: &Media,
) -> Result<(Answer, SendStream, ReceiveStream), NetError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.send_all(&hello(media.latency, media.layers.len())).await?;
    let mut code = [u8::MAX];
    receive.receive(&mut code).await?;
    let [code] = code;
    Ok((Answer::from_code(code), send, receive))
}

/// Reads the receiver's status messages until its stream ends or fails.
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
