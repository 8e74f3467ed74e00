//! The keys of both ends, from a handshake between them.

use narrows_transport::streams::Side;
use narrows_wire::hostile::HostilePeer;
use narrows_wire::{
    ApplicationProtocols, ClientHandshake, ConnectionId, Cookie, Established, Hello, Params,
    ParsedPacket, ServerHandshake, StaticKey, Suite,
};

/// Application protocol of the client and the server.
pub fn application() -> ApplicationProtocols {
    ApplicationProtocols::new(["fuzzed"]).expect("a list")
}

/// Transport parameters of both ends.
pub fn permits() -> Params {
    Params {
        idle_timeout_ms: 30_000,
        max_datagram: 1472,
        max_data: 1 << 18,
        max_stream: 1 << 16,
        max_streams_both: 8,
        max_streams_one: 8,
        max_message: 1400,
        repair: 128,
        paths: 8,
        applications: application(),
        ..Params::default()
    }
}

/// Both ends after a handshake; the tested end has this side.
pub fn handshake(side: Side, hello: &Params, label: &str) -> (Established, HostilePeer) {
    let params = |is_tried| match is_tried {
        true => Params { controller: label.into(), ..hello.clone() },
        false => Params { controller: label.into(), ..permits() },
    };
    let is_client = side == Side::Client;
    let hello = |id, is_tried| Hello { connection: ConnectionId(id), params: params(is_tried) };
    let key = |n| StaticKey::new([n; 32]).expect("a key");
    let suite = Suite::ChaCha20Poly1305;
    let cookie = Cookie([0; 36]);
    let mut client =
        ClientHandshake::new(suite, [0; 16], &cookie, &key(1), [3; 32]).expect("a START");
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(client.start()) else {
        panic!("no START")
    };
    let server = ServerHandshake::new(&start, &key(2), [4; 32], &hello(2, !is_client));
    let mut server = server.expect("a START-ECHO");
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(server.start_echo()) else {
        panic!("no echo")
    };
    let (client, finish) =
        client.on_start_echo(&echo, &hello(1, is_client), |_| true).expect("an answer");
    let Ok(ParsedPacket::Finish(finish)) = ParsedPacket::read(&finish) else { panic!("no FINISH") };
    let server = server.on_finish(&finish).expect("a FINISH");
    let (tried, other) = if is_client { (client, server) } else { (server, client) };
    (tried, HostilePeer::new(other, !is_client))
}
