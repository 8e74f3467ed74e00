//! Reverse forwarding: the far side listens, and its connections lead to a target that the near side names.
//!
//! ```text
//! near: | 5 (1) | port (2) | length (1) | address |      a stream that lives as long as the listener
//! far:  | answer (1) |
//! far:  | listener (4) | bytes of the connection          a stream for each accepted connection
//! near: | answer (1) | bytes of the connection
//! ```
//!
//! The listener's number is the id of its stream, divided by four. The near side maps it to its own target, so the far
//! side cannot choose one.

pub(crate) mod far;
mod listeners;
mod ports;

pub(crate) use listeners::Listeners;
pub use ports::{Ports, ReversePorts};

use crate::client::{FarConnection, NotOpened, Stream, Tunnel, answered};
use crate::dial;
use crate::forward::Forward;
use crate::pipe;
use crate::request::{Refusal, TunnelRequest};
use narrows_net::dial::{lookup, ordered};
use narrows_peers::{Error, ErrorKind};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum number of connections to one listener.
const MAX_CONNECTIONS: usize = 256;
/// Timeout of a head, and of a connection to the target.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before another attempt after a refusal.
const PAUSE: Duration = Duration::from_secs(30);

/// Maximum number of streams that the far side may open for this many listeners. Half of them are for connections that
/// gave way to others, and whose end is under way.
pub fn incoming(listeners: usize) -> usize {
    2 * MAX_CONNECTIONS * listeners
}

/// Keeps the far side listening, over all successive connections.
///
/// # Errors
/// The far side's `--allow-reverse` does not list a port.
pub async fn run(tunnel: &Tunnel, forwards: &[Forward]) -> Result<(), Error> {
    if forwards.is_empty() {
        std::future::pending::<()>().await;
    }
    let mut current = tunnel.current.subscribe();
    let mut has_listened = false;
    loop {
        let Ok(link) = current.wait_for(Option::is_some).await.map(|link| link.clone()) else {
            return Ok(());
        };
        let Some(link) = link else { continue };
        let replaced =
            current.wait_for(|now| now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, &link)));
        tokio::select! {
            ended = serve(tunnel, &link, forwards, &mut has_listened) => ended?,
            _ = replaced => {}
        }
    }
}

/// Serves connections of one link until it is closed.
async fn serve(
    tunnel: &Tunnel,
    link: &Arc<FarConnection>,
    forwards: &[Forward],
    has_listened: &mut bool,
) -> Result<(), Error> {
    let mut open = HashMap::new();
    let mut listeners = JoinSet::new();
    for forward in forwards {
        let what = format!("--reverse {}:{}", forward.listen, forward.target());
        match listen(link, forward).await {
            Ok((number, stream)) => {
                tunnel.tell(&format!(
                    "the server listens at {} for {}",
                    forward.listen,
                    forward.target()
                ));
                open.insert(number, forward);
                listeners.spawn(over(stream));
            }
            Err(NotOpened::Refused(Refusal::NoReverse)) if !*has_listened => {
                let line = format!("{what}: {}", Refusal::NoReverse);
                return Err(Error::new(ErrorKind::Refused, line));
            }
            Err(why) => tunnel.tell(&format!("{what}: {why}")),
        }
    }
    if open.is_empty() {
        sleep(PAUSE).await;
        return Ok(());
    }
    *has_listened = true;
    let accept = async {
        while let Ok(stream) = link.connection().accept_bi().await {
            tokio::spawn(carry(link.clone(), stream, targets(&open)));
        }
        // Wait for the next link.
        std::future::pending().await
    };
    tokio::select! {
        () = accept => {}
        _ = listeners.join_next() => {
            if link.connection().is_closed() {
                // Wait for the next link.
                std::future::pending::<()>().await;
            }
            tunnel.tell("the server has ended a listener of --reverse");
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

type Targets = HashMap<u32, (String, u16)>;

fn targets(open: &HashMap<u32, &Forward>) -> Targets {
    open.iter().map(|(number, to)| (*number, (to.host.clone(), to.port))).collect()
}

/// Requests a listener: its number, and the stream that it lives on.
async fn listen(link: &FarConnection, forward: &Forward) -> Result<(u32, Stream), NotOpened> {
    let (send, mut receive) = link.ask(&TunnelRequest::listen(forward.listen), &[]).await?;
    answered(&mut receive).await?;
    let number = number(send.id()).ok_or(NotOpened::NoTunnel)?;
    Ok((number, (send, receive)))
}

/// The number of a listener with this stream.
fn number(stream: u64) -> Option<u32> {
    u32::try_from(stream / 4).ok()
}

/// Waits until the far side ends a listener's stream.
async fn over((_send, mut receive): Stream) {
    // The far side sends no further bytes on it.
    let _ = receive.receive(&mut [0]).await;
}

/// Connects one of the far side's connections to its target.
async fn carry(_link: Arc<FarConnection>, (mut send, mut receive): Stream, targets: Targets) {
    let opened = match timeout(PATIENCE, target(&mut receive, &targets)).await {
        Ok(Some((host, port))) => connected(host, *port).await,
        _ => Err(Refusal::BadRequest),
    };
    match opened {
        Ok(tcp) => {
            pipe::prepare(&tcp);
            if send.send_all(&[0]).await.is_ok() {
                pipe::run(tcp, send, receive).await;
            }
        }
        // The far side resets its connection, and logs the reason.
        Err(why) => drop(send.send_last(&[why.code()]).await),
    }
}

async fn target<'t>(
    receive: &mut narrows_net::ReceiveStream,
    targets: &'t Targets,
) -> Option<&'t (String, u16)> {
    let mut head = [0; 4];
    let mut at = 0;
    while let Some(rest) = head.get_mut(at..).filter(|rest| !rest.is_empty()) {
        at += receive.receive(rest).await.ok().filter(|n| *n > 0)?;
    }
    targets.get(&u32::from_be_bytes(head))
}

async fn connected(host: &str, port: u16) -> Result<TcpStream, Refusal> {
    let found = timeout(PATIENCE, lookup(host, port)).await;
    let found = found.map_err(|_| Refusal::TimedOut)?.map_err(|_| Refusal::NoSuchName)?;
    dial::tcp(&ordered(found, None), || Some(())).await
}
