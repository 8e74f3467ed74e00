//! `narrows media --multicast`: sends layers to IP multicast groups, and receives them.

use crate::failure::Failure;
use crate::live::LiveArgs;
use crate::log::{Log, LogLevel};
use crate::media::on_page;
use crate::media::values::Layer;
use crate::terminal::{STOP, catch_interrupt, note, print, print_json, print_json_line};
use crate::transport::rate;
use clap::Args;
use narrows_base::{Duration, Rate};
use narrows_lab::options::RARE;
use narrows_lab::options::values::time;
use narrows_media::blocking;
use narrows_media::group::{self, Interface};
use narrows_media::group_run::{GroupReceive, GroupSend};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Default group, of IPv4's site-local scope (RFC 2365).
const SITE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 78, 87)), 47_480);

#[derive(Args, Debug)]
pub struct GroupArgs {
    /// Multicast group of the base layer; each further layer uses the next address. site is 239.255.78.87:47480
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "GROUP[:PORT]|site", value_parser = base)]
    pub multicast: Option<SocketAddr>,
    /// With --multicast: network interface, by its address (IPv4) or number (IPv6) [default: the system's choice]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "ADDR|NUMBER", value_parser = interface, requires = "multicast")]
    pub interface: Option<Interface>,
}

#[derive(Args, Debug)]
pub struct GroupSendArgs {
    #[command(flatten)]
    pub group: GroupArgs,
    /// With --multicast (required): maximum rate of all layers together, including headers
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "RATE", value_parser = rate, requires = "multicast")]
    pub max_total: Option<Rate>,
    /// With --multicast: number of hops; 1 stays in this network [default: 1]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "N", value_parser = clap::value_parser!(u8).range(0..), requires = "multicast")]
    pub ttl: Option<u8>,
}

#[derive(Args, Debug)]
pub struct GroupReceiveArgs {
    #[command(flatten)]
    pub group: GroupArgs,
    /// With --multicast: round-trip time that TEAR assumes while no queue has formed [default: 100ms]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", value_parser = time, requires = "multicast")]
    pub rtt: Option<Duration>,
}

/// A group with or without its port, for clap.
fn base(text: &str) -> Result<SocketAddr, String> {
    if text == "site" {
        return Ok(SITE);
    }
    let alone = text.trim_matches(['[', ']']).parse().ok();
    let alone = alone.map(|ip: IpAddr| SocketAddr::new(ip, SITE.port()));
    let bad = || "a group is expected, as 239.255.78.87, [ff15::4e57]:47480 or site".to_owned();
    group::group(alone.or_else(|| text.parse().ok()).ok_or_else(bad)?, 0)
}

fn interface(text: &str) -> Result<Interface, String> {
    let number = text.parse().map(Interface::Number).ok();
    let address = text.parse().map(Interface::Address).ok();
    number.or(address).ok_or_else(|| {
        "an address of this machine is expected, as 192.168.1.5, or an interface's number".into()
    })
}

/// The interface, in the form that the group's address family requires.
fn interface_for(a: &GroupArgs, base: SocketAddr) -> Result<Interface, Failure> {
    let line = match (a.interface, base) {
        (Some(Interface::Address(_)), SocketAddr::V6(_)) => {
            "--interface: for a group of IPv6 it is an interface's number, as `ip link` shows it first"
        }
        (Some(Interface::Number(_)), SocketAddr::V4(_)) => {
            "--interface: for a group of IPv4 it is an address of this machine, as 192.168.1.5"
        }
        (interface, _) => return Ok(interface.unwrap_or_default()),
    };
    Err(Failure::Input(line.into()))
}

/// Sends layers to groups.
///
/// # Errors
/// One line that describes the error.
pub fn send(
    a: &GroupSendArgs,
    base: SocketAddr,
    layers: &[Layer],
    json: bool,
) -> Result<(), Failure> {
    let Some(total) = a.max_total else {
        return Err(Failure::Input(
            "media send --multicast: --max-total RATE is missing: groups send no feedback, so it bounds the rate".into(),
        ));
    };
    let all = layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.rate.as_bps()));
    if layers.is_empty() || all > total.as_bps() {
        let line = match layers {
            [] => {
                "media send --multicast: the layers are missing: --layer PORT:RATE for each".into()
            }
            _ => format!("--max-total: the layers have {all} bit/s together, which is more"),
        };
        return Err(Failure::Input(line));
    }
    let options = GroupSend {
        base,
        interface: interface_for(&a.group, base)?,
        ttl: a.ttl.unwrap_or(1),
        layers: layers.iter().map(|layer| (layer.from, layer.rate)).collect(),
        total,
    };
    catch_interrupt();
    let ready = |at: &[SocketAddr]| {
        let at: Vec<_> = at.iter().map(SocketAddr::to_string).collect();
        let line = format!("sending {} layers to {base} on, from {}", at.len(), at.join(", "));
        say(json, &line)
    };
    let sent = blocking::send_to_groups(&options, ready, &STOP)?;
    let parts = sent.parts;
    let dropped = sent.dropped.all();
    let refused = sent.refused;
    if json {
        return print_json(&serde_json::json!({
            "packets": parts, "dropped": dropped, "refused": refused,
            "datagrams": sent.datagrams, "bytes": sent.bytes,
        }));
    }
    print(&format!("{parts} packets sent, {dropped} dropped since --max-total did not suffice\n"))?;
    Ok(())
}

/// Receives as many layers as the path carries.
///
/// # Errors
/// One line that describes the error.
pub fn receive(
    a: &GroupReceiveArgs,
    base: SocketAddr,
    to: Vec<SocketAddr>,
    latency: Option<Duration>,
    json: bool,
    log: &Log,
    live: &LiveArgs,
) -> Result<(), Failure> {
    let interface = interface_for(&a.group, base)?;
    let (_page, observer) = on_page::of_receiver(live, "IP multicast")?;
    let options = GroupReceive {
        base,
        interface,
        to,
        latency: latency.unwrap_or(Duration::from_millis(300)),
        rtt: a.rtt.unwrap_or(Duration::from_millis(100)),
    };
    catch_interrupt();
    let places: Vec<_> = options.to.iter().map(SocketAddr::to_string).collect();
    let ready = || say(json, &format!("receiving from {base} on, for {}", places.join(", ")));
    let tell = |line: &str| log.line(LogLevel::Info, "media", line);
    let observer = observer.as_ref();
    let measures = blocking::receive_from_groups(&options, ready, tell, observer, &STOP)?;
    match measures {
        None => say(json, "no media arrived")?,
        Some(measures) if json => {
            print_json_line(&serde_json::to_value(&measures).unwrap_or_default())?;
        }
        Some(measures) => print(&format!("The stream is over\n{}", measures.text()))?,
    }
    Ok(())
}

/// Prints a line; with --json on the error stream, since the standard output has only JSON.
fn say(json: bool, line: &str) -> Result<(), narrows_peers::Error> {
    if json {
        note(line);
        return Ok(());
    }
    let silent = |_| {
        narrows_peers::Error::new(
            narrows_peers::ErrorKind::Local,
            "cannot write to the standard output",
        )
    };
    print(&format!("{line}\n")).map_err(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_written_in_four_ways() {
        for (text, at) in [
            ("site", "239.255.78.87:47480"),
            ("239.255.1.1", "239.255.1.1:47480"),
            ("239.255.1.1:5000", "239.255.1.1:5000"),
            ("ff15::1", "[ff15::1]:47480"),
            ("[ff15::1]:5000", "[ff15::1]:5000"),
        ] {
            assert_eq!(base(text).map(|at| at.to_string()), Ok(at.into()));
        }
        for text in ["", "10.0.0.1", "239.255.1.1:0", "group"] {
            assert!(base(text).is_err(), "{text}");
        }
        assert_eq!(interface("3"), Ok(Interface::Number(3)));
        assert!(interface("eth0").is_err());
    }
}
