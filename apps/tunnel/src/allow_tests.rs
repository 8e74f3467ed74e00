use super::*;
use proptest::prelude::*;

fn targets(all: &[&str]) -> Targets {
    Targets::new(all.iter().map(|text| text.parse().unwrap()).collect())
}

fn judged(all: &[&str], asked: Option<&str>, address: &str, port: u16) -> Result<(), Denied> {
    targets(all).judge(asked, address.parse().unwrap(), port, false)
}

#[test]
fn target_permits_exactly_its_addresses_and_ports() {
    let all =
        ["example.org:443", "*.example.net:80", "10.0.0.0/8:22", "[2600::/16]:*", "9.9.9.9:53"];
    let ok = |asked, address, port| judged(&all, asked, address, port).is_ok();
    assert!(ok(Some("example.org"), "8.8.8.8", 443));
    assert!(!ok(Some("example.org"), "8.8.8.8", 80));
    assert!(!ok(Some("www.example.org"), "8.8.8.8", 443));
    assert!(!ok(None, "8.8.8.8", 443), "an address is no name");
    assert!(ok(Some("a.example.net"), "8.8.8.8", 80) && ok(Some("b.a.example.net"), "8.8.8.8", 80));
    assert!(!ok(Some("example.net"), "8.8.8.8", 80) && !ok(Some("anexample.net"), "8.8.8.8", 80));
    assert!(ok(None, "10.1.2.3", 22) && ok(Some("any.name"), "10.1.2.3", 22));
    assert!(!ok(None, "11.1.2.3", 22) && !ok(None, "10.1.2.3", 23));
    assert!(ok(None, "2600:1::1", 7) && ok(Some("x.y"), "9.9.9.9", 53) && !ok(None, "9.9.9.8", 53));
}

#[test]
fn a_name_alone_leads_to_no_private_address() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "fd00::1",
        "64:ff9b::7f00:1",
        "::ffff:10.0.0.1",
    ] {
        for all in
            [&["evil.org:80"][..], &["*.org:80"], &["*:80"], &["0.0.0.0/0:80", "[::/0]:80", "*:80"]]
        {
            let judged = judged(all, Some("evil.org"), address, 80);
            assert!(matches!(judged, Err(Denied::NotPublic(_))), "{address} {all:?}");
        }
    }
}

#[test]
fn non_public_address_is_permitted_if_its_block_is_listed() {
    assert!(judged(&["127.0.0.1:80"], None, "::ffff:127.0.0.1", 80).is_ok());
    assert!(judged(&["[::1]:80"], None, "::1", 80).is_ok());
    assert!(judged(&["10.0.0.0/8:80"], Some("intranet"), "10.1.1.1", 80).is_ok());
    assert!(judged(&["8.0.0.0/5:80"], None, "10.1.1.1", 80).is_err(), "a wider network is no list");
    assert!(judged(&["169.254.0.0/16:80"], None, "169.254.1.1", 80).is_ok());
    assert!(judged(&["169.254.0.0/16:80"], None, "169.254.169.254", 80).is_err());
    assert!(judged(&["169.254.169.254:80"], None, "169.254.169.254", 80).is_ok());
}

#[test]
fn non_host_address_is_permitted_by_no_list() {
    let all = ["0.0.0.0/0:*", "[::/0]:*", "0.0.0.0/8:*", "240.0.0.0/4:*", "*:*"];
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.251", "::", "ff02::1", "::ffff:0.0.0.0"]
    {
        let judged = judged(&all, None, address, 9);
        assert!(matches!(judged, Err(Denied::NoHost(_))), "{address}: {judged:?}");
    }
    assert!(judged(&all, None, "0.0.0.1", 9).is_ok(), "its own block is listed");
}

#[test]
fn an_address_of_the_server_itself_must_be_listed() {
    let own = |all: &[&str]| targets(all).judge(None, "8.8.8.8".parse().unwrap(), 22, true);
    assert!(matches!(own(&["*:22"]), Err(Denied::NotPublic(_))));
    assert!(own(&["0.0.0.0/0:22"]).is_err());
    assert!(own(&["8.8.8.8:22"]).is_ok());
    let private = |all: &[&str]| targets(all).judge(None, "10.1.1.1".parse().unwrap(), 22, true);
    assert!(private(&["10.0.0.0/8:22"]).is_ok());
}

#[test]
fn malformed_target_gives_one_line() {
    for text in [
        "",
        "host",
        "host:",
        ":80",
        "host:0",
        "host:65536",
        "host:http",
        "fd00::1:80",
        "[fd00::1:80",
        "[host]:80",
        "10.0.0.1/8:80",
        "10.0.0.0/33:80",
        "a..b:80",
        "*.:80",
        "a b:80",
        "999.1.1.1:80",
        "224.0.0.1:80",
        "239.0.0.0/8:80",
        "[ff02::1]:80",
        "[ff00::/8]:80",
        "255.255.255.255:80",
        "0.0.0.0:80",
        "2130706433:80",
        "\u{1b}[2J:80",
    ] {
        let why = text.parse::<AllowedTarget>().unwrap_err();
        assert!(!why.contains(['\n', '\u{1b}']), "{why}");
    }
}

proptest! {
    /// Any text is a target or an error, and a target without a network permits no special address.
    #[test]
    fn names_never_permit_special_addresses(text in "[*a-z0-9.:/\\[\\]-]{0,20}", name in "[a-z.]{1,8}", bits: u32) {
        let address: IpAddr = std::net::Ipv4Addr::from(bits & 0x00ff_ffff | 0x7f00_0000).into();
        if let Ok(target) = text.parse::<AllowedTarget>() && !matches!(target.host, Host::Network(_)) {
            prop_assert!(Targets::new(vec![target]).judge(Some(&name), address, 80, false).is_err());
        }
    }
}
