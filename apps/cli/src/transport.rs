//! Flags that choose a transport and give it hints, for every command that opens connections.

use crate::failure::Failure;
use clap::Args;
use narrows_base::units::{self, Unit};
use narrows_base::{Duration, Rate, Spec, SpecError};
use narrows_congestion::PathHints;
use narrows_lab::options::RARE;
use narrows_lab::options::values::time;
use narrows_net::dial::ordered;
use narrows_net::endpoint::connection;
use narrows_sim::protocol::Family;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Size of a full data packet on a link, in bytes.
pub const PACKET: u32 = narrows_transport::PACKET_BYTES;

/// Hints about the path, and the user's limit.
#[derive(Args, Clone, Debug, Default)]
pub struct Hints {
    /// Hint: the link's rate
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "RATE", value_parser = rate)]
    pub rate: Option<Rate>,
    /// Hint: the round-trip time with empty queues
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", value_parser = time)]
    pub rtt: Option<Duration>,
    /// Hint: the share of packets that the link loses without congestion
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "SHARE", value_parser = share)]
    pub loss: Option<f64>,
    /// Maximum sending rate
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub limit: Option<Rate>,
}

impl Hints {
    /// The hints in the form for controllers.
    pub fn to_path_hints(&self) -> PathHints {
        PathHints { rate: self.rate, rtt: self.rtt, loss: self.loss }
    }
    /// The hints that also apply to the other direction: all but the rate.
    pub fn receiving(&self) -> PathHints {
        PathHints { rate: None, ..self.to_path_hints() }
    }
}

/// New hints during a connection.
#[derive(Args, Clone, Debug, Default)]
pub struct Reconfigure {
    /// After TIME, give these hints about the path, as in 30s:rate=384kbit/s,rtt=300ms; keys are rate, rtt, loss; may
    /// be repeated (rrtp)
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME:KEY=VALUE,...", value_parser = path_hints_at)]
    pub reconfigure: Vec<(Duration, PathHints)>,
}

impl Reconfigure {
    /// The hints, ordered by time.
    pub fn in_order(&self) -> Vec<(Duration, PathHints)> {
        let mut all = self.reconfigure.clone();
        all.sort_by_key(|(at, _)| *at);
        all
    }
}

#[derive(Args, Clone, Debug)]
pub struct TransportArgs {
    /// Protocol for this end's sending: rrtp, rrtp-lasthop, tear-reliable, or rrtp+NAME with a
    /// controller, as rrtp+bbr; for media also tfwc and tear
    #[arg(long, value_name = "NAME", default_value = "rrtp")]
    pub protocol: String,
    #[command(flatten)]
    pub hints: Hints,
}

impl TransportArgs {
    /// The parsed protocol.
    ///
    /// # Errors
    /// An unknown protocol, or one that is not available over UDP.
    pub fn protocol(&self) -> Result<Protocol, Failure> {
        protocol(&self.protocol).map_err(|e| e.at("--protocol").into())
    }
    /// The configuration of connections.
    ///
    /// # Errors
    /// As [`protocol`](TransportArgs::protocol).
    pub fn connection(&self) -> Result<ConnectionConfig, Failure> {
        Ok(ConnectionConfig {
            hints: self.hints.to_path_hints(),
            rate_limit: self.hints.limit,
            ..connection(self.protocol()?)
        })
    }
}

fn protocol(text: &str) -> Result<Protocol, SpecError> {
    let spec = Spec::parse(text)?;
    let entry = narrows_sim::protocol::find(&spec.name)?;
    if entry.family != Family::Rrtp {
        return Err(SpecError::new(format!(
            "'{}' {}; over UDP there is rrtp, rrtp+{} or another of \
             `narrows list protocols` that begins with rrtp or ends with -reliable",
            entry.name,
            match entry.family {
                Family::Media => "carries no stream: `narrows media` sends with it".into(),
                _ => format!(
                    "is for TCP: `narrows kernel run {}` runs its controller",
                    entry.controller
                ),
            },
            entry.controller
        )));
    }
    let protocol = Protocol::read(&spec, PACKET)?;
    if spec.args.iter().any(|(key, value)| key.as_deref() == Some("recovery") && value == "nack") {
        return Err(SpecError::new(format!(
            "'{}': recovery=nack is simulated only; over UDP the sender repairs (recovery=rfc9002)",
            protocol.label()
        )));
    }
    Ok(protocol)
}

/// Parses a rate, for clap.
pub fn rate(text: &str) -> Result<Rate, String> {
    units::rate(text).map_err(|e| e.to_string())
}
fn path_hints_at(text: &str) -> Result<(Duration, PathHints), String> {
    narrows_scenario::timeline::path_hints_at(text).map_err(|e| e.to_string())
}
/// Parses a size in bytes, for clap.
pub fn bytes(text: &str) -> Result<u64, String> {
    let n = units::number(text, Unit::Bytes).map_err(|e| e.to_string())?;
    if (1.0..=1e18).contains(&n) { Ok(n as u64) } else { Err("1B to 10^18B are possible".into()) }
}
/// Parses a share from 0 to 1, for clap.
pub fn share(text: &str) -> Result<f64, String> {
    let x = units::share("loss", text).map_err(|e| e.to_string())?;
    if (0.0..1.0).contains(&x) {
        Ok(x)
    } else {
        Err("a share is from 0 to below 1, or 0% to 100%".into())
    }
}

/// Addresses of a socket that is bound to `at`, joined by "or"; for a wildcard address, those of this machine.
pub fn addresses(at: SocketAddr) -> String {
    let all: Vec<_> = narrows_net::reachable(at).iter().map(SocketAddr::to_string).collect();
    all.join(" or ")
}

/// URLs of a server that listens at `at`, one per line; for a wildcard address, those of this machine.
pub fn urls(name: &str, at: SocketAddr) -> String {
    narrows_net::reachable(at).iter().map(|at| format!("  rrtp://{name}@{at}\n")).collect()
}

/// Refuses a host that is only a number: probably a port without an address. The system's resolver reads 4433 as
/// 0.0.17.81.
///
/// # Errors
/// The host is a number; the line names the correct form.
pub fn bare_number(flag: &str, text: &str, host: &str) -> Result<(), Failure> {
    if host.is_empty() || !host.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(());
    }
    let why = match text.parse::<u16>() {
        Ok(port) => format!(
            "that is a port alone; write 127.0.0.1:{port} for this machine, [::]:{port} for every \
             address that it has"
        ),
        Err(_) => {
            "a number is no host; write an address such as 127.0.0.1:4433 or [::]:4433".into()
        }
    };
    Err(Failure::Input(format!("{flag} '{text}': {why}")))
}

/// Parses an address with a port. Of a name, the first address counts: a socket is bound to one.
///
/// # Errors
/// One line that describes the error.
pub fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    Ok(host_addresses(flag, text)?.0)
}

/// Parses an address with a port. Returns all addresses of a name in the order of attempts, the first one apart.
///
/// # Errors
/// One line that describes the error.
pub fn host_addresses(flag: &str, text: &str) -> Result<(SocketAddr, Vec<SocketAddr>), Failure> {
    if let Ok(address) = text.parse() {
        return Ok((address, vec![address]));
    }
    let wrong = |why: &str| {
        Failure::Input(format!("{flag} '{text}': {why}; an address is HOST:PORT or [IPv6]:PORT"))
    };
    bare_number(flag, text, text.rsplit_once(':').map_or(text, |(host, _)| host))?;
    if !text.contains(':') {
        return Err(wrong("the port is missing"));
    }
    let found = text.to_socket_addrs().map_err(|e| wrong(&e.to_string()))?;
    let all = ordered(found, None);
    let first = all.first().ok_or_else(|| wrong("no address of that name"))?;
    Ok((*first, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protocols and options that sockets lack are refused in one line, not silently ignored.
    #[test]
    fn protocol_without_sockets_is_refused_as_transport() {
        for (text, why) in [
            ("cubic", "`narrows kernel run cubic` runs"),
            ("tahoe", "`narrows kernel run reno` runs"),
            ("tfwc", "`narrows media` sends with it"),
            ("rrtp(recovery=nack)", "recovery=nack is simulated only"),
        ] {
            let refused = protocol(text).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(why) && !refused.contains('\n'), "{refused}");
        }
        assert!(protocol("rrtp(recovery=rfc9002)").is_ok());
    }
}
