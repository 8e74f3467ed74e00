//! Programs that speak SOCKS or HTTP to the near side.

use crate::both_ends::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_connects_by_name_and_says_why_not() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let port = target.port().to_be_bytes();
    let by_name = [b"\x05\x01\x00\x03\x09localhost", &port[..]].concat();
    let not_allowed = [&[5, 1, 0, 1, 127, 0, 0, 1, 0, 1][..]].concat();
    for (request, code) in [(&by_name, 0), (&not_allowed, 2), (&vec![5, 2, 0], 7)] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        // The request does not wait for the answer to the greeting, nor the data for that to the request.
        tcp.write_all(&[&[5, 1, 0], &request[..], b"hello"].concat()).await.unwrap();
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer[..2], answer[3]), (&[5, 0][..], code));
        if code == 0 {
            let mut hello = [0; 5];
            tcp.read_exact(&mut hello).await.unwrap();
            assert_eq!(&hello, b"hello");
        }
    }
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(&[5, 1, 2]).await.unwrap();
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0xff], "a program that insists on a password");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_associates_a_program_and_nobody_beside_it() {
    let target = udp_target().await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut answer = [0; 12];
    tcp.read_exact(&mut answer).await.unwrap();
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    let (program, other) = (
        tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let head = [&[0, 0, 0, 1, 127, 0, 0, 1][..], &target.port().to_be_bytes()].concat();
    for text in ["one", "two"] {
        program.send_to(&[&head, text.as_bytes()].concat(), ("127.0.0.1", port)).await.unwrap();
        other.send_to(&[&head[..], b"three"].concat(), ("127.0.0.1", port)).await.unwrap();
        let mut bytes = [0; 100];
        let n = program.recv(&mut bytes).await.unwrap();
        assert_eq!(bytes[..n], [&head[..], text.as_bytes(), text.as_bytes()].concat());
    }
    assert!(other.try_recv(&mut [0; 9]).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http_proxy_connects_and_passes_requests_on() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::http::run(tunnel, listener));
    for (sent, begins) in [
        (
            format!("CONNECT {target} HTTP/1.1\r\n\r\nhello"),
            "HTTP/1.1 200 Connection established\r\n\r\nhello",
        ),
        (
            format!("GET http://{target}/x HTTP/1.1\r\n\r\n"),
            "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n",
        ),
        ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 403 Forbidden\r\n"),
        ("GET / HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 400 Bad Request\r\n"),
    ] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        tcp.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = vec![0; begins.len()];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), begins);
    }
}
