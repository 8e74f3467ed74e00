//! One sender of layers, a switch that forwards groups only to members, and receivers behind links of 0.3, 1 and 3
//! Mbit/s (with IPv6 only the last), each in a network namespace of the test. Needs root, iproute2, and a kernel with
//! bridges.

use crate::process::Process;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const RECEIVERS: [(&str, &str); 3] = [("a", "300kbit"), ("b", "1mbit"), ("c", "3mbit")];

/// Namespaces and programs of this test; they end with it.
struct Networks {
    prefix: String,
    names: Vec<String>,
    children: Vec<Process>,
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.children.clear();
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

fn ip(line: &str) -> Result<(), String> {
    let done = |out: Output| match out.status.success() {
        true => Ok(()),
        false => Err(format!("ip {line}: {}", String::from_utf8_lossy(&out.stderr).trim())),
    };
    let out = Command::new("ip").args(line.split(' ')).output();
    out.map_err(|e| format!("ip: {e}")).and_then(done)
}

impl Networks {
    /// A sender and these receivers behind their links; `short` distinguishes the tests' networks.
    fn new(short: &str, receivers: &[(&str, &str)]) -> Result<Networks, String> {
        let prefix = format!("narrows-{short}{}", std::process::id());
        let mut all = Networks { prefix, names: Vec::new(), children: Vec::new() };
        let ends: Vec<&str> = std::iter::once("s").chain(receivers.iter().map(|r| r.0)).collect();
        for name in std::iter::once("switch").chain(ends.iter().copied()) {
            let name = format!("{}{name}", all.prefix);
            ip(&format!("netns add {name}"))?;
            all.names.push(name);
        }
        let p = all.prefix.clone();
        // The switch queries group members at once, and removes them a fifth of a second after they leave.
        ip(&format!(
            "-n {p}switch link add br0 type bridge mcast_snooping 1 mcast_querier 1 \
             mcast_startup_query_interval 50 mcast_query_response_interval 50 mcast_last_member_interval 20 \
             mcast_last_member_count 1"
        ))?;
        ip(&format!("-n {p}switch link set br0 up"))?;
        for (n, name) in ends.into_iter().enumerate() {
            let port = format!("to-{name}");
            ip(&format!("-n {p}switch link add {port} type veth peer name eth0 netns {p}{name}"))?;
            ip(&format!("-n {p}switch link set {port} master br0 up"))?;
            ip(&format!("-n {p}{name} addr add 10.78.0.{}/24 dev eth0", n + 1))?;
            ip(&format!("-n {p}{name} addr add fd00:78::{}/64 dev eth0 nodad", n + 1))?;
            ip(&format!("-n {p}{name} link set eth0 up"))?;
            ip(&format!("-n {p}{name} link set lo up"))?;
        }
        for (name, rate) in receivers {
            let queue = format!("tbf rate {rate} burst 3000 limit 30000");
            ip(&format!("netns exec {p}switch tc qdisc add dev to-{name} root {queue}"))?;
        }
        Ok(all)
    }

    /// The index of an end's interface.
    fn interface(&self, place: &str) -> String {
        let mut command = Command::new("ip");
        command.args(["-n", &format!("{}{place}", self.prefix), "-o", "link", "show", "eth0"]);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        said.split(':').next().unwrap().to_string()
    }

    /// A source of media in the sender's namespace.
    fn encode(&mut self) -> Result<(), String> {
        let mut source = Command::new("ip");
        source.args(["netns", "exec", &format!("{}s", self.prefix), "python3", "-c", SOURCE]);
        let child = source.spawn().map_err(|e| e.to_string())?;
        self.children.push(Process(child));
        Ok(())
    }

    /// Starts a narrows command in this namespace. Returns it and the lines of its error stream.
    fn start(&mut self, place: &str, args: &str) -> (usize, Receiver<String>) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}{place}", self.prefix)]);
        command.arg(env!("CARGO_BIN_EXE_narrows")).args(args.split(' '));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (say, hear) = channel();
        std::thread::spawn(move || lines.for_each(|line| drop(say.send(line))));
        self.children.push(Process(child));
        (self.children.len() - 1, hear)
    }

    /// Ends it as Ctrl-C does, and returns its output.
    fn end(&mut self, child: usize) -> String {
        let child = &mut self.children[child];
        drop(Command::new("kill").args(["-INT", &child.id().to_string()]).status());
        let mut text = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            text.push_str(&line);
        }
        assert!(child.wait().unwrap().success());
        text
    }
}

/// Layers of 200, 400 and 1400 kbit/s from within the sender's namespace, until it is killed.
const SOURCE: &str = r#"
import socket, time
sock, begun, owed, frame = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic(), [0, 0, 0], 0
while True:
    frame += 1
    for layer, (port, rate) in enumerate([(5000, 200e3), (5002, 400e3), (5004, 1400e3)]):
        owed[layer] += rate / 100 / 8 / 1000
        while owed[layer] >= 1:
            owed[layer] -= 1
            sock.sendto(b"\x80\x60\0\0" + frame.to_bytes(4, "big") + bytes(992), ("127.0.0.1", port))
    time.sleep(max(0, begun + frame / 100 - time.monotonic()))
"#;

fn until(lines: &Receiver<String>, part: &str) {
    while !lines.recv_timeout(Duration::from_secs(180)).expect(part).contains(part) {}
}

#[test]
fn each_receiver_joins_the_groups_that_its_link_carries() {
    let mut all = match Networks::new("mc", &RECEIVERS) {
        Ok(all) => all,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut ends = Vec::new();
    for (n, (name, _)) in RECEIVERS.into_iter().enumerate() {
        let at = n + 2;
        let args = format!(
            "media receive --multicast site --interface 10.78.0.{at} --to 5004,5006,5008 --json"
        );
        ends.push(all.start(name, &args));
    }
    let (sender, said) = all.start(
        "s",
        "media send --multicast site --interface 10.78.0.1 --max-total 2.5Mbit/s --layer 5000:200kbit/s \
         --layer 5002:400kbit/s --layer 5004:1400kbit/s --json",
    );
    assert!(said.recv().unwrap().contains("sending 3 layers"));
    if let Err(why) = all.encode() {
        return eprintln!("skipped: {why}");
    }
    until(&ends[2].1, "joined: 3 layers");
    until(&ends[1].1, "joined: 2 layers");
    std::thread::sleep(Duration::from_secs(10));
    let means: Vec<f64> = ends
        .iter()
        .map(|(child, _)| {
            let measures: Value = serde_json::from_str(&all.end(*child)).unwrap();
            let base = &measures["layers"][0];
            assert!(base["packets"].as_u64() > Some(100), "{measures}");
            measures["mean_layers"].as_f64().unwrap()
        })
        .collect();
    // A failed trial may have begun just before the end.
    assert!(means[0] < means[1] + 0.3 && means[0].max(means[1]) < means[2], "{means:?}");
    let sent: Value = serde_json::from_str(&all.end(sender)).unwrap();
    assert!(sent["packets"].as_u64() > Some(1000), "{sent}");
}

/// The same with IPv6, where groups are joined by the interface's index, and the switch forwards only joined groups.
#[test]
fn groups_of_ipv6_are_joined_as_the_link_permits() {
    let mut all = match Networks::new("m6", &RECEIVERS[2..]) {
        Ok(all) => all,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let group = "--multicast [ff15::4e57]:47480 --interface";
    let at = all.interface("c");
    let (end, heard) = all.start("c", &format!("media receive {group} {at} --to 5004,5006 --json"));
    let at = all.interface("s");
    let layers = "--max-total 1Mbit/s --layer 5000:200kbit/s --layer 5002:400kbit/s";
    let (sender, said) = all.start("s", &format!("media send {group} {at} {layers} --json"));
    assert!(said.recv().unwrap().contains("sending 2 layers"));
    if let Err(why) = all.encode() {
        return eprintln!("skipped: {why}");
    }
    until(&heard, "joined: 2 layers");
    std::thread::sleep(Duration::from_secs(2));
    let measures: Value = serde_json::from_str(&all.end(end)).unwrap();
    let packets_of = |layer: usize| measures["layers"][layer]["packets"].as_u64().unwrap();
    assert!(packets_of(0) > 20 && packets_of(1) > 20, "{measures}");
    all.end(sender);
}
