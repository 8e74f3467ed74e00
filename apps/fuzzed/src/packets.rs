//! Any datagram, for decoders of packets and parameters, a handshake and an open connection: no panic, and no forged
//! packet is accepted.

use narrows_wire::cookie::Cookie;
use narrows_wire::noise::early::EarlyMessage;
use narrows_wire::{
    ClientHandshake, ConnectionId, EarlyHandshake, EarlyRequest, Established, Frames, Hello,
    Params, ParsedPacket, ServerHandshake, StaticKey, Suite, Token,
};
use std::cell::RefCell;

struct Ends {
    waiting_client: ClientHandshake,
    waiting_server: ServerHandshake,
    waiting_early: EarlyHandshake,
    open: Established,
}

fn hello() -> Hello {
    Hello { connection: ConnectionId(1), params: Params::default() }
}

fn ends() -> Ends {
    let key = StaticKey::new([1; 32]).expect("a key");
    let cookie = Cookie([0; 36]);
    let client = |seed| {
        ClientHandshake::new(Suite::Aes256Gcm, [0; 16], &cookie, &key, seed).expect("a START")
    };
    let server = |start: &[u8]| match ParsedPacket::read(start) {
        Ok(ParsedPacket::Start(start)) => {
            ServerHandshake::new(&start, &key, [4; 32], &hello()).expect("a START-ECHO")
        }
        other => panic!("no START: {other:?}"),
    };
    let mut first = client([3; 32]);
    let answer = server(first.start());
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(answer.start_echo()) else {
        panic!("no echo")
    };
    let (open, _) = first.on_start_echo(&echo, &hello(), |_| true).expect("an authentic answer");
    let waiting_client = client([5; 32]);
    let waiting_server = server(waiting_client.start());
    // The values in the seeds, from a key to itself.
    let token = Token([0xc0; 36]);
    let message = early_message();
    let waiting_early = EarlyHandshake::new(
        Suite::Aes256Gcm,
        [0; 16],
        &token,
        &key,
        key.public(),
        [6; 32],
        &message,
    )
    .expect("an EARLY-START");
    Ends { waiting_client, waiting_server, waiting_early, open }
}

/// An early message with data.
fn early_message() -> EarlyMessage {
    let age = narrows_base::Duration::ZERO;
    let frames = vec![0xe0, 3, b'G', b'E', b'T'];
    EarlyMessage { age, hello: hello(), frames }
}

thread_local! {
    static ENDS: RefCell<Ends> = RefCell::new(ends());
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let _ = Hello::read(bytes);
    ENDS.with_borrow_mut(|ends| {
        match ParsedPacket::read(bytes) {
            Ok(ParsedPacket::Start(start)) => {
                let key = StaticKey::new([1; 32]).expect("a key");
                let _ = ServerHandshake::new(&start, &key, [4; 32], &hello());
            }
            Ok(ParsedPacket::StartEcho(echo)) => {
                assert!(ends.waiting_client.on_start_echo(&echo, &hello(), |_| true).is_err());
            }
            Ok(ParsedPacket::EarlyStart(start)) => {
                let key = StaticKey::new([1; 32]).expect("a key");
                if let Ok(request) = EarlyRequest::read(&start, &key, [4; 32]) {
                    assert_eq!(
                        bytes,
                        ends.waiting_early.start(),
                        "only what was made is authentic"
                    );
                    assert!(Frames::bare(&request.message.frames).all(|frame| frame.is_ok()));
                    assert!(request.accept(&hello()).is_ok());
                }
            }
            Ok(ParsedPacket::EarlyEcho(echo)) => {
                assert!(ends.waiting_early.on_early_echo(&echo).is_err());
            }
            Ok(ParsedPacket::Finish(finish)) => {
                assert!(ends.waiting_server.on_finish(&finish).is_err())
            }
            Ok(ParsedPacket::Version { spoken, .. }) => assert!(spoken.iter().count() <= 8),
            _ => {}
        }
        assert!(ends.open.opener.open(&mut bytes.to_vec()).is_err());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No fuzzer can create an authentic one: only this seed tests the code behind the decryption.
    #[test]
    fn a_seed_is_an_authentic_early_start() {
        let made = ENDS.with_borrow(|ends| ends.waiting_early.start().to_vec());
        let hex: String = made.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(crate::mutation::seeds("packets").contains(&made), "a seed is missing: {hex}");
    }
}
