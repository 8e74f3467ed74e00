//! The far side: one interface for all clients.

use super::carry::{Dropped, Incoming, Outgoing};
use super::device::{Device, has_own_route};
use super::given::{Given, Networks};
use super::packet::Packet;
use super::too_big;
use super::{IpNet, MAX_MTU};
use crate::allow::{Denied, Targets};
use crate::dial;
use crate::flow::{Flows, Goal};
use narrows_files::{Error, Kind};
use narrows_net::Connection;
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Interval at which the path's RTT and MTU are checked.
const LOOK: Duration = Duration::from_millis(500);
/// Lifetime of cached results, since this machine's own addresses may change.
const JUDGED_FOR: Duration = Duration::from_secs(10);
/// Maximum number of cached destinations.
const MAX_JUDGED: usize = 1024;

/// Results by destination and port: whether it is permitted.
type Judged = HashMap<(IpAddr, u16), bool>;

/// Checks whether a destination is permitted, with a cache.
struct Judge {
    targets: Targets,
    /// Start of the cache's lifetime, and its entries.
    judged: Mutex<(Instant, Judged)>,
}

impl Judge {
    /// Applies the rules for connections. A packet without a port is permitted only if all ports are.
    fn permits(&self, address: IpAddr, port: u16) -> bool {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, known) = &mut *judged;
        if since.elapsed() > JUDGED_FOR || known.len() >= MAX_JUDGED {
            (*since, *known) = (Instant::now(), HashMap::new());
        }
        if let Some(permits) = known.get(&(address, port)) {
            return *permits;
        }
        let judged = dial::judge(&self.targets, None, address, port);
        // If the check failed, do not cache the result: the next packet repeats it.
        if judged != Err(Denied::Unchecked) {
            known.insert((address, port), judged.is_ok());
        }
        judged.is_ok()
    }
}

/// A client's connection that carries packets.
struct Seat {
    given: Given,
    outgoing: Outgoing<Goal>,
    /// Notified when a newer connection of the same client takes over.
    replaced: Notify,
}

/// The interface, and the clients that use it.
pub(crate) struct FarTun {
    device: Arc<Device>,
    networks: Networks,
    places: HashMap<PublicKey, usize>,
    judge: Arc<Judge>,
    /// Connections by the client's addresses.
    seats: Mutex<HashMap<IpAddr, Arc<Seat>>>,
}

impl FarTun {
    /// Creates the interface for clients in this order.
    ///
    /// # Errors
    /// An invalid network, or one to which this machine has a route already; no permission.
    pub fn open<'k>(
        networks: &[IpNet],
        clients: impl Iterator<Item = &'k PublicKey>,
        targets: Targets,
    ) -> Result<FarTun, Error> {
        let input = |line: String| Error::new(Kind::Input, line);
        let places: HashMap<PublicKey, usize> =
            clients.zip(0..).map(|(key, place)| (*key, place)).collect();
        let known = Networks::new(networks, places.len()).map_err(input)?;
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
        let judged = Mutex::new((Instant::now(), HashMap::new()));
        let judge = Arc::new(Judge { targets, judged });
        Ok(FarTun {
            device: Arc::new(device),
            networks: known,
            places,
            judge,
            seats: Mutex::default(),
        })
    }

    /// Name and addresses of the interface, for display.
    pub fn shown(&self) -> String {
        let server = self.networks.server();
        let addresses: Vec<String> = server.iter().map(|(a, p)| format!("{a}/{p}")).collect();
        format!("{} has {}", self.device.name(), addresses.join(" and "))
    }

    /// The addresses of this client.
    pub fn given(&self, key: &PublicKey) -> Option<Given> {
        self.places.get(key).map(|place| self.networks.given(*place))
    }

    /// Passes packets of the kernel to the clients while the interface exists.
    pub async fn run(&self) {
        let mut bytes = vec![0; 2 * MAX_MTU];
        while let Ok(length) = self.device.read(&mut bytes).await {
            let bytes = bytes.get(..length).unwrap_or_default();
            let Some(packet) = Packet::read(bytes) else { continue };
            let seat = {
                let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
                seats.get(&packet.destination).cloned()
            };
            // No client has this address: the packet is lost, as on any link.
            let Some(seat) = seat else { continue };
            if let Err(mtu) = seat.outgoing.send(&packet, bytes)
                && let Some(told) = too_big::answer(&packet, bytes, mtu, packet.destination)
            {
                self.device.write(&told);
            }
        }
    }

    /// Carries a client's packets on the flow of this stream, until another connection takes over or `over` ends.
    /// Returns the counts of dropped packets, and whether another connection has taken over.
    pub async fn carry(
        &self,
        given: Given,
        (connection, flows, stream): (&Connection, &Arc<Flows<Goal>>, u64),
        tell: Box<dyn Fn(&str) + Send + Sync>,
        over: impl Future<Output = ()>,
    ) -> (Option<String>, bool) {
        let (own, judge) = (given.clone(), self.judge.clone());
        let judge = move |packet: &Packet| {
            if !own.is_near(packet.source) {
                Err(Dropped::Source)
            } else if judge.permits(packet.destination, packet.port) {
                Ok(())
            } else {
                Err(Dropped::Destination)
            }
        };
        let incoming = Arc::new(Incoming::new(self.device.clone(), Box::new(judge), tell));
        let sink = incoming.clone();
        let goal = Goal::Packets(Box::new(move |message| sink.take(message)));
        let Some(flow) = Flows::add(flows, stream, goal) else { return (None, false) };
        let Some(outgoing) = Outgoing::new(connection.clone(), flow) else { return (None, false) };
        let seat = Arc::new(Seat { given, outgoing, replaced: Notify::new() });
        self.sit(&seat);
        let looks = async {
            loop {
                seat.outgoing.look();
                sleep(LOOK).await;
            }
        };
        let is_replaced = tokio::select! {
            () = over => false,
            () = seat.replaced.notified() => true,
            () = looks => false,
            () = seat.outgoing.run() => false,
        };
        self.leave(&seat);
        (incoming.dropped(), is_replaced)
    }

    fn sit(&self, seat: &Arc<Seat>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        for (address, _) in seat.given.pairs() {
            if let Some(before) = seats.insert(*address, seat.clone()) {
                before.replaced.notify_one();
            }
        }
    }

    fn leave(&self, seat: &Arc<Seat>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.retain(|_, other| !Arc::ptr_eq(other, seat));
    }
}
