//! Several namespaces and the links between them, with routes from each to all.

use crate::error::Error;
use crate::link::{EmulatedLink, LinkEnd, LinkOptions};
use crate::system::namespace::Namespace;
use crate::system::{interface, leftovers};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

/// A link between two nodes.
#[derive(Clone, Debug)]
pub struct TopologyLink {
    /// The link's name, unique in the topology.
    pub name: String,
    /// The node at A.
    pub from: String,
    /// The node at B.
    pub to: String,
    /// Configuration of the link.
    pub options: LinkOptions,
}

/// A running topology: a namespace for each node.
#[derive(Debug)]
pub struct Topology {
    links: Vec<(String, EmulatedLink)>,
    /// Each node's namespace and addresses.
    nodes: BTreeMap<String, (Namespace, Vec<IpAddr>)>,
    files: Vec<(PathBuf, PathBuf)>,
}

impl Topology {
    /// Creates namespaces and links. Nodes forward packets along the path with the fewest links, as in a simulation.
    ///
    /// # Errors
    /// As [`EmulatedLink::between`].
    pub fn new(wires: Vec<TopologyLink>) -> Result<Topology, Error> {
        let mut nodes = BTreeMap::new();
        for name in wires.iter().flat_map(|w| [&w.from, &w.to]) {
            if !nodes.contains_key(name) {
                nodes.insert(name.clone(), (Namespace::create(name)?, Vec::new()));
            }
        }
        let mut this = Topology { links: Vec::new(), nodes, files: Vec::new() };
        let mut ends = Vec::new();
        for wire in wires {
            let (Some((a, _)), Some((b, _))) =
                (this.nodes.get(&wire.from), this.nodes.get(&wire.to))
            else {
                continue;
            };
            let mut link = EmulatedLink::between(a, b, wire.options)?;
            for namespace in [a, b] {
                link.slot().note(&leftovers::note(namespace))?;
            }
            for (node, end) in [(&wire.from, link.a()), (&wire.to, link.b())] {
                if let Some((_, addresses)) = this.nodes.get_mut(node) {
                    addresses.extend(&end.addresses);
                }
            }
            ends.push([(wire.from, link.a().clone()), (wire.to, link.b().clone())]);
            this.links.push((wire.name, link));
        }
        this.route(&ends)?;
        let hosts = this.hosts()?;
        this.files.extend(hosts);
        Ok(this)
    }

    /// Routes from each node to each link's network that is not its own.
    fn route(&self, ends: &[[(String, LinkEnd); 2]]) -> Result<(), Error> {
        for (node, (namespace, _)) in &self.nodes {
            // For each other node, the link and the neighbour that begin a shortest path to it.
            let mut first: BTreeMap<&str, (String, Vec<IpAddr>)> = BTreeMap::new();
            let mut queue = VecDeque::from([node.as_str()]);
            while let Some(at) = queue.pop_front() {
                for [a, b] in ends {
                    for (near, far) in [(a, b), (b, a)] {
                        if near.0 != at || far.0 == *node || first.contains_key(far.0.as_str()) {
                            continue;
                        }
                        let step = match first.get(at) {
                            Some(step) => step.clone(),
                            None => (near.1.interface.clone(), far.1.addresses.clone()),
                        };
                        first.insert(&far.0, step);
                        queue.push_back(&far.0);
                    }
                }
            }
            namespace.enter(|| {
                for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                    let _ = fs::write(format!("/proc/sys/net/{setting}"), "1");
                }
                for [a, b] in ends {
                    if a.0 == *node || b.0 == *node {
                        continue;
                    }
                    // Use the route to the nearer end of the link.
                    let Some((interface, gateways)) =
                        first.get(a.0.as_str()).or_else(|| first.get(b.0.as_str()))
                    else {
                        continue;
                    };
                    for address in &a.1.addresses {
                        let prefix = if address.is_ipv4() { 29 } else { 64 };
                        let gateway = gateways.iter().find(|g| g.is_ipv4() == address.is_ipv4());
                        interface::add_route(
                            network(*address),
                            prefix,
                            interface,
                            gateway.copied(),
                        )?;
                    }
                }
                Ok(())
            })??;
        }
        Ok(())
    }

    /// Writes a hosts file with the names of the nodes.
    fn hosts(&mut self) -> Result<Option<(PathBuf, PathBuf)>, Error> {
        let place = PathBuf::from("/etc/hosts");
        let Ok(mut text) = fs::read_to_string(&place) else { return Ok(None) };
        for (name, (_, addresses)) in &self.nodes {
            for address in addresses {
                text += &format!("\n{address} {name}");
            }
        }
        text.push('\n');
        let Some((_, link)) = self.links.first_mut() else { return Ok(None) };
        let file = link.slot().write_beside("hosts", &text)?;
        Ok(Some((place, file)))
    }

    /// The links by name.
    pub fn links(&self) -> &[(String, EmulatedLink)] {
        &self.links
    }

    /// The nodes with their addresses.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &[IpAddr])> {
        self.nodes.iter().map(|(name, (_, addresses))| (name.as_str(), addresses.as_slice()))
    }

    /// A node's namespace.
    pub fn namespace(&self, node: &str) -> Option<&Namespace> {
        self.nodes.get(node).map(|(namespace, _)| namespace)
    }

    /// Pairs of files; commands see the second in place of the first.
    pub fn files(&self) -> &[(PathBuf, PathBuf)] {
        &self.files
    }
}

/// The network of a link's address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(four) => std::net::Ipv4Addr::from_bits(four.to_bits() & !7).into(),
        IpAddr::V6(six) => std::net::Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
    }
}
