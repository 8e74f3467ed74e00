//! Both ends of a multicast stream, over sockets.

use crate::connection::{self, MAX_DATAGRAM, readable};
use crate::group::{Interface, group, hearing, sending, set_member};
use crate::group_receiver::{GroupChange, GroupReceiver};
use crate::group_sender::GroupSender;
use crate::inlet::outs_to;
use crate::measures::Measures;
use crate::playing::{Looks, Observer};
use crate::sender::SenderCounters;
use narrows_base::{Duration, Rate, Time};
use narrows_net::Clock;
use narrows_peers::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// Longest wait before the layers' state is updated.
const LOOK: Duration = Duration::from_millis(100);

/// Settings of a multicast sender.
#[derive(Clone, Debug)]
pub struct GroupSend {
    /// The base layer's group.
    pub base: SocketAddr,
    /// Outgoing network interface.
    pub interface: Interface,
    /// Hop limit; 1 stays in the local network.
    pub ttl: u8,
    /// Local address and rate of each layer's media, the base layer first.
    pub layers: Vec<(SocketAddr, Rate)>,
    /// Maximum rate of all layers together, including headers.
    pub total: Rate,
}

/// Settings of a multicast receiver.
#[derive(Clone, Debug)]
pub struct GroupReceive {
    /// The base layer's group.
    pub base: SocketAddr,
    /// Network interface on which the groups are joined.
    pub interface: Interface,
    /// Destinations of the media of each layer, the base layer first.
    pub to: Vec<SocketAddr>,
    /// Time from sending to release, beyond the path's shortest delay.
    pub latency: Duration,
    /// Round-trip time that TEAR assumes while no queue has formed.
    pub rtt: Duration,
}

fn wait(now: Time, until: Time) -> Wait {
    Wait::from_nanos(until.since(now).as_nanos().min(LOOK.as_nanos()))
}

/// Sends until `stop` is ready. Calls `ready` with the addresses where it takes media from.
///
/// # Errors
/// A port is in use, or the system cannot send to these groups.
pub async fn send(
    options: &GroupSend,
    ready: impl FnOnce(&[SocketAddr]) -> Result<(), Error>,
    stop: impl Future<Output = ()>,
) -> Result<SenderCounters, Error> {
    let mut sockets = Vec::new();
    let mut places = Vec::new();
    let mut groups = Vec::new();
    for (layer, (from, _)) in options.layers.iter().enumerate() {
        let bad = |line| Error::new(ErrorKind::Input, format!("--multicast {line}"));
        groups.push(group(options.base, layer).map_err(bad)?);
        let socket = connection::bind("--layer", *from).await?;
        places.push(socket.local_addr().unwrap_or(*from));
        sockets.push(socket);
    }
    let out = sending(options.base, options.interface, options.ttl)?;
    let clock = Clock::new();
    let rates: Vec<Rate> = options.layers.iter().map(|(_, rate)| *rate).collect();
    let session = session();
    let mut sender = GroupSender::new(session, &rates, options.total);
    ready(&places)?;
    let run = async {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let now = clock.now();
            for (layer, socket) in sockets.iter().enumerate() {
                for _ in 0..64 {
                    let Ok(length) = socket.try_recv(&mut buffer) else { break };
                    sender.on_datagram(now, layer, buffer.get(..length).unwrap_or_default());
                }
            }
            while let Some((layer, packet)) = sender.next(now) {
                if let Some(to) = groups.get(layer) {
                    // A missing route or a full queue counts as a loss on the path.
                    let _ = out.try_send_to(&packet, *to);
                }
            }
            tokio::select! {
                () = readable(&sockets) => {}
                () = sleep(wait(now, sender.next_timeout())) => {}
            }
        }
    };
    tokio::select! {
        () = run => {}
        () = stop => {}
    }
    Ok(sender.sent())
}

/// A random number that identifies this start of the sender.
fn session() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

/// Receives until `stop` is ready. Returns the measures, if any packet arrived. Calls `observer` with the state while
/// media arrive.
///
/// # Errors
/// The system cannot join these groups.
pub async fn receive(
    options: &GroupReceive,
    ready: impl FnOnce() -> Result<(), Error>,
    tell: impl Fn(&str),
    observer: Option<&Observer>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Measures>, Error> {
    let bad = |line| Error::new(ErrorKind::Input, format!("--multicast {line}"));
    let base = group(options.base, 0).map_err(bad)?;
    let socket = hearing(base)?;
    set_member(&socket, base, options.interface, true)?;
    let outs = outs_to(&options.to).await?;
    ready()?;
    let mut end = GroupListener {
        options,
        socket,
        outs,
        receiver: GroupReceiver::new(options.latency, options.rtt),
        joined: 1,
        clock: Clock::new(),
        first: None,
        last: Time::ZERO,
    };
    tokio::select! {
        () = end.run(tell, observer) => {}
        () = stop => {}
    }
    let lasted = end.first.map(|first| end.last.since(first));
    Ok(lasted.map(|lasted| Measures::of(end.receiver.layers(), options.latency, lasted)))
}

struct GroupListener<'a> {
    options: &'a GroupReceive,
    socket: UdpSocket,
    outs: Vec<UdpSocket>,
    receiver: GroupReceiver,
    /// Number of groups that are joined.
    joined: usize,
    clock: Clock,
    first: Option<Time>,
    last: Time,
}

impl GroupListener<'_> {
    async fn run(&mut self, tell: impl Fn(&str), observer: Option<&Observer>) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut looks = Looks::new(0, self.clock.now());
        loop {
            for _ in 0..64 {
                let Ok((length, from)) = self.socket.try_recv_from(&mut buffer) else { break };
                let now = self.clock.now();
                let bytes = buffer.get_mut(..length).unwrap_or_default();
                let change = self.receiver.on_packet(now, from.ip(), bytes);
                self.on_change(change, &tell);
                looks.on_packet(now);
                self.first.get_or_insert(now);
                self.last = now;
            }
            let now = self.clock.now();
            let change = self.receiver.on_timeout(now);
            self.on_change(change, &tell);
            while let Some((layer, datagram)) = self.receiver.release(now) {
                if let Some(out) = self.outs.get(layer) {
                    // If the socket is full, or the player has not started yet, the datagram is lost.
                    let _ = out.try_send(&datagram);
                }
            }
            let mut next = self.receiver.next_timeout();
            if let Some(observer) = observer {
                if looks.is_due(now)
                    && let Some(playing) = self.receiver.look(&mut looks, now)
                {
                    observer(&playing);
                }
                next = next.min(looks.next());
            }
            tokio::select! {
                _ = self.socket.readable() => {}
                () = sleep(wait(now, next)) => {}
            }
        }
    }

    fn on_change(&mut self, change: Option<GroupChange>, tell: &impl Fn(&str)) {
        let Some(change) = change else { return };
        match change {
            GroupChange::Heard(rates) => {
                let rates: Vec<_> = rates.iter().map(|kbit| format!("{kbit}")).collect();
                tell(&format!("a sender is heard, with layers of {} kbit/s", rates.join(", ")));
            }
            GroupChange::Level(level, rate) => {
                let what = if level > self.joined { "joined" } else { "left" };
                let rate = rate as f64 * 1e-6;
                tell(&format!(
                    "a group is {what}: {level} layers now, TEAR's rate is {rate:.2} Mbit/s"
                ));
            }
            GroupChange::Gone => tell("nothing more is heard of the sender"),
        }
        let level = self.receiver.level();
        while self.joined != level {
            let is_more = level > self.joined;
            let layer = if is_more { self.joined } else { self.joined - 1 };
            let base = self.options.base;
            let interface = self.options.interface;
            let group = group(base, layer).map_err(|line| Error::new(ErrorKind::Local, line));
            let done = group.and_then(|group| set_member(&self.socket, group, interface, is_more));
            if let Err(e) = done {
                tell(&e.line);
            }
            self.joined = if is_more { self.joined + 1 } else { self.joined - 1 };
        }
    }
}
