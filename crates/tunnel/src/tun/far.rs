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

/// How often the path's RTT and MTU are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// What was judged is judged again after so long: this machine's own addresses change.
const JUDGED_FOR: Duration = Duration::from_secs(10);
/// Judged destinations that are remembered.
const MAX_JUDGED: usize = 1024;

/// Destinations with their ports, and whether they are permitted.
type Judged = HashMap<(IpAddr, u16), bool>;

/// Whether a destination is permitted.
struct Judge {
    targets: Targets,
    /// Since when.
    judged: Mutex<(Instant, Judged)>,
}

impl Judge {
    /// As for connections. A packet without a port is permitted where all ports are.
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
        // What could not be checked is checked again with the next packet.
        if judged != Err(Denied::Unchecked) {
            known.insert((address, port), judged.is_ok());
        }
        judged.is_ok()
    }
}

/// One connection of a client that carries packets.
struct Seat {
    given: Given,
    outgoing: Outgoing<Goal>,
    /// A newer connection of the same client carries them now.
    replaced: Notify,
}

/// The interface, and whose packets it has.
pub(crate) struct FarTun {
    device: Arc<Device>,
    networks: Networks,
    places: HashMap<PublicKey, usize>,
    judge: Arc<Judge>,
    /// By the client's addresses.
    seats: Mutex<HashMap<IpAddr, Arc<Seat>>>,
}

impl FarTun {
    /// Makes the interface, for clients in this order.
    ///
    /// # Errors
    /// A network that cannot be, or that this machine has a way to already; no permission.
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

    /// Its name and addresses.
    pub fn shown(&self) -> String {
        let server = self.networks.server();
        let addresses: Vec<String> = server.iter().map(|(a, p)| format!("{a}/{p}")).collect();
        format!("{} has {}", self.device.name(), addresses.join(" and "))
    }

    /// What this client gets.
    pub fn given(&self, key: &PublicKey) -> Option<Given> {
        self.places.get(key).map(|place| self.networks.given(*place))
    }

    /// Hands packets of the kernel to the clients, for as long as the interface is there.
    pub async fn run(&self) {
        let mut bytes = vec![0; 2 * MAX_MTU];
        while let Ok(length) = self.device.read(&mut bytes).await {
            let bytes = bytes.get(..length).unwrap_or_default();
            let Some(packet) = Packet::read(bytes) else { continue };
            let seat = {
                let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
                seats.get(&packet.destination).cloned()
            };
            // Nobody is there: as on any link.
            let Some(seat) = seat else { continue };
            if let Err(mtu) = seat.outgoing.send(&packet, bytes)
                && let Some(told) = too_big::answer(&packet, bytes, mtu, packet.destination)
            {
                self.device.write(&told);
            }
        }
    }

    /// Carries a client's packets on the flow of this stream, until another connection does so, or `over`. Returns what
    /// was dropped, and whether another one took the place.
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
