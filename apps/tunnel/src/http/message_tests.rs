use super::*;
use proptest::prelude::*;

fn request(text: &str) -> HttpRequestHead {
    HttpRequestHead::read(text.as_bytes()).unwrap().unwrap().1
}

fn forwarded(text: &str) -> String {
    let mut request = request(text);
    request.forward().unwrap();
    String::from_utf8(request.bytes()).unwrap()
}

#[test]
fn hop_by_hop_fields_stay_and_host_is_the_targets() {
    let text = "GET http://u:p@example.org:81?a=b HTTP/1.1\r\nHost: other.example\r\nhost: third.example\r\n\
        Connection: keep-alive, x-Hop\r\nConnection: X-second,content-length\r\nX-Hop: 1\r\nX-Second: 1\r\n\
        X-End: 1\r\nContent-Length: 4\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
        Proxy-Authorization: Basic eDp5\r\nUpgrade: h2c\r\nAuthorization: for the server\r\n\r\n";
    assert_eq!(
        forwarded(text),
        "GET /?a=b HTTP/1.1\r\nHost: example.org:81\r\nX-End: 1\r\nContent-Length: 4\r\n\
         Authorization: for the server\r\nconnection: close\r\n\r\n"
    );
}

#[test]
fn upgrade_passes_where_the_connection_field_names_it() {
    let text = "GET ws://example.org HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    assert!(request(text).forward().unwrap());
    assert_eq!(
        forwarded(text),
        "GET / HTTP/1.1\r\nHost: example.org\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    );
}

#[test]
fn options_without_a_path_ask_for_the_server_itself() {
    let first = |uri: &str| {
        let text = forwarded(&format!("OPTIONS {uri} HTTP/1.1\r\nTE: trailers, deflate\r\n\r\n"));
        assert!(text.ends_with("connection: close, te\r\nte: trailers\r\n\r\n"), "{text}");
        text.split("\r\n").next().unwrap().to_string()
    };
    assert_eq!(first("http://example.org:80"), "OPTIONS * HTTP/1.1");
    assert_eq!(first("http://example.org/"), "OPTIONS / HTTP/1.1");
    assert_eq!(first("http://example.org?a"), "OPTIONS /?a HTTP/1.1");
}

#[test]
fn body_with_contradictory_framing_is_refused() {
    let body = |fields: &str| request(&format!("PUT / HTTP/1.1\r\n{fields}\r\n")).body();
    assert_eq!(body(""), Ok(BodyEnd::Length(0)));
    assert_eq!(body("Content-Length: 5\r\ncontent-length: 5\r\n"), Ok(BodyEnd::Length(5)));
    assert_eq!(body("Transfer-Encoding: chunked\r\n"), Ok(BodyEnd::ChunkSize));
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        assert_eq!(body(fields), Err(BadMessage), "{fields}");
    }
}

/// Lengths of a body and of its content, given in pieces of this size.
fn lengths(bytes: &[u8], piece: usize) -> Result<(usize, Vec<u8>), BadMessage> {
    let mut end = BodyEnd::ChunkSize;
    let mut content = Vec::new();
    let mut at = 0;
    let mut known = 0;
    while !end.is_reached() {
        match end.next(&bytes[at..known])? {
            Some(part) => {
                if part.is_content {
                    content.extend(&bytes[at..at + part.length]);
                }
                at += part.length;
            }
            None if known == bytes.len() => return Err(BadMessage),
            None => known = (known + piece).min(bytes.len()),
        }
    }
    Ok((at, content))
}

proptest! {
    /// A chunked body ends where it ends, in pieces of any size.
    #[test]
    fn chunked_body_is_read_in_any_pieces(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6), piece in 1usize..50) {
        let mut bytes = Vec::new();
        for chunk in &chunks {
            bytes.extend(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
            bytes.extend([&chunk[..], b"\r\n"].concat());
        }
        bytes.extend(b"0\r\nChecksum: 1\r\n\r\n");
        let length = bytes.len();
        bytes.extend(b"GET next");
        prop_assert_eq!(lengths(&bytes, piece), Ok((length, chunks.concat())));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..50) {
        let _ = lengths(&bytes, piece);
        let _ = HttpRequestHead::read(&bytes).map(|read| read.map(|(_, mut head)| head.forward()));
        let _ = AnswerHead::read(&bytes).map(|read| read.map(|(_, mut head)| head.body("GET")));
    }
}
