//! `tunnel --tun` between namespaces of the test, over an emulated link with loss: the kernel's packets through the
//! tunnel. Needs root; otherwise the tests are skipped with a message.

use crate::process::{Process, narrows};
use narrows_base::{Duration, Rate};
use narrows_emulator::{EmulatedLink, LinkOptions, Namespace, PacketInterface, spawn};
use narrows_link::{LinkConfig, LossSpec};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A machine, and its link to the server's, with 2% loss in each direction.
struct Near {
    namespace: Namespace,
    /// The server's address on the link.
    server: IpAddr,
    _link: EmulatedLink,
}

struct Net {
    far: Namespace,
    home: tempfile::TempDir,
}

/// One of the two commands; it ends with the test.
struct Running {
    _child: Process,
    log: PathBuf,
    /// Output up to the awaited line.
    last: String,
}

impl Running {
    /// Waits until its log contains this text `times` times.
    fn says(&self, part: &str, times: usize) {
        while std::fs::read_to_string(&self.log).unwrap_or_default().matches(part).count() < times {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// The server's port.
    fn port(&self) -> &str {
        self.last.rsplit(':').next().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn net() -> Option<Net> {
    match Namespace::create("far") {
        Ok(far) => Some(Net { far, home: tempfile::tempdir().unwrap() }),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

impl Net {
    fn near(&self) -> Near {
        self.near_with_mtu(1500)
    }

    fn near_with_mtu(&self, mtu: u32) -> Near {
        let namespace = Namespace::create("near").unwrap();
        let loss = LossSpec::parse_all("2%").unwrap();
        let plain = LinkConfig::plain(Rate::from_bps(50_000_000), Duration::from_millis(5));
        let config = LinkConfig { loss, ..plain };
        let options = LinkOptions { mtu, ..LinkOptions::new(config.clone(), config) };
        let link = EmulatedLink::between(&namespace, &self.far, options).unwrap();
        let server = *link.b().addresses.iter().find(|address| address.is_ipv4()).unwrap();
        Near { namespace, server, _link: link }
    }

    fn command(&self, who: &str) -> Command {
        let home = self.home.path().join(who);
        std::fs::create_dir_all(&home).unwrap();
        narrows(&home)
    }

    /// A list of these clients, in this order.
    fn clients(&self, names: &[&str]) -> PathBuf {
        let keys = names.iter().map(|who| {
            let key = self.command(who).arg("key").output().unwrap();
            String::from_utf8(key.stdout).unwrap()
        });
        let list = self.home.path().join("clients");
        std::fs::write(&list, keys.collect::<String>()).unwrap();
        list
    }

    fn start(&self, who: &str, namespace: &Namespace, args: &[&str], until: &str) -> Running {
        let log = self.home.path().join(who).join("log");
        let mut command = self.command(who);
        command.args(args).args(["--log", "log"]).stdout(Stdio::piped());
        let mut child = spawn(&mut command, namespace, &[]).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let last = lines.find(|line| line.contains(until)).unwrap_or_default().trim().to_string();
        let running = Running { _child: Process(child), log, last };
        assert!(running.last.contains(until), "{args:?} ended without '{until}'");
        running
    }

    fn serve(&self, clients: &Path, port: &str, allow: &[&str]) -> Running {
        let listen = format!("0.0.0.0:{port}");
        let mut args = vec!["tunnel", "serve", "--listen", &listen];
        args.extend(["--clients", clients.to_str().unwrap()]);
        args.extend(["--tun", "10.77.0.0/24", "--tun", "fd77::/64", "--allow"]);
        self.start("far", &self.far, &[&args[..], allow].concat(), "rrtp://")
    }

    /// The near side, after it has got addresses.
    fn connect(&self, who: &str, near: &Near, server: &Running, flags: &[&str]) -> Running {
        self.connect_to(who, near, &near.url(server, server.port()), flags)
    }

    fn connect_to(&self, who: &str, near: &Near, url: &str, flags: &[&str]) -> Running {
        let args = [&["tunnel", "connect", url, "--tun"][..], flags].concat();
        let running = self.start(who, &near.namespace, &args, "packet by packet");
        running.says("the server has 10.77.0.1 and fd77::1", 1);
        running
    }
}

impl Near {
    fn url(&self, server: &Running, port: &str) -> String {
        let (key, _) = server.last.split_once('@').unwrap();
        format!("{key}@{}:{port}", self.server)
    }
}

const ALL: [&str; 2] = ["10.77.0.0/24:*", "[fd77::/64]:*"];

/// Sends datagrams from one machine until one has come back from the other, where a socket answers.
fn echo(from: &Namespace, own: IpAddr, to: &Namespace, at: IpAddr) {
    let answering = to.enter(|| UdpSocket::bind((at, 0)).unwrap()).unwrap();
    let to = answering.local_addr().unwrap();
    let asking = from.enter(|| UdpSocket::bind((own, 0)).unwrap()).unwrap();
    let wait = Some(std::time::Duration::from_millis(200));
    asking.set_read_timeout(wait).unwrap();
    answering.set_read_timeout(wait).unwrap();
    let mut bytes = [0; 3000];
    // Short and full packets, and one that is longer than any message: IP fragments it.
    for length in [1, 1000, 2500] {
        loop {
            let _ = asking.send_to(&vec![7; length], to);
            if let Ok((n, back)) = answering.recv_from(&mut bytes) {
                assert_eq!(back.ip(), own);
                let _ = answering.send_to(&bytes[..n], back);
                if let Ok((n, _)) = asking.recv_from(&mut bytes)
                    && n == length
                {
                    break;
                }
            }
        }
    }
}

fn transfer(from: &Namespace, to: &Namespace, at: IpAddr, bytes: usize) {
    let listener = to.enter(|| TcpListener::bind((at, 0)).unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    let receiving = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    });
    let data: Vec<u8> = (0..bytes).map(|n| (n / 1000) as u8).collect();
    let mut tcp = from.enter(|| TcpStream::connect(at).unwrap()).unwrap();
    tcp.write_all(&data).unwrap();
    drop(tcp);
    assert!(receiving.join().unwrap() == data);
}

fn four(last: u8) -> IpAddr {
    [10, 77, 0, last].into()
}

fn six(last: u16) -> IpAddr {
    [0xfd77, 0, 0, 0, 0, 0, 0, last].into()
}

/// Whether a namespace's kernel has a route to this address.
fn has_way(namespace: &Namespace, to: &str) -> bool {
    let to: SocketAddr = to.parse().unwrap();
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    namespace.enter(|| UdpSocket::bind(any).unwrap().connect(to).is_ok()).unwrap()
}

#[test]
fn packets_pass_both_ways_and_other_routes_stay() {
    let Some(net) = net() else { return };
    let near = net.near();
    let server = net.serve(&net.clients(&["one"]), "0", &ALL);
    let client = net.connect("one", &near, &server, &[]);
    for (own, far) in [(four(2), four(1)), (six(2), six(1))] {
        echo(&near.namespace, own, &net.far, far);
        echo(&net.far, far, &near.namespace, own);
    }
    transfer(&near.namespace, &net.far, four(1), 1_000_000);
    transfer(&net.far, &near.namespace, six(2), 1_000_000);
    // Neither a default route nor the rest of the server's network is routed, since neither was requested.
    assert!(has_way(&near.namespace, "10.77.0.1:9") && has_way(&near.namespace, "[fd77::1]:9"));
    for elsewhere in ["192.0.2.1:9", "10.77.0.9:9", "[2001:db8::1]:9", "[fd77::9]:9"] {
        assert!(!has_way(&near.namespace, elsewhere), "{elsewhere}");
    }
    drop(client);
    assert!(!has_way(&near.namespace, "10.77.0.1:9"), "the interface is gone with its process");
    assert!(!server.log().contains("dropped"), "{}", server.log());
    drop(server);
    assert!(!has_way(&net.far, "10.77.0.2:9"));
}

#[test]
fn each_client_has_an_address_and_reaches_allowed_targets() {
    let Some(net) = net() else { return };
    let first = net.near();
    let second = net.near();
    let server = net.serve(&net.clients(&["one", "two"]), "0", &["10.77.0.1:*"]);
    let _one = net.connect("one", &first, &server, &["--route", "10.77.0.0/24"]);
    let _two = net.connect("two", &second, &server, &[]);
    server.says("packets: given 10.77.0.2 and fd77::2", 1);
    server.says("packets: given 10.77.0.3 and fd77::3", 1);
    echo(&first.namespace, four(2), &net.far, four(1));
    echo(&second.namespace, four(3), &net.far, four(1));
    assert!(!has_way(&second.namespace, "10.77.0.2:9") && has_way(&first.namespace, "10.77.0.3:9"));
    // Neither another client nor an address that is not listed is reached, though both are routed into the tunnel.
    let socket = first.namespace.enter(|| UdpSocket::bind((four(2), 0)).unwrap()).unwrap();
    while !server.log().contains("dropped one to 10.77.0.3, which is not permitted") {
        socket.send_to(b"to another client", (four(3), 9)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let socket = second.namespace.enter(|| UdpSocket::bind((six(3), 0)).unwrap()).unwrap();
    while !server.log().contains("dropped one to fd77::1, which is not permitted") {
        socket.send_to(b"to the server", (six(1), 9)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn the_address_stays_while_the_server_starts_again() {
    let Some(net) = net() else { return };
    let near = net.near();
    let clients = net.clients(&["absent", "one"]);
    let server = net.serve(&clients, "0", &ALL);
    let port = server.port().to_string();
    let client = net.connect("one", &near, &server, &[]);
    // Bound to the address, since answers to another one would not arrive.
    let asking = near.namespace.enter(|| UdpSocket::bind((four(3), 0)).unwrap()).unwrap();
    let wait = Some(std::time::Duration::from_millis(200));
    asking.set_read_timeout(wait).unwrap();
    drop(server);
    let _server = net.serve(&clients, &port, &ALL);
    client.says("packets: ntun0 has 10.77.0.3 and fd77::3", 2);
    let answering = net.far.enter(|| UdpSocket::bind((four(1), 0)).unwrap()).unwrap();
    answering.set_read_timeout(wait).unwrap();
    let mut bytes = [0; 10];
    loop {
        asking.send_to(b"still here", answering.local_addr().unwrap()).unwrap();
        if let Ok((_, from)) = answering.recv_from(&mut bytes) {
            assert_eq!(from, asking.local_addr().unwrap());
            break;
        }
    }
}

/// With a default route all packets enter the tunnel, except those of the tunnel itself.
#[test]
fn a_default_route_leaves_the_tunnels_own_way() {
    let Some(net) = net() else { return };
    let near = net.near();
    let server = net.serve(&net.clients(&["one"]), "0", &ALL);
    let client = net.connect("one", &near, &server, &["--route", "default"]);
    assert!(has_way(&near.namespace, "192.0.2.1:9") && has_way(&near.namespace, "[2001:db8::1]:9"));
    echo(&near.namespace, four(2), &net.far, four(1));
    let socket = near.namespace.enter(|| UdpSocket::bind((four(2), 0)).unwrap()).unwrap();
    while !server.log().contains("dropped one to 192.0.2.1, which is not permitted") {
        socket.send_to(b"out", "192.0.2.1:9").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(client);
    assert!(!has_way(&near.namespace, "192.0.2.1:9"));
}

/// If the path carries only shorter packets, a long one that may not be fragmented causes an ICMP error, so that its
/// sender reduces the size: the kernel does so with its next packet.
#[test]
fn senders_learn_the_path_mtu() {
    let Some(net) = net() else { return };
    let near = net.near_with_mtu(1400);
    let server = net.serve(&net.clients(&["one"]), "0", &ALL);
    let _client = net.connect("one", &near, &server, &[]);
    for (own, other) in [(four(2), four(1)), (six(2), six(1))] {
        for (from, at, to, there) in
            [(&net.far, other, &near.namespace, own), (&near.namespace, own, &net.far, other)]
        {
            let receiving = to.enter(|| UdpSocket::bind((there, 0)).unwrap()).unwrap();
            receiving.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
            let sending = from.enter(|| UdpSocket::bind((at, 0)).unwrap()).unwrap();
            let mut bytes = [0; 2000];
            // 1400 bytes with headers: too long for a message, and shorter than the MTU of the server's interface.
            let received = (0..1200).any(|_| {
                let _ = sending.send_to(&[7; 1352], receiving.local_addr().unwrap());
                receiving.recv_from(&mut bytes).is_ok_and(|(n, from)| n == 1352 && from.ip() == at)
            });
            assert!(received, "from {at}");
        }
    }
    transfer(&net.far, &near.namespace, four(2), 300_000);
}

/// If only TCP is answered, packets pass, too.
#[test]
fn packets_pass_over_tcp() {
    let Some(net) = net() else { return };
    let near = net.near();
    let server = net.serve(&net.clients(&["one"]), "0", &ALL);
    let inside = SocketAddr::new([127, 0, 0, 1].into(), server.port().parse().unwrap());
    let listener = net.far.enter(|| TcpListener::bind((near.server, 0)).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let namespace = net.far.enter(Namespace::current).unwrap().unwrap();
    std::thread::spawn(move || {
        namespace.join().unwrap();
        for tcp in listener.incoming() {
            let from = tcp.unwrap();
            let to = TcpStream::connect(inside).unwrap();
            for (mut from, mut to) in
                [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)]
            {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    let client = net.connect_to("one", &near, &near.url(&server, &port), &[]);
    client.says("over TCP, since UDP is not answered", 1);
    echo(&near.namespace, four(2), &net.far, four(1));
    transfer(&net.far, &near.namespace, six(2), 300_000);
}

#[test]
fn impossible_tun_options_give_one_line() {
    let Some(net) = net() else { return };
    let near = net.near();
    let clients = net.clients(&["one"]);
    let clients = clients.to_str().unwrap();
    let serve = ["tunnel", "serve", "--listen", "127.0.0.1:0", "--clients", clients];
    let taken = format!("{}/29", truncated(near.server));
    let with = |more: &[&'static str]| [&serve[..], more].concat();
    let url = "rrtp://127.0.0.1:9";
    for (args, part) in [
        (with(&["--tun", "10.77.0.0/24"]), "--allow"),
        (with(&["--allow", "*:80", "--tun", "8.8.8.0/24"]), "private networks only"),
        (with(&["--allow", "*:80", "--tun", "10.77.0.1/24"]), "begins at 10.77.0.0/24"),
        (with(&["--allow", "*:80", "--tun", "10.77.0.0/31"]), "1 are listed"),
        (with(&["--allow", "*:80", "--tun", "here"]), "as 10.7.0.0/24"),
        ([&serve[..], &["--allow", "*:80", "--tun", &taken]].concat(), "has a way to"),
        (vec!["tunnel", "connect", url, "--socks", "0", "--route", "10.0.0.0/8"], "say --tun"),
        (vec!["tunnel", "connect", url, "--tun", "--route", "0.0.0.0/0"], "or default"),
    ] {
        let mut command = net.command("far");
        command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = spawn(&mut command, &net.far, &[]).unwrap().wait_with_output().unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part), "{args:?}: {error}");
        assert!(error.lines().count() == 1 || error.contains("--help"), "{args:?}: {error}");
    }
    // A server that carries no packets.
    let args = [&serve[..2], &["--listen", "0.0.0.0:0", "--clients", clients, "--allow", "*:80"]];
    let server = net.start("far", &net.far, &args.concat(), "rrtp://");
    let mut command = net.command("one");
    command.args(["tunnel", "connect", &near.url(&server, server.port()), "--tun"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = spawn(&mut command, &near.namespace, &[]).unwrap().wait_with_output().unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.contains("it was started without --tun"), "{error}");
}

/// The server's addresses do not replace addresses that the client already has a route to.
#[test]
fn an_address_that_is_reached_already_is_not_taken() {
    let Some(net) = net() else { return };
    let near = net.near();
    let _own = near.namespace.enter(|| {
        let own = PacketInterface::create("own%d").unwrap();
        own.up(1400).unwrap();
        own.add_address(four(9), 24).unwrap();
        own
    });
    let server = net.serve(&net.clients(&["one"]), "0", &ALL);
    for more in [&[][..], &["--route", "default"]] {
        let mut command = net.command("one");
        let url = near.url(&server, server.port());
        command.args(["tunnel", "connect", &url, "--tun"]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = spawn(&mut command, &near.namespace, &[]).unwrap().wait_with_output().unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{error}");
        assert!(error.contains("this machine has a way to one of them already"), "{error}");
    }
    // With a --route for the network, they do.
    let client = net.connect("one", &near, &server, &["--route", "10.77.0.0/25"]);
    drop(client);
}

/// The network of a link's address.
fn truncated(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(four) => std::net::Ipv4Addr::from_bits(four.to_bits() & !7).into(),
        IpAddr::V6(_) => address,
    }
}
