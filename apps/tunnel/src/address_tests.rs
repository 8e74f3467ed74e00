use super::*;
use proptest::prelude::*;

fn is_public(text: &str) -> bool {
    special(text.parse().unwrap()).is_none()
}

/// A sample of each class that must never count as public, in every notation.
#[test]
fn non_public_address_is_detected_in_every_notation() {
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "10.255.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "169.254.0.1",
        "168.63.129.16",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.19.0.1",
        "203.0.113.9",
        "224.0.0.251",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2001:0:4136:e378::1",
        "fd00:ec2::254",
        "fc00::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
        "100::1",
        "5f00::1",
        "::ffff:0:127.0.0.1",
        "2001:470::5efe:8.8.8.8",
        "2001:470::200:5efe:10.0.0.1",
    ] {
        assert!(!is_public(text), "{text}");
    }
}

#[test]
fn public_address_stays_reachable_over_nat64() {
    for text in [
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "11.0.0.1",
        "9.255.255.255",
        "128.0.0.1",
        "126.1.1.1",
        "2606:4700:4700::1111",
        "2a00:1450:4001::8a",
        "64:ff9b::8.8.8.8",
        "::ffff:8.8.8.8",
        "2001:200::1",
        "2003::1",
        "3ffe::1",
    ] {
        assert!(is_public(text), "{text}");
    }
}

/// The examples of RFC 6052 section 2.4.
#[test]
fn nat64_prefix_of_each_length_finds_the_ipv4_address() {
    for (prefix, address) in [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ] {
        let prefix: Nat64Prefix = prefix.parse().unwrap();
        let found = prefix.embedded(address.parse().unwrap());
        assert_eq!(found, Some(Ipv4Addr::new(192, 0, 2, 33)), "{prefix:?}");
        assert_eq!(prefix.embedded("2001:db9::1".parse().unwrap()), None);
    }
    for text in ["", "64:ff9b::", "10.0.0.0/8", "64:ff9b::/95", "64:ff9b::1/96"] {
        let why = text.parse::<Nat64Prefix>().unwrap_err();
        assert!(why.contains("64:ff9b:1:fffe::/96") && !why.contains('\n'), "{why}");
    }
}

/// The metadata address has a block of its own within the link-local one, so that permitting link-local addresses does
/// not permit it.
#[test]
fn the_longest_prefix_names_an_address() {
    assert_eq!(special("169.254.169.254".parse().unwrap()).unwrap().name, METADATA);
    assert_eq!(special("fd00:ec2::254".parse().unwrap()).unwrap().name, METADATA);
    assert_eq!(special("169.254.169.253".parse().unwrap()).unwrap().name, "a link-local address");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Compares with the standard library: addresses that it classifies as private, loopback, link-local, multicast,
    /// broadcast or unspecified are never public here, plain, mapped or behind NAT64.
    #[test]
    fn addresses_special_to_std_are_not_public(bits: u32, last in prop::sample::select(vec![10u8, 100, 127, 169, 172, 192, 198, 224, 255, 0, 8])) {
        for address in [Ipv4Addr::from(bits), Ipv4Addr::from((bits & 0x00ff_ffff) | u32::from(last) << 24)] {
            let is_special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_unspecified()
                || address.is_documentation() || address.octets()[0] == 0 || address.octets()[0] >= 224;
            let [a, b, c, d] = address.octets();
            let high = u16::from_be_bytes([a, b]);
            let low = u16::from_be_bytes([c, d]);
            let here = special(address.into()).is_some();
            prop_assert!(here || !is_special, "{address}");
            for wrapped in [address.to_ipv6_mapped(), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)] {
                prop_assert_eq!(special(wrapped.into()).is_some(), here, "{}", wrapped);
            }
            let six_to_four = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
            prop_assert!(special(six_to_four.into()).is_some());
        }
    }

    /// Outside of 2000::/3 no IPv6 address is public, except those that contain a public IPv4 address.
    #[test]
    fn only_global_unicast_is_public(bits: u128, first: u16) {
        let address = Ipv6Addr::from((bits >> 16) | u128::from(first) << 112);
        let is_global = address.segments()[0] & 0xe000 == 0x2000;
        let is_v4 = matches!(meant(address.into()), IpAddr::V4(_));
        prop_assert!(is_global || is_v4 || special(address.into()).is_some(), "{address}");
        let is_local = address.is_unique_local() || address.is_unicast_link_local() || address.is_multicast();
        prop_assert!(!is_local || special(address.into()).is_some(), "{address}");
    }
}
