//! The near side: an interface that keeps its address while connections come and go.

use super::carry::{DropReason, IncomingMessages, OutgoingPackets};
use super::device::{Device, KeptRoute, has_own_route, keep_route};
use super::given::{self, TunnelAddresses};
use super::{IpNet, MARK, MAX_MTU, MIN_MTU};
use crate::client::{FarConnection, Tunnel};
use crate::flow::{Back, UdpFlows};
use crate::request::Refusal;
use narrows_base::text::shown;
use narrows_net::ReceiveStream;
use narrows_net::ip_packet::{IpPacket, too_big};
use narrows_peers::{Error, ErrorKind};
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Interval at which the path's RTT and MTU are checked.
const LOOK: Duration = Duration::from_millis(500);

/// A route into the interface, in addition to that to the server's own address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunRoute {
    /// Packets to this network.
    To(IpNet),
    /// All packets without a more specific route.
    Default,
}

impl FromStr for TunRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<TunRoute, String> {
        if text == "default" {
            return Ok(TunRoute::Default);
        }
        let bad = |why: &str| {
            let shown = shown(text);
            format!("'{shown}': {why}; a network is expected, as 10.1.0.0/16, or default")
        };
        let network: IpNet = text.parse().map_err(|_| bad("that is no network"))?;
        if network.addr() != network.network() {
            return Err(bad(&format!("that network begins at {}", network.trunc())));
        }
        if network.prefix_len() == 0 {
            return Err(bad("for all there is"));
        }
        Ok(TunRoute::To(network))
    }
}

impl TunRoute {
    /// Its networks. A default route is added as two halves, so that the existing one remains unchanged.
    fn networks(self) -> Vec<IpNet> {
        let half = |address: IpAddr| IpNet::new(address, 1).ok();
        match self {
            TunRoute::To(network) => vec![network],
            TunRoute::Default => [
                half(Ipv4Addr::UNSPECIFIED.into()),
                half(Ipv4Addr::new(128, 0, 0, 0).into()),
                half(Ipv6Addr::UNSPECIFIED.into()),
                half(Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0).into()),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }
}

/// The connection that carries packets now.
struct Active {
    given: TunnelAddresses,
    outgoing: OutgoingPackets<Back>,
}

/// The interface of the near side.
pub struct NearTun {
    device: Arc<Device>,
    routes: Vec<IpNet>,
    active: Mutex<Option<Arc<Active>>>,
    /// Current settings of the interface.
    settings: Mutex<NearSettings>,
}

#[derive(Default)]
struct NearSettings {
    given: Option<TunnelAddresses>,
    mtu: usize,
    /// Addresses and networks with a route into it.
    routed: Vec<IpNet>,
    /// The routes to the server's addresses, which the other routes would change.
    kept: Vec<(IpAddr, Option<KeptRoute>)>,
}

impl NearTun {
    /// Creates the interface, without an address. Call it within a tokio runtime.
    ///
    /// # Errors
    /// No permission, or no TUN support.
    pub fn create(routes: &[TunRoute]) -> Result<NearTun, Error> {
        let device = Arc::new(Device::create()?);
        let routes = routes.iter().flat_map(|route| route.networks()).collect();
        Ok(NearTun { device, routes, active: Mutex::default(), settings: Mutex::default() })
    }

    /// Name of the interface as the kernel chose it.
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// Carries packets over the current connection.
    ///
    /// # Errors
    /// The server carries no packets, or its addresses cannot be used here.
    pub async fn run(&self, tunnel: &Tunnel) -> Result<(), Error> {
        tokio::select! {
            done = self.follow(tunnel) => done,
            e = self.read() => Err(e),
        }
    }

    async fn follow(&self, tunnel: &Tunnel) -> Result<(), Error> {
        let mut current = tunnel.current.subscribe();
        loop {
            let link = current.borrow_and_update().clone();
            let carried = async {
                match &link {
                    Some(link) => self.carry(tunnel, link).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                done = carried => done?,
                () = changed(&mut current) => {}
            }
        }
    }

    /// Requests packets on this connection, and carries them while it is current. It does not handle the connection's
    /// end.
    async fn carry(&self, tunnel: &Tunnel, link: &Arc<FarConnection>) -> Result<(), Error> {
        let Ok((send, mut receive)) = link.say(&MARK).await else { return pending().await };
        let given = match answer(&mut receive).await {
            Ok(given) => given.map_err(|line| Error::new(ErrorKind::Refused, line))?,
            Err(()) => return pending().await,
        };
        let others: Vec<IpAddr> =
            tunnel.dial.fixed_addresses().iter().map(SocketAddr::ip).collect();
        self.set(&given, link.server(), &others)?;
        let own = given.clone();
        let routes = self.routes.clone();
        let device = self.device.clone();
        let judge = move |packet: &IpPacket| {
            let from = packet.source;
            let is_expected = own.is_far(from) || routes.iter().any(|route| route.contains(&from));
            if !own.is_near(packet.destination) {
                Err(DropReason::Destination)
            } else if is_expected || packet.is_error {
                Ok(())
            } else {
                Err(DropReason::Source)
            }
        };
        // The number of dropped packets is reported at the end.
        let incoming = Arc::new(IncomingMessages::new(device, Box::new(judge), Box::new(|_| {})));
        let sink = incoming.clone();
        let back = Back::Packets(Box::new(move |message| sink.take(message)));
        let Some(flow) = UdpFlows::add(&link.flows, send.id(), back) else {
            return pending().await;
        };
        let Some(outgoing) = OutgoingPackets::new(link.connection().clone(), flow, None) else {
            return pending().await;
        };
        let active = Arc::new(Active { given, outgoing });
        tunnel.tell(&format!(
            "packets: {} has {}; the server has {}",
            self.name(),
            active.given.shown(),
            active.given.far_shown()
        ));
        let _guard = CarryGuard::new(self, &active, &incoming, tunnel);
        let mut over = [0];
        tokio::select! {
            ended = receive.receive(&mut over) => if ended.is_ok() {
                tunnel.tell("packets: another connection with this key has taken the address; none are carried here");
            },
            done = self.looks(&active) => done?,
            () = active.outgoing.run() => {}
        }
        drop(_guard);
        pending().await
    }

    /// Follows the path's MTU.
    async fn looks(&self, active: &Active) -> Result<(), Error> {
        loop {
            let mtu = active.outgoing.look();
            {
                let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
                if settings.mtu != mtu {
                    self.device.set_mtu(mtu)?;
                    settings.mtu = mtu;
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Configures the interface with the server's addresses, if they have changed. `server` and `others` are its
    /// addresses outside of the tunnel.
    fn set(&self, given: &TunnelAddresses, server: IpAddr, others: &[IpAddr]) -> Result<(), Error> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_routed = |to: &IpAddr| self.routes.iter().any(|route| route.contains(to));
        for to in [server].iter().chain(others).filter(|to| is_routed(to)) {
            if settings.kept.iter().any(|(kept, _)| kept == to) {
                continue;
            }
            let kept = match keep_route(*to) {
                // An address of a family that this machine lacks.
                Err(_) if *to != server => None,
                kept => kept?,
            };
            settings.kept.push((*to, kept));
        }
        if settings.given.as_ref() == Some(given) {
            return Ok(());
        }
        let before = settings.given.take();
        let had = before.iter().flat_map(|before| before.pairs());
        let old: Vec<IpAddr> = had.map(|(near, _)| *near).collect();
        let is_first = before.is_none();
        let taken = |settings: &NearSettings, address: IpAddr| {
            let is_ours = old.contains(&address) || settings.routed.contains(&address.into());
            Ok::<_, Error>(!is_ours && self.has_taken(address, is_first)?)
        };
        for (near, far) in given.pairs() {
            if taken(&settings, *near)? || taken(&settings, *far)? {
                return Err(Error::new(
                    ErrorKind::Local,
                    format!(
                        "--tun: the server gives the address {near} and has {far}, but this machine has a way to one \
                         of them already"
                    ),
                ));
            }
        }
        if before.is_none() {
            self.device.up(MIN_MTU)?;
            settings.mtu = MIN_MTU;
        }
        for (near, far) in given.pairs() {
            if !old.contains(near) {
                self.device.add_address(*near, all(*near))?;
            }
            self.route((*far).into(), &mut settings)?;
        }
        let has = |route: &&IpNet| given.far_of(route.addr()).is_some();
        for route in self.routes.iter().filter(has) {
            self.route(*route, &mut settings)?;
        }
        // Remove old addresses last: without any address an interface loses its routes.
        for near in old.iter().filter(|near| !given.is_near(**near)) {
            self.device.remove_address(*near, all(*near))?;
        }
        settings.given = Some(given.clone());
        Ok(())
    }

    fn route(&self, to: IpNet, settings: &mut NearSettings) -> Result<(), Error> {
        if !settings.routed.contains(&to) {
            self.device.add_route(to.network(), to.prefix_len())?;
            settings.routed.push(to);
        }
        Ok(())
    }

    /// Whether an address is in use elsewhere: another route than this interface's leads there, and no `--route` names
    /// its network. A default route counts only after the first time, since its two halves then exist.
    fn has_taken(&self, address: IpAddr, is_first: bool) -> Result<bool, Error> {
        let names =
            |route: &&IpNet| route.contains(&address) && !(is_first && route.prefix_len() <= 1);
        Ok(!self.routes.iter().any(|route| names(&route)) && has_own_route(address)?)
    }

    /// Reads packets of the kernel from the interface and sends them; without a connection they are lost.
    async fn read(&self) -> Error {
        let mut bytes = vec![0; 2 * MAX_MTU];
        loop {
            let length = match self.device.read(&mut bytes).await {
                Ok(length) => length,
                Err(e) => return Error::new(ErrorKind::Local, format!("{}: {e}", self.name())),
            };
            let bytes = bytes.get(..length).unwrap_or_default();
            let active = self.active.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (Some(active), Some(packet)) = (active, IpPacket::read(bytes)) else { continue };
            // The server would drop this packet.
            if !active.given.is_near(packet.source) {
                continue;
            }
            if let Err(mtu) = active.outgoing.send(&packet, bytes)
                && let Some(from) = active.given.far_of(packet.source)
                && let Some(error_packet) = too_big::answer(&packet, bytes, mtu, from)
            {
                self.device.write(&error_packet);
            }
        }
    }
}

fn all(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

async fn changed(current: &mut watch::Receiver<Option<Arc<FarConnection>>>) {
    if current.changed().await.is_err() {
        pending().await
    }
}

/// The server's addresses, or the reason of a refusal as text; an error if the connection is over.
async fn answer(receive: &mut ReceiveStream) -> Result<Result<TunnelAddresses, String>, ()> {
    let mut first = [0];
    fill(receive, &mut first).await?;
    match Refusal::from_code(first[0]) {
        Some(Refusal::NotAllowed) => {
            return Ok(Err(
                "--tun: the server carries no packets: it was started without --tun".into()
            ));
        }
        Some(refusal) => return Ok(Err(format!("--tun: {refusal}"))),
        None => {}
    }
    let mut bytes = [0; given::LENGTH];
    fill(receive, &mut bytes).await?;
    Ok(TunnelAddresses::read(bytes).map_err(|line| format!("--tun: {line}")))
}

async fn fill(receive: &mut ReceiveStream, mut into: &mut [u8]) -> Result<(), ()> {
    while !into.is_empty() {
        let n = receive.receive(into).await.map_err(drop)?;
        into = into.get_mut(n..).filter(|_| n > 0).ok_or(())?;
    }
    Ok(())
}

/// While this lives, the connection carries packets.
struct CarryGuard<'a> {
    near: &'a NearTun,
    active: Arc<Active>,
    incoming: Arc<IncomingMessages>,
    tunnel: &'a Tunnel,
}

impl<'a> CarryGuard<'a> {
    fn new(
        near: &'a NearTun,
        active: &Arc<Active>,
        incoming: &Arc<IncomingMessages>,
        tunnel: &'a Tunnel,
    ) -> CarryGuard<'a> {
        *near.active.lock().unwrap_or_else(PoisonError::into_inner) = Some(active.clone());
        CarryGuard { near, active: active.clone(), incoming: incoming.clone(), tunnel }
    }
}

impl Drop for CarryGuard<'_> {
    fn drop(&mut self) {
        let mut active = self.near.active.lock().unwrap_or_else(PoisonError::into_inner);
        if active.as_ref().is_some_and(|active| Arc::ptr_eq(active, &self.active)) {
            *active = None;
        }
        if let Some(line) = self.incoming.dropped() {
            self.tunnel.tell(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_is_said_in_words() {
        assert_eq!("default".parse(), Ok(TunRoute::Default));
        assert_eq!("10.1.0.0/16".parse(), Ok(TunRoute::To("10.1.0.0/16".parse().unwrap())));
        for (text, part) in [
            ("0.0.0.0/0", "default"),
            ("::/0", "default"),
            ("10.1.0.1/16", "begins at 10.1.0.0/16"),
            ("10.1.0.0", "no network"),
            ("\u{1b}", "no network"),
        ] {
            let why = text.parse::<TunRoute>().unwrap_err();
            assert!(why.contains(part) && !why.contains(['\n', '\u{1b}']), "{why}");
        }
    }
}
