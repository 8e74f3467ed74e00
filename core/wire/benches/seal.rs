//! What sealing costs: `cargo bench -p narrows-wire`.

use divan::Bencher;
use narrows_wire::cookie::Cookie;
use narrows_wire::packet::ParsedPacket;
use narrows_wire::{
    ClientHandshake, ConnectionId, Established, Hello, Params, Sealer, ServerHandshake, StaticKey,
    Suite,
};

fn main() {
    divan::main();
}

fn ends(suite: Suite) -> (Established, Established) {
    let hello = Hello { connection: ConnectionId(1), params: Params::default() };
    let a = StaticKey::new([1; 32]).unwrap();
    let b = StaticKey::new([2; 32]).unwrap();
    let mut client = ClientHandshake::new(suite, [0; 16], &Cookie([0; 36]), &a, [3; 32]).unwrap();
    let start = client.start().to_vec();
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(&start) else { panic!("no START") };
    let mut server = ServerHandshake::new(&start, &b, [4; 32], &hello).unwrap();
    let echo = server.start_echo().to_vec();
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(&echo) else {
        panic!("no START-ECHO")
    };
    let (at_client, finish) = client.on_start_echo(&echo, &hello, |_| true).unwrap();
    let Ok(ParsedPacket::Finish(finish)) = ParsedPacket::read(&finish) else { panic!("no FINISH") };
    (at_client, server.on_finish(&finish).unwrap())
}

/// A payload of 1400 bytes, sealed and opened.
#[divan::bench(args = Suite::ALL)]
fn seal_and_open(bencher: Bencher, suite: Suite) {
    let (mut from, mut to) = ends(suite);
    let mut datagram = [0x55; 8 + 1400 + 16];
    let mut number = 0u64;
    bencher.bench_local(|| {
        let acked = number.checked_sub(1);
        from.sealer.acknowledged(acked.unwrap_or(0));
        assert_eq!(Sealer::header_len(number, acked), 8);
        from.sealer.seal(number, acked, &mut datagram).unwrap();
        number += 1;
        to.opener.open(&mut datagram).unwrap().number
    });
}

/// Both sides' work for one connection, cookie aside.
#[divan::bench]
fn handshake() {
    divan::black_box(ends(Suite::Aes256Gcm));
}
