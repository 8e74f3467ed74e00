//! Captures, qlog and observers of a network, compared with its counts and read by other programs.

use narrows_testnet::{Datagram, Ecn, Fate, LinkId, Network, NodeId, Place};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

struct Pair {
    network: Network,
    a: NodeId,
    b: NodeId,
    link: LinkId,
}

fn pair(link: &str) -> Pair {
    let mut network = Network::new(1);
    let a =
        network.add_host(&["10.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]).unwrap();
    let b =
        network.add_host(&["10.0.0.2".parse().unwrap(), "2001:db8::2".parse().unwrap()]).unwrap();
    let link = network.add_link(a, b, link).unwrap();
    Pair { network, a, b, link }
}

/// Sends datagrams of these sizes at once, and runs the network.
fn send(pair: &mut Pair, sizes: impl Iterator<Item = usize>) {
    let start = pair.network.start();
    for size in sizes {
        let datagram = Datagram::udp(at("10.0.0.1:1000"), at("10.0.0.2:443"), vec![7; size]);
        pair.network.send(start, pair.a, datagram.with_ecn(Ecn::Ect0));
    }
    while let Some(now) = pair.network.next_timeout() {
        pair.network.poll(now);
    }
}

/// A file of this test process.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("narrows-testnet-{}-{name}", std::process::id()))
}

/// A program's output; `None` after a message if it is not installed.
fn output(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(file).output() {
        Ok(out) => {
            assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
            Some(String::from_utf8_lossy(&out.stdout).into_owned())
        }
        Err(e) => {
            eprintln!("skipped: {program} could not be started: {e}");
            None
        }
    }
}

#[test]
fn observer_sees_each_datagram_end_once() {
    let mut pair = pair("8Mbit/s,10ms,loss=10%,corrupt=5%,queue=100p,mtu=1300B");
    let seen: Arc<Mutex<BTreeMap<&str, u64>>> = Arc::default();
    let counted = seen.clone();
    pair.network.observe(move |event| {
        *counted.lock().unwrap().entry(event.fate.name()).or_default() += 1;
    });
    send(&mut pair, (0..300).map(|n| if n % 10 == 0 { 1400 } else { n }));
    let seen = seen.lock().unwrap();
    let link = pair.network.link_counts(pair.link).unwrap()[0];
    let counts = pair.network.counts();
    let all = [
        ("sent", counts.sent),
        ("delivered", counts.delivered),
        ("dropped", link.dropped),
        ("too large", link.too_large),
        ("lost", link.lost),
        ("damaged", counts.damaged),
    ];
    assert!(all.iter().all(|(_, count)| *count > 0), "{all:?}");
    assert_eq!(*seen, BTreeMap::from(all));
    assert_eq!(counts.sent, all[1..].iter().map(|(_, count)| count).sum::<u64>());
}

#[test]
fn observer_sees_unroutable_datagrams_at_their_host() {
    let mut pair = pair("8Mbit/s,10ms");
    let host = pair.a;
    pair.network.observe(move |event| {
        assert!(matches!(event.fate, Fate::Sent | Fate::Unroutable));
        assert_eq!(event.place, Place::Node(host));
    });
    let start = pair.network.start();
    for (from, to) in [("10.0.0.1:1", "10.0.0.9:1"), ("10.0.0.9:1", "10.0.0.2:1")] {
        pair.network.send(start, pair.a, Datagram::udp(at(from), at(to), Vec::new()));
    }
    assert_eq!(pair.network.counts().unroutable, 2);
}

#[test]
fn capture_shows_times_and_marks_to_tcpdump_and_tshark() -> Outcome {
    let mut pair = pair("8Mbit/s,10ms,aqm=codel(ecn=on),queue=unlimited");
    let sent = path("sent.pcapng");
    let received = path("received.pcapng");
    let captures = [
        pair.network.capture(pair.a, File::create(&sent)?)?,
        pair.network.capture(pair.b, File::create(&received)?)?,
    ];
    let six = Datagram::udp(at("[2001:db8::1]:5"), at("[2001:db8::2]:6"), Vec::new());
    let start = pair.network.start();
    pair.network.send(start, pair.a, six.with_ecn(Ecn::Ect1));
    send(&mut pair, std::iter::repeat_n(972, 1000));
    for capture in captures {
        assert_eq!(capture.finish()?.written, 1001);
    }
    let marked = pair.network.link_counts(pair.link).unwrap()[0].marked;
    assert!(marked > 0);
    for (file, marked) in [(&sent, 0), (&received, marked)] {
        if let Some(lines) = output("tcpdump", &["-Z", "root", "-nr"], file) {
            assert_eq!(lines.lines().count(), 1001);
        }
        let fields =
            ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields"];
        let fields = [&fields[..], &["-e", "frame.time_epoch", "-e", "ip.dsfield.ecn"]].concat();
        let fields =
            [&fields[..], &["-e", "ipv6.tclass.ecn", "-e", "udp.checksum.status", "-r"]].concat();
        let Some(lines) = output("tshark", &fields, file) else { continue };
        let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.len(), 1001);
        assert!(rows.iter().all(|row| row[3] == "1"), "checksums of UDP");
        assert_eq!(rows[0][2], "1", "ECT(1) in IPv6");
        assert_eq!(rows.iter().filter(|row| row[1] == "3").count() as u64, marked);
        // The first datagram of IPv4 leaves after one of 48 bytes, and takes 1 ms.
        let first = if marked > 0 { "0.011048000" } else { "0.000000000" };
        assert_eq!(rows[1][0], first);
    }
    std::fs::remove_file(&sent)?;
    std::fs::remove_file(&received)?;
    Ok(())
}

#[test]
fn qlog_is_a_json_text_sequence_of_all_events() -> Outcome {
    let mut pair = pair("8Mbit/s,10ms,loss=10%,queue=20p");
    let file = path("network.sqlog");
    let qlog = pair.network.qlog(File::create(&file)?)?;
    send(&mut pair, 0..100);
    let counts = qlog.finish()?;
    let link = pair.network.link_counts(pair.link).unwrap()[0];
    assert_eq!(counts.written, 100 + link.delivered + link.dropped + link.lost);
    let check = "import sys, json, collections\n\
        head, *events = [json.loads(r) for r in open(sys.argv[1]).read().split('\\x1e')[1:]]\n\
        assert head['qlog_format'] == 'JSON-SEQ' and head['trace']['vantage_point']['type'] == 'network'\n\
        names = collections.Counter(e['name'] for e in events)\n\
        assert all(e['time'] >= 0 and 'ecn' in e['data'] for e in events)\n\
        print(*[names['transport:' + n] for n in ('datagrams_sent', 'datagrams_received', 'datagram_dropped')])";
    if let Some(names) = output("python3", &["-c", check], &file) {
        let lost = link.dropped + link.lost;
        assert_eq!(names.trim(), format!("100 {} {lost}", link.delivered));
    }
    std::fs::remove_file(&file)?;
    Ok(())
}

/// A disk that is full after some bytes.
struct SmallDisk(usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn network_continues_on_a_full_disk() -> Outcome {
    for space in [0, 50_000] {
        let mut pair = pair("8Mbit/s,10ms,queue=unlimited");
        let files =
            [pair.network.capture(pair.a, SmallDisk(space))?, pair.network.qlog(SmallDisk(space))?];
        send(&mut pair, std::iter::repeat_n(1000, 1000));
        assert_eq!(pair.network.counts().delivered, 1000);
        for file in files {
            assert_eq!(file.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
    }
    Ok(())
}

#[test]
fn payload_above_the_limit_of_udp_is_omitted() -> Outcome {
    let mut pair = pair("unlimited,10ms");
    let capture = pair.network.capture(pair.b, io::sink())?;
    send(&mut pair, [0, 65_507, 65_508, 100_000].into_iter());
    let counts = capture.finish()?;
    assert_eq!(counts.written, 2);
    assert_eq!(counts.omitted, 2);
    Ok(())
}

#[test]
fn finished_capture_ignores_later_datagrams() -> Outcome {
    let mut pair = pair("unlimited,10ms");
    let capture = pair.network.capture(pair.a, SmallDisk(1000))?;
    assert_eq!(capture.finish()?.written, 0);
    send(&mut pair, std::iter::repeat_n(1000, 100));
    assert_eq!(pair.network.counts().delivered, 100);
    Ok(())
}
