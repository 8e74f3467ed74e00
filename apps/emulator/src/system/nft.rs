//! nftables tables for one link: translate addresses behind the link.
//!
//! The tables belong to the socket that made them (`NFT_TABLE_F_OWNER`, Linux 5.12). No other process can change them,
//! and the kernel removes them when the socket is closed, also after a kill.

use super::netlink::{Netlink, NetlinkMessage};
use crate::error::Error;
use std::net::{IpAddr, Ipv4Addr};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const OWNER: u32 = 2;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const HOOK_BEFORE_ROUTING: u32 = 0;
const HOOK_AFTER_ROUTING: u32 = 4;
const PRIORITY_TO: i32 = -100;
const PRIORITY_FROM: i32 = 100;
const NETWORK_HEADER: u32 = 1;
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const NAT_TO: u32 = 1;
const TO: &str = "to";
const FROM: &str = "from";

/// The tables of one link; dropping them removes them.
#[derive(Debug)]
pub struct Tables {
    _owner: Netlink,
}

impl Tables {
    /// Adds the tables in the calling thread's namespace. Packets from an address in `inside` leave with the machine's
    /// own address. Packets to the first address of a pair are redirected to the second.
    ///
    /// # Errors
    /// No permission, or a kernel without nftables.
    pub fn create(
        name: &str,
        inside: &[IpAddr],
        redirect: &[(Ipv4Addr, Ipv4Addr)],
    ) -> Result<Tables, Error> {
        let mut batch = vec![NetlinkMessage::unanswered(BATCH_BEGIN).fixed(&generic(0, SUBSYSTEM))];
        for family in [IPV4, IPV6] {
            let own: Vec<IpAddr> =
                inside.iter().copied().filter(|a| a.is_ipv4() == (family == IPV4)).collect();
            if own.is_empty() {
                continue;
            }
            let table = NetlinkMessage::new(NEW_TABLE, CREATE).fixed(&generic(family, 0));
            batch.push(table.text(1, name).number(2, OWNER));
            batch.push(chain(family, name, FROM, HOOK_AFTER_ROUTING, PRIORITY_FROM));
            for address in own {
                batch.push(rule(family, name, FROM, |list| {
                    let list = matching(list, address, false);
                    expression(list, "masq", |m| m)
                }));
            }
            if family == IPV4 && !redirect.is_empty() {
                batch.push(chain(family, name, TO, HOOK_BEFORE_ROUTING, PRIORITY_TO));
                for (from, to) in redirect {
                    batch.push(rule(family, name, TO, |list| {
                        let list = matching(list, IpAddr::V4(*from), true);
                        let list = expression(list, "immediate", |m| {
                            let value = to.octets();
                            m.number(1, REGISTER).nested(2, |m| m.attribute(1, &value))
                        });
                        expression(list, "nat", |m| {
                            m.number(1, NAT_TO).number(2, u32::from(IPV4)).number(3, REGISTER)
                        })
                    }));
                }
            }
        }
        batch.push(NetlinkMessage::unanswered(BATCH_END).fixed(&generic(0, SUBSYSTEM)));
        let made = Netlink::netfilter().and_then(|mut owner| owner.batch(batch).map(|()| owner));
        let owner = made.map_err(|e| {
            let what =
                "the way out needs nftables with NAT in the kernel (nf_tables, nft_masq, nft_nat)";
            Error::system(what, &e)
        })?;
        Ok(Tables { _owner: owner })
    }
}

/// `struct nfgenmsg`.
fn generic(family: u8, resource: u16) -> [u8; 4] {
    let [a, b] = resource.to_be_bytes();
    [family, 0, a, b]
}

fn chain(family: u8, table: &str, name: &str, hook: u32, priority: i32) -> NetlinkMessage {
    NetlinkMessage::new(NEW_CHAIN, CREATE)
        .fixed(&generic(family, 0))
        .text(1, table)
        .text(3, name)
        .nested(4, |m| m.number(1, hook).attribute(2, &priority.to_be_bytes()))
        .text(7, "nat")
}

fn rule(
    family: u8,
    table: &str,
    chain: &str,
    list: impl FnOnce(NetlinkMessage) -> NetlinkMessage,
) -> NetlinkMessage {
    let message = NetlinkMessage::new(NEW_RULE, CREATE | APPEND).fixed(&generic(family, 0));
    message.text(1, table).text(2, chain).nested(4, list)
}

fn expression(
    list: NetlinkMessage,
    name: &str,
    data: impl FnOnce(NetlinkMessage) -> NetlinkMessage,
) -> NetlinkMessage {
    list.nested(1, |m| m.text(1, name).nested(2, data))
}

/// Only packets from (or to) this address.
fn matching(list: NetlinkMessage, address: IpAddr, destination: bool) -> NetlinkMessage {
    let (value, offset) = match address {
        IpAddr::V4(four) => (four.octets().to_vec(), if destination { 16 } else { 12 }),
        IpAddr::V6(six) => (six.octets().to_vec(), if destination { 24 } else { 8 }),
    };
    let list = expression(list, "payload", |m| {
        let m = m.number(1, REGISTER).number(2, NETWORK_HEADER);
        m.number(3, offset).number(4, value.len() as u32)
    });
    expression(list, "cmp", |m| {
        m.number(1, REGISTER).number(2, EQUAL).nested(3, |m| m.attribute(1, &value))
    })
}
