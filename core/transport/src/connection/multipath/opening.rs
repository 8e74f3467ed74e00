//! Opening of further paths.
//!
//! A client opens path *n* from its socket *n*. It sends PATH_ID with the connection ID by which it takes packets of the
//! path, and repeats it until the server's PATH_ID comes. Then the path begins at the client: it sends PATH_CHALLENGE
//! there until the response comes. At a server a path begins with the first authentic packet, from whatever address. The
//! server validates that address before it sends anything but path frames, within three times the bytes that came.
//!
//! A server's memory follows what the client has shown: for a path that was announced an `Opener`, for a path that has
//! begun a [`Path`].

use super::super::announced::receiving;
use super::super::nonces::SentNonces;
use super::super::path::{Mtu, Path, PathParts, PeerAddress};
use super::super::receive::OpenedDatagram;
use super::super::{Connection, RECEIVER, Transmit};
use super::PathTemplate;
use super::opening_path::OpeningPath;
use crate::streams::Side;
use narrows_base::{Duration, RandomKey, Time};
use narrows_congestion::{Environment, PathHints};
use narrows_recovery::packet_receiver::PacketReceiver;
use narrows_recovery::packet_sender::PacketSender;
use narrows_wire::frame::{PATH_ID, PathId};
use narrows_wire::prf::Prf;
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{ConnectionId, Frame, PathSecrets};
use std::net::SocketAddr;

/// Most repetitions of a client's PATH_ID.
const MAX_TRIES: u32 = 12;

impl Connection {
    /// The path for which this end needs a connection ID: the client has announced it.
    pub fn wanted_path(&mut self) -> Option<u8> {
        let opening = &mut self.multipath.as_mut()?.opening;
        let place = opening.iter().position(|path| path.is_wanted)?;
        opening.get_mut(place)?.is_wanted = false;
        Some(place as u8 + 1)
    }

    /// Sets this end's connection ID for a further path, and announces it. A client opens the path so. The ID must
    /// be of no other path or connection of the endpoint. Returns whether it is used.
    pub fn give_path_id(&mut self, now: Time, number: u8, id: ConnectionId) -> bool {
        let is_open = self.is_open();
        let Some(path) = self.opening(number).filter(|path| is_open && path.ours.is_none()) else {
            return false;
        };
        path.ours = Some(id);
        path.announcement.begin(now);
        true
    }

    /// A further path; `None` beyond the agreed number.
    fn opening(&mut self, number: u8) -> Option<&mut OpeningPath> {
        let place = usize::from(number).checked_sub(1)?;
        self.multipath.as_mut()?.opening.get_mut(place)
    }

    /// Handles the peer's PATH_ID. An end that has not agreed to several paths skips it.
    pub(in crate::connection) fn on_path_id(&mut self, now: Time, body: &[u8]) {
        let Some(side) = self.multipath.as_ref().map(|multipath| multipath.side) else { return };
        let announced = match PathId::read(body) {
            Ok(announced) => announced,
            Err(malformed) => return self.fault(now, 1, malformed.what),
        };
        let Some(path) = self.opening(announced.path) else {
            return self.fault(now, 1, "a path beyond the agreed number");
        };
        if path.theirs.is_some_and(|id| id != announced.connection) {
            return self.fault(now, 1, "a second connection id for one path");
        }
        if side == Side::Client {
            if path.ours.is_none() {
                return self.fault(now, 1, "a path that this end did not open");
            }
            path.theirs = Some(announced.connection);
            path.announcement.end();
            let server = self.path_at(self.latest_path()).address.remote();
            let _ = self.begin_path(now, announced.path, server);
            return;
        }
        path.theirs = Some(announced.connection);
        if path.ours.is_some() {
            // The client repeats its request, so the reply was lost.
            path.announcement.begin(now);
        } else if path.opener.is_none() {
            path.opener = path.secrets.as_ref().and_then(PathSecrets::opener).map(Box::new);
            path.is_wanted = path.opener.is_some();
        }
    }

    /// Sends PATH_ID, if it is due.
    pub(super) fn transmit_path_id(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let index = self.latest_path();
        let pto = self.path_at(index).sender.pto();
        let multipath = self.multipath.as_mut()?;
        let place = multipath.opening.iter().position(|path| path.announcement.due <= now)?;
        let path = multipath.opening.get_mut(place)?;
        let repetitions = if multipath.side == Side::Client { MAX_TRIES } else { 0 };
        path.announcement.on_sent(now, pto, repetitions);
        let id = PathId { path: place as u8 + 1, connection: path.ours? }.bytes();
        self.transmit_extension(now, index, buffer, &Frame::Extension { kind: PATH_ID, body: &id })
    }

    /// Handles a short packet with the connection ID of a further path, as [`receive`](Connection::receive) does one of
    /// path 0.
    pub fn receive_on(
        &mut self,
        now: Time,
        number: u8,
        from: SocketAddr,
        ecn: u8,
        datagram: &mut [u8],
    ) -> bool {
        let begun = self.paths().position(|path| path.number == number);
        match begun {
            Some(index) => self.on_path(index, |c| c.receive(now, from, ecn, datagram)),
            None => self.receive_first(now, number, from, ecn, datagram),
        }
    }

    /// Begins a path at a server, if the packet is authentic.
    fn receive_first(
        &mut self,
        now: Time,
        number: u8,
        from: SocketAddr,
        ecn: u8,
        datagram: &mut [u8],
    ) -> bool {
        if !self.is_open() {
            return false;
        }
        let size = datagram.len();
        let nonce = receipt_nonce(datagram);
        let Some(opener) = self.opening(number).and_then(|path| path.opener.as_mut()) else {
            return false;
        };
        let packet = match opener.open(datagram) {
            Ok(packet) => packet,
            Err(why) => {
                self.on_refused(now, &why);
                return false;
            }
        };
        let opened = OpenedDatagram { size, nonce, packet, is_newest: true };
        if self.begin_path(now, number, from).is_none() {
            return false;
        }
        let index = self.path_count() - 1;
        self.on_path(index, |connection| connection.on_opened(now, from, ecn, &opened));
        true
    }

    /// Begins a further path to this address. `None` if it has begun already, or its keys cannot be made.
    fn begin_path(&mut self, now: Time, number: u8, remote: SocketAddr) -> Option<()> {
        let multipath = self.multipath.as_mut()?;
        let opening = multipath.opening.get_mut(usize::from(number).checked_sub(1)?)?;
        let theirs = opening.theirs?;
        let secrets = opening.secrets.take()?;
        let opener = match opening.opener.take() {
            Some(opener) => *opener,
            None => secrets.opener()?,
        };
        let sealer = secrets.sealer(theirs)?;
        let known = multipath.statuses.get(usize::from(number))?;
        let status = known.status;
        let weight = known.weight;
        let seed = multipath.seeds.block();
        let PathTemplate { sending, first, most, nominal_packet } = &multipath.template;
        let protocols = &self.protocols;
        let random_key = RandomKey::from_seed(multipath.seeds.bits());
        let hints = PathHints::default();
        // The handshake probes path 0 only.
        let environment = Environment {
            expects_dispersion: false,
            ..protocols.protocol.environment(*nominal_packet, random_key, hints)
        };
        let controller = protocols.protocol.controller(&environment);
        let receiving =
            receiving(&protocols.peers, &protocols.protocol, &protocols.custom, &environment);
        let (receiver_side, classifier) = receiving.unwrap_or_default();
        let mut sender = PacketSender::new(sending, controller);
        let mut draws = Prf::new(&seed, "rrtp skipped numbers");
        sender.skip_numbers(move || draws.bits());
        let is_opener = multipath.side == Side::Client;
        let parts = PathParts {
            number,
            address: PeerAddress::unvalidated(now, remote, &seed, is_opener),
            sealer,
            opener,
            nonces: SentNonces::new(&seed),
            sender,
            receiver: PacketReceiver::new(&RECEIVER, receiver_side, classifier),
            mtu: Mtu::new(*first, *most),
            rto: sending.rto,
            nominal_packet: *nominal_packet,
        };
        let mut path = Box::new(Path::new(now, parts));
        path.set_scale(now);
        path.scheduled.permitted = status;
        path.scheduled.weight = weight;
        multipath.others.push(path);
        multipath.states.push(Default::default());
        Some(())
    }

    /// The current path, a further one, is validated. `rtt` was measured by the challenge.
    pub(in crate::connection) fn on_validated(&mut self, now: Time, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.path.sender.seed_rtt(now, rtt);
        }
        self.path.scheduled.is_stale = true;
        // A first packet measures the round trip of full packets, and its report confirms the path to both ends.
        self.path.sender.force();
        self.share_rate_limit();
    }
}
