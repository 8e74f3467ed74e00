//! The far side: one interface for all clients.

use super::carry::{DropReason, IncomingMessages, OutgoingPackets};
use super::device::{Device, has_own_route};
use super::given::{Networks, TunnelAddresses};
use super::{IpNet, MAX_MTU};
use crate::allow::{Denied, Targets};
use crate::dial;
use crate::flow::{FlowTarget, UdpFlows};
use crate::limits::ClientUsage;
use crate::permissions::Permissions;
use narrows_net::Connection;
use narrows_net::ip_packet::{IpPacket, too_big};
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind};
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Interval at which the path's RTT and MTU are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Lifetime of cached results, since this machine's own addresses may change.
const CACHE_LIFETIME: Duration = Duration::from_secs(10);
/// Maximum number of cached destinations.
const MAX_CACHED: usize = 1024;

/// The flow of a client's packets: its connection, that connection's flows, and the stream that requested it.
pub(crate) struct ClientFlow<'a> {
    pub connection: &'a Connection,
    pub flows: &'a Arc<UdpFlows<FlowTarget>>,
    pub stream: u64,
}

/// Results by destination and port: whether it is permitted.
type CachedResults = HashMap<(IpAddr, u16), bool>;

/// Checks whether a destination is permitted, with a cache.
struct DestinationFilter(Mutex<FilterState>);

struct FilterState {
    targets: Targets,
    /// Start of the cache's lifetime.
    since: Instant,
    known: CachedResults,
}

impl DestinationFilter {
    fn new(targets: Targets) -> DestinationFilter {
        DestinationFilter(Mutex::new(FilterState {
            targets,
            since: Instant::now(),
            known: HashMap::new(),
        }))
    }

    fn set_targets(&self, targets: Targets) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.targets = targets;
        state.known = HashMap::new();
    }

    /// Applies the rules for connections. A packet without a port is permitted only if all ports are.
    fn permits(&self, address: IpAddr, port: u16) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let FilterState { targets, since, known } = &mut *state;
        if since.elapsed() > CACHE_LIFETIME || known.len() >= MAX_CACHED {
            *since = Instant::now();
            *known = HashMap::new();
        }
        if let Some(permits) = known.get(&(address, port)) {
            return *permits;
        }
        let result = dial::judge(targets, None, address, port);
        // If the check failed, do not cache the result: the next packet repeats it.
        if result != Err(Denied::Unchecked) {
            known.insert((address, port), result.is_ok());
        }
        result.is_ok()
    }
}

/// A client's connection that carries packets.
struct CarryingConnection {
    given: TunnelAddresses,
    outgoing: OutgoingPackets<FlowTarget>,
    /// Notified when a newer connection of the same client takes over.
    replaced: Notify,
}

/// The addresses of the listed clients: the n-th key has the n-th address.
fn addresses(networks: &Networks, clients: &AllowList) -> HashMap<PublicKey, TunnelAddresses> {
    clients.keys().zip(0..).map(|(key, place)| (*key, networks.given(place))).collect()
}

/// The interface, and the clients that use it.
pub(crate) struct FarTun {
    device: Arc<Device>,
    networks: Networks,
    given: RwLock<HashMap<PublicKey, TunnelAddresses>>,
    filter: Arc<DestinationFilter>,
    /// Connections by the client's addresses.
    carrying: Mutex<HashMap<IpAddr, Arc<CarryingConnection>>>,
}

impl FarTun {
    /// Creates the interface for the listed clients.
    ///
    /// # Errors
    /// An invalid network, or one to which this machine has a route already; no permission.
    pub fn open(networks: &[IpNet], permissions: &Permissions) -> Result<FarTun, Error> {
        let input = |line: String| Error::new(ErrorKind::Input, line);
        let known = Networks::new(networks, permissions.clients.len()).map_err(input)?;
        let device = Device::create()?;
        for (network, (address, _)) in networks.iter().zip(known.server()) {
            if has_own_route(address)? {
                return Err(input(format!(
                    "--tun {network}: this machine has a way to {address} already; take another network"
                )));
            }
        }
        device.up(MAX_MTU)?;
        for (address, prefix) in known.server() {
            device.add_address(address, prefix)?;
        }
        let given = RwLock::new(addresses(&known, &permissions.clients));
        let filter = Arc::new(DestinationFilter::new(permissions.targets.clone()));
        let device = Arc::new(device);
        let carrying = Mutex::default();
        Ok(FarTun { device, networks: known, given, filter, carrying })
    }

    /// Replaces the listed clients and targets. Returns the listed clients that have other addresses now.
    ///
    /// # Errors
    /// The network has too few addresses. The former permissions then stay.
    pub fn set_permissions(&self, permissions: &Permissions) -> Result<Vec<PublicKey>, Error> {
        let known = self.networks.check(permissions.clients.len());
        known.map_err(|line| Error::new(ErrorKind::Input, line))?;
        let new = addresses(&self.networks, &permissions.clients);
        self.filter.set_targets(permissions.targets.clone());
        let mut given = self.given.write().unwrap_or_else(PoisonError::into_inner);
        let is_moved = |(key, before): &(&PublicKey, &TunnelAddresses)| {
            new.get(*key).is_some_and(|now| now != *before)
        };
        let moved = given.iter().filter(is_moved).map(|(key, _)| *key).collect();
        *given = new;
        Ok(moved)
    }

    /// Name and addresses of the interface, for display.
    pub fn shown(&self) -> String {
        let server = self.networks.server();
        let addresses: Vec<String> = server.iter().map(|(a, p)| format!("{a}/{p}")).collect();
        format!("{} has {}", self.device.name(), addresses.join(" and "))
    }

    /// The addresses of this client.
    pub fn given(&self, key: &PublicKey) -> Option<TunnelAddresses> {
        self.given.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Passes packets of the kernel to the clients while the interface exists.
    pub async fn run(&self) {
        let mut bytes = vec![0; 2 * MAX_MTU];
        while let Ok(length) = self.device.read(&mut bytes).await {
            let bytes = bytes.get(..length).unwrap_or_default();
            let Some(packet) = IpPacket::read(bytes) else { continue };
            let carrier = {
                let carrying = self.carrying.lock().unwrap_or_else(PoisonError::into_inner);
                carrying.get(&packet.destination).cloned()
            };
            // No client has this address: the packet is lost, as on any link.
            let Some(carrier) = carrier else { continue };
            if let Err(mtu) = carrier.outgoing.send(&packet, bytes)
                && let Some(error_packet) = too_big::answer(&packet, bytes, mtu, packet.destination)
            {
                self.device.write(&error_packet);
            }
        }
    }

    /// Carries a client's packets on the flow of this stream, until another connection takes over or `over` ends.
    /// Returns the counts of dropped packets, and whether another connection has taken over.
    pub(crate) async fn carry(
        &self,
        given: TunnelAddresses,
        flow: ClientFlow<'_>,
        client: &Arc<ClientUsage>,
        tell: Box<dyn Fn(&str) + Send + Sync>,
        over: impl Future<Output = ()>,
    ) -> (Option<String>, bool) {
        let own = given.clone();
        let filter = self.filter.clone();
        let filter = move |packet: &IpPacket| {
            if !own.is_near(packet.source) {
                Err(DropReason::Source)
            } else if filter.permits(packet.destination, packet.port) {
                Ok(())
            } else {
                Err(DropReason::Destination)
            }
        };
        let incoming = Arc::new(IncomingMessages::new(self.device.clone(), Box::new(filter), tell));
        let sink = incoming.clone();
        let goal = FlowTarget::Packets(Box::new(move |message| sink.take(message)));
        let ClientFlow { connection, flows, stream } = flow;
        let Some(flow) = UdpFlows::add(flows, stream, goal) else { return (None, false) };
        let Some(outgoing) = OutgoingPackets::new(connection.clone(), flow, Some(client.clone()))
        else {
            return (None, false);
        };
        let carrier = Arc::new(CarryingConnection { given, outgoing, replaced: Notify::new() });
        self.assign(&carrier);
        let checks = async {
            loop {
                carrier.outgoing.look();
                sleep(CHECK_INTERVAL).await;
            }
        };
        let is_replaced = tokio::select! {
            () = over => false,
            () = carrier.replaced.notified() => true,
            () = checks => false,
            () = carrier.outgoing.run() => false,
        };
        self.leave(&carrier);
        (incoming.dropped(), is_replaced)
    }

    fn assign(&self, carrier: &Arc<CarryingConnection>) {
        let mut carrying = self.carrying.lock().unwrap_or_else(PoisonError::into_inner);
        for (address, _) in carrier.given.pairs() {
            if let Some(before) = carrying.insert(*address, carrier.clone()) {
                before.replaced.notify_one();
            }
        }
    }

    fn leave(&self, carrier: &Arc<CarryingConnection>) {
        let mut carrying = self.carrying.lock().unwrap_or_else(PoisonError::into_inner);
        carrying.retain(|_, other| !Arc::ptr_eq(other, carrier));
    }
}
