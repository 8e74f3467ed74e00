//! First messages of programs and peers to a tunnel: no panic, no read beyond the input, and no text that permits an
//! address of the server's own network by a name.

use narrows_net::ip_packet::{IpPacket, too_big};
use narrows_tunnel::address::special;
use narrows_tunnel::allow::{AllowedTarget, Targets, name};
use narrows_tunnel::forward::Forward;
use narrows_tunnel::parts::MAX_DATAGRAM;
use narrows_tunnel::parts::{PartialDatagrams, split};
use narrows_tunnel::request::{HEAD, TunnelRequest};
use narrows_tunnel::socks;
use narrows_tunnel::tun::given::{LENGTH, TunnelAddresses};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    packets(bytes);
    if let Some((head, rest)) = bytes.split_first_chunk::<HEAD>()
        && let Ok(length) = TunnelRequest::host_length(*head)
        && let Some(host) = rest.get(..length)
        && let Ok(request) = TunnelRequest::read(*head, host)
    {
        assert_eq!(request.bytes().as_deref(), bytes.get(..HEAD + length));
        is_whole(&request);
    }
    if let Ok(Some((length, hello))) = socks::hello(bytes) {
        assert!(length <= bytes.len());
        if let socks::SocksGreeting::Four(target) = hello {
            is_whole(&target);
        }
    }
    if let Ok(Some((length, ()))) = socks::password(bytes) {
        assert!(length <= bytes.len());
    }
    if let Ok(Some((length, asked))) = socks::request(bytes) {
        assert!(length <= bytes.len());
        if let socks::SocksCommand::Target(target) = asked {
            is_whole(&target);
        }
    }
    if let Some((length, target)) = socks::datagram(bytes) {
        assert!(length <= bytes.len());
        is_whole(&target);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<Forward>();
        if let Some(name) = name(text) {
            assert_eq!(narrows_tunnel::allow::name(&name), Some(name.clone()));
        }
        if let Ok(target) = text.parse::<AllowedTarget>() {
            permits_no_loopback_by_name(target);
        }
    }
    if let Some((bits, _)) = bytes.split_first_chunk::<16>() {
        let address = Ipv6Addr::from(*bits);
        let is_inside =
            address.is_loopback() || address.is_unique_local() || address.is_multicast();
        assert!(!is_inside || special(address.into()).is_some());
    }
}

/// Packets, and the addresses in a server's assignment.
fn packets(bytes: &[u8]) {
    if let Some(packet) = IpPacket::read(bytes) {
        assert_eq!(packet.source.is_ipv4(), packet.destination.is_ipv4());
        if let Some(error_packet) = too_big::answer(&packet, bytes, 1280, packet.destination) {
            let answer = IpPacket::read(&error_packet).expect("an answer is a packet");
            assert!(
                answer.is_error
                    && answer.destination == packet.source
                    && error_packet.len() <= 1280
            );
            assert_eq!(too_big::answer(&answer, &error_packet, 1280, answer.destination), None);
        }
    }
    let now = Instant::now();
    let mut parts = PartialDatagrams::default();
    for message in bytes.chunks(40) {
        let whole = parts.join(now, 1, message);
        assert!(whole.is_none_or(|whole| whole.len() <= MAX_DATAGRAM));
    }
    let whole = split(bytes, 7, 40).filter_map(|part| parts.join(now, 2, &part)).last();
    assert!(whole.is_none_or(|whole| whole == bytes));
    if let Some((given, _)) = bytes.split_first_chunk::<LENGTH>()
        && let Ok(read) = TunnelAddresses::read(*given)
    {
        assert_eq!(read.bytes(), *given);
        let is_special = |address: &IpAddr| special(*address).is_some();
        assert!(read.pairs().iter().all(|(near, far)| is_special(near) && is_special(far)));
    }
}

fn is_whole(request: &TunnelRequest) {
    assert!(request.port > 0 && (1..=255).contains(&request.host.len()));
    assert!(request.host.bytes().all(|b| b.is_ascii_graphic()), "{:?}", request.host);
}

fn permits_no_loopback_by_name(target: AllowedTarget) {
    let targets = Targets::new(vec![target]);
    let is_named = targets.may_permit("name.test", 80) && targets.names().next().is_some();
    let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
    assert!(!is_named || targets.judge(Some("name.test"), loopback, 80, false).is_err());
}
