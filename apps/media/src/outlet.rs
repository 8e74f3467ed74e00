//! The sending side, independent of the end that connects: the programs' sockets, and the media of successive
//! connections.

use crate::connection::readable;
use crate::dial::DialEnd;
use crate::encoder::{EncoderRate, EncoderRates};
use crate::flow::{MediaFlow, MediaFlowState, OnState, Through};
use crate::hello::{HelloReply, STATUS, hello, read_status};
use crate::receiver::ReceiverCounters;
use narrows_base::{Duration, Rate};
use narrows_net::{Connection, Error as NetError, ReceiveStream, SendStream};
use narrows_peers::{Error, ErrorKind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Time that a receiver has for its answer.
const ANSWERING: Wait = Wait::from_secs(30);

/// Settings of the media, and callbacks.
pub struct OutletOptions {
    /// Latency allowed beyond the path's shortest delay.
    pub latency: Duration,
    /// Limits of the encoder's rate.
    pub encoder: EncoderRates,
    /// The link's rate, if the user gave it.
    pub link: Option<Rate>,
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
    media: OutletOptions,
    sockets: Vec<UdpSocket>,
    state: Mutex<MediaFlowState>,
}

impl Outlet {
    /// An outlet for these sockets, one for each layer.
    pub fn new(sockets: Vec<UdpSocket>, media: OutletOptions) -> Outlet {
        let rate = EncoderRate::new(media.encoder).rate();
        let state = MediaFlowState { bits_per_second: rate.as_bps(), ..MediaFlowState::default() };
        Outlet { media, sockets, state: Mutex::new(state) }
    }

    /// The current state.
    pub fn state(&self) -> MediaFlowState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Reports a line to the user.
    pub fn tell(&self, line: &str) {
        (self.media.tell)(line);
    }
    fn change(&self, change: impl FnOnce(&mut MediaFlowState)) {
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
    pub async fn over(&self, connection: &Connection) -> DialEnd {
        let ended = self.send(connection).await;
        self.idle();
        ended
    }

    /// Reports the state without a connection.
    pub fn idle(&self) {
        self.change(|state| state.connected = false);
    }

    async fn send(&self, connection: &Connection) -> DialEnd {
        let asked = timeout(ANSWERING, self.discarding(greet(connection, &self.media)));
        // The stream with the hello stays open for the connection's lifetime.
        let (_send, mut receive) = match asked.await {
            Ok(Ok((HelloReply::Come, send, receive))) => (send, receive),
            Ok(Ok((HelloReply::Busy, ..))) => {
                return DialEnd::Lost("another sends to this receiver".into());
            }
            Ok(Ok((HelloReply::Bad, ..))) => {
                let line = "the receiver is of another version, or takes no such latency";
                return DialEnd::Final(Error::new(ErrorKind::Version, line));
            }
            Ok(Err(e)) => return DialEnd::Lost(e.to_string()),
            Err(_) => return DialEnd::Lost("it does not answer".into()),
        };
        self.change(|state| state.connected = true);
        let OutletOptions { latency, encoder, layers, link, on_rate, tell, .. } = &self.media;
        let through = Through {
            connection,
            on_rate,
            tell,
            on_state: &|state| {
                self.change(|known| *known = MediaFlowState { late: known.late, ..state })
            },
        };
        let mut flow = MediaFlow::new(through, *latency, *encoder, layers, *link);
        tokio::select! {
            why = flow.run(&self.sockets) => DialEnd::Lost(why.to_string()),
            why = statuses(&mut receive, |received| {
                self.change(|state| state.late = received.missed);
            }) => DialEnd::Lost(match why {
                Some(e) => e.to_string(),
                None => connection.closed().await.to_string(),
            }),
        }
    }
}

async fn greet(
    connection: &Connection,
    media: &OutletOptions,
) -> Result<(HelloReply, SendStream, ReceiveStream), NetError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.send_all(&hello(media.latency, media.layers.len())).await?;
    let mut code = [u8::MAX];
    receive.receive(&mut code).await?;
    let [code] = code;
    Ok((HelloReply::from_code(code), send, receive))
}

/// Reads the receiver's status messages until its stream ends or fails.
async fn statuses(receive: &mut ReceiveStream, on: impl Fn(ReceiverCounters)) -> Option<NetError> {
    loop {
        let mut bytes = [0; STATUS];
        let mut filled = 0;
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
