//! The file service over a real TCP connection on loopback: a server with arbitrary bytes in the handshake, or in the
//! stream after a valid handshake; and a client with an arbitrary server.

use crate::network::NEVER;
use narrows_files::Service;
use narrows_files::service::Permits;
use narrows_files::stream::Session;
use narrows_files::tcp::{TcpServer, TcpSession};
use narrows_peers::Identity;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};

fn identity(n: u8) -> Identity {
    Identity::new([n; 32]).expect("a key")
}

/// One server for all inputs.
fn server() -> SocketAddr {
    static SERVER: OnceLock<(SocketAddr, tempfile::TempDir)> = OnceLock::new();
    let start = || {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("f"), [7; 3000]).expect("a file");
        let service = Service::new(root.path(), Permits::default(), |_| ()).expect("a service");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = TcpServer::bind(any, identity(3), Arc::new(service)).expect("a server");
        let address = server.address().expect("an address");
        std::thread::spawn(move || server.run());
        (address, root)
    };
    SERVER.get_or_init(start).0
}

/// The first byte selects the case.
pub fn run(bytes: &[u8]) {
    let Some((how, said)) = bytes.split_first() else { return };
    match how % 3 {
        0 => {
            let mut tcp = TcpStream::connect(server()).expect("a connection");
            // The server may close the connection before it has read everything.
            let _ = tcp.write_all(said).and_then(|()| tcp.shutdown(Shutdown::Write));
            let _ = tcp.read_to_end(&mut Vec::new());
        }
        // Without a request there is no answer.
        1 if said.is_empty() => {}
        1 => {
            let at = server();
            let mut stream = session(at).open().expect("a true opening");
            let _ = stream.output.write_all(said).and_then(|()| stream.output.finish());
            // The stream has an authentic end for any request.
            stream.input.read_to_end(&mut Vec::new()).expect("an answer with an end");
        }
        _ => {
            let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
            let session = session(listener.local_addr().expect("an address"));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let Ok((mut tcp, _)) = listener.accept() else { return };
                    let _ = tcp.write_all(said).and_then(|()| tcp.shutdown(Shutdown::Write));
                    let _ = tcp.read_to_end(&mut Vec::new());
                });
                assert!(session.open().is_err(), "the listener has no key");
            });
        }
    }
}

fn session(to: SocketAddr) -> TcpSession {
    let accept = Box::new(|_: &[u8; 32]| Ok(()));
    TcpSession::new("127.0.0.1", to.port(), identity(4), None, accept, &NEVER).expect("an address")
}
