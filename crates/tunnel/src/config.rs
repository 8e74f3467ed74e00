//! TOML files with the settings of a command's flags, for tunnels with many ports or targets.

use serde::Deserialize;
use std::path::PathBuf;

/// Settings of the far side.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct TunnelServeFile {
    /// Address and port to listen on (`--listen`).
    pub listen: Option<String>,
    /// File of the keys that may connect (`--clients`).
    pub clients: Option<PathBuf>,
    /// Permitted targets (`--allow`).
    pub allow: Vec<String>,
    /// Ports for clients' listeners (`--allow-reverse`).
    pub allow_reverse: Vec<String>,
    /// Networks of clients' packets (`--tun`).
    pub tun: Vec<String>,
    /// Connections and flows of a client (`--max-streams`).
    pub max_streams: Option<usize>,
    /// Flows of a client (`--max-flows`).
    pub max_flows: Option<usize>,
    /// New connections and flows of a client per second (`--max-openings`).
    pub max_openings: Option<u32>,
}

/// Settings of the near side.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ConnectFile {
    /// The server's URL.
    pub server: Option<String>,
    /// Forwarded TCP ports (`--tcp`).
    pub tcp: Vec<String>,
    /// Forwarded UDP ports (`--udp`).
    pub udp: Vec<String>,
    /// Ports of the server for targets of this end (`--reverse`).
    pub reverse: Vec<String>,
    /// Port of the SOCKS proxy (`--socks`).
    pub socks: Option<Port>,
    /// Port of the HTTP proxy (`--http-proxy`).
    pub http_proxy: Option<Port>,
    /// Whether to carry packets of an interface (`--tun`).
    pub tun: bool,
    /// Routes into the interface (`--route`).
    pub route: Vec<String>,
}

/// A local port, with or without an address.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// A port of loopback.
    Number(u16),
    /// `[ADDRESS:]PORT`, as on the command line.
    Text(String),
}

impl Port {
    /// The text as on the command line.
    pub fn text(&self) -> String {
        match self {
            Port::Number(number) => number.to_string(),
            Port::Text(text) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_peers::settings::read;

    #[test]
    fn a_file_says_what_the_flags_say() {
        let near: ConnectFile = read(
            "server = 'rrtp://host:1'\ntcp = ['8080:intranet:80',\n'81:b:81']\nsocks = 1080\nhttp-proxy = '[::1]:3128'\n",
        )
        .unwrap();
        assert_eq!(near.tcp, ["8080:intranet:80", "81:b:81"]);
        assert_eq!(
            (near.socks.unwrap().text(), near.http_proxy.unwrap().text()),
            ("1080".into(), "[::1]:3128".into())
        );
        let far: TunnelServeFile = read("clients = 'friends'\nallow = ['*:443']\n").unwrap();
        assert_eq!((far.clients.unwrap(), far.allow), ("friends".into(), vec!["*:443".into()]));
    }
}
