//! Ports of the near side, each with one target.

use crate::client::{FarConnection, NotOpened, Stream, Tunnel, answered};
use crate::listen::accept;
use crate::pipe;
use crate::places::{GivenPlaces, NO_NETWORK, Place, PlaceLimits};
use crate::request::{Refusal, TunnelRequest};
use narrows_peers::error::shown;
use narrows_peers::rate_cap::RateCap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Maximum number of a program's bytes that are sent before the far side has answered.
const MAX_EARLY: usize = 64 << 10;
/// Maximum number of silent connections that give way to a new one: other new ones may take what they free.
const MAX_DISPLACED: u32 = 4;
/// Time for the far side to free what a silent connection used, besides a round trip.
const FREEING: Duration = Duration::from_millis(50);

/// `[ADDRESS:]PORT:HOST:PORT`: the listening address and the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Listening address; loopback unless another address is given.
    pub listen: SocketAddr,
    /// Name or address of the target, as seen from the far side.
    pub host: String,
    /// Port of the target.
    pub port: u16,
}

impl Forward {
    /// The request for a TCP connection to the target.
    pub fn request(&self) -> TunnelRequest {
        TunnelRequest::tcp(&self.host, self.port)
    }
}

impl Forward {
    /// The target as `host:port`, with brackets around an IPv6 address.
    pub fn target(&self) -> String {
        self.request().target()
    }
}

/// Splits at colons outside of brackets; brackets are removed.
fn fields(text: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut inside = false;
    for c in text.chars() {
        match c {
            '[' if !inside && fields.last()?.is_empty() => inside = true,
            ']' if inside => inside = false,
            ':' if !inside => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    (!inside).then_some(fields)
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Forward, String> {
        let bad = |why: &str| {
            let shown = shown(text);
            format!(
                "'{shown}': {why}; [ADDRESS:]PORT:HOST:PORT is expected, as in 8080:intranet:80"
            )
        };
        let fields = fields(text).ok_or_else(|| bad("brackets do not match"))?;
        let (at, own, host, port) = match &fields[..] {
            [own, host, port] => (None, own, host, port),
            [at, own, host, port] => (Some(at), own, host, port),
            _ => return Err(bad("that is not three or four parts")),
        };
        let at = at.map_or(Ok(Ipv4Addr::LOCALHOST.into()), |at| {
            at.parse::<IpAddr>().map_err(|_| bad("the address to listen at is none"))
        })?;
        let own: u16 = own.parse().map_err(|_| bad("the port to listen at is none"))?;
        let port = port.parse().ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| bad("the target's port is none"))?;
        if host.parse::<IpAddr>().is_err() && crate::allow::name(host).is_none() {
            return Err(bad("the target's host is neither a name nor an address"));
        }
        Ok(Forward { listen: SocketAddr::new(at, own), host: host.clone(), port })
    }
}

/// Forwards all connections of a port to its target. If the far side permits no more, the oldest silent one gives way.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener, forward: Forward) {
    let request = forward.request();
    let places = Arc::<GivenPlaces>::default();
    loop {
        let (tcp, _) = accept(&listener).await;
        let Some(place) = places.take(NO_NETWORK, PlaceLimits::new(usize::MAX)) else { continue };
        let tunnel = tunnel.clone();
        let request = request.clone();
        tokio::spawn(async move { carry(&tunnel, tcp, &request, &place).await });
    }
}

/// Forwards one connection. If it fails, reports the reason to the user and resets the connection.
async fn carry(tunnel: &Tunnel, mut tcp: TcpStream, request: &TunnelRequest, place: &Place) {
    pipe::prepare(&tcp);
    let mut early = Vec::new();
    let mut links = tunnel.links();
    let mut displaced = 0;
    let opened = loop {
        let link = match links.next().await {
            Ok(link) => link,
            Err(why) => break Err(why),
        };
        let opened = begin(&link, request, &mut tcp, &mut early, place).await;
        let is_beyond = matches!(opened, Err(NotOpened::Refused(Refusal::TooMany)));
        if is_beyond && displaced < MAX_DISPLACED && place.displace_silent() {
            displaced += 1;
            tunnel.tell_displaced(&request.shown());
            let rtt = link.connection().stats().srtt;
            sleep(FREEING + Duration::from_nanos(rtt.as_nanos())).await;
            continue;
        }
        if !links.is_lost(&link, &opened) {
            break opened.map(|stream| (link, stream));
        }
    };
    match opened {
        // Keep the link until the stream is over.
        Ok((_link, (send, receive))) => {
            let cap = RateCap::new(None);
            pipe::run_until(tcp, send, receive, &cap, &place.activity, place.given_up()).await;
        }
        Err(why) => tunnel.tell_refused(&request.shown(), why),
    }
}

/// Sends the program's first bytes while the far side's answer is outstanding, and keeps a copy. If the server was
/// restarted, they are sent again.
async fn begin(
    link: &FarConnection,
    request: &TunnelRequest,
    tcp: &mut TcpStream,
    early: &mut Vec<u8>,
    place: &Place,
) -> Result<Stream, NotOpened> {
    let (mut send, mut receive) = link.ask(request, early).await?;
    // If the connection is over, the calls below detect it.
    let _ = send.set_priority(pipe::FIRST);
    let mut answer = Box::pin(answered(&mut receive));
    let mut is_reading = true;
    loop {
        let room = MAX_EARLY.saturating_sub(early.len());
        let had = early.len();
        let mut some = (&mut *tcp).take(room as u64);
        tokio::select! {
            answer = &mut answer => {
                answer?;
                break;
            }
            // An end or an error is detected again after the answer.
            read = some.read_buf(early), if is_reading && room > 0 => is_reading = matches!(read, Ok(1..)),
        }
        let new = early.get(had..).unwrap_or_default();
        if !new.is_empty() {
            place.activity.sent();
        }
        send.send_all(new).await.map_err(|_| NotOpened::NoTunnel)?;
    }
    drop(answer);
    Ok((send, receive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_as_ssh_reads_them() {
        let read = |text: &str| text.parse::<Forward>();
        let one = read("8080:intranet:80").unwrap();
        assert_eq!(
            (one.listen.to_string(), &*one.host, one.port),
            ("127.0.0.1:8080".into(), "intranet", 80)
        );
        let two = read("[::1]:0:[2001:db8::1]:80").unwrap();
        assert_eq!((two.listen.to_string(), &*two.host), ("[::1]:0".into(), "2001:db8::1"));
        assert_eq!(read("0.0.0.0:53:10.0.0.1:5353").unwrap().listen.to_string(), "0.0.0.0:53");
        for text in [
            "",
            "80",
            "8080:intranet",
            "8080:intranet:0",
            "x:intranet:80",
            "1:2:3:4:5",
            "80:a b:80",
            "80:[::1:80",
            "host:80:intranet:80",
            "80::80",
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains("8080:intranet:80") && !why.contains('\n'), "{why}");
        }
    }
}
