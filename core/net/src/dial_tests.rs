use super::*;
use crate::block::{block_on, sleep_until};
use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::net::TcpListener;

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// What an attempt does.
#[derive(Clone, Copy)]
enum Behaviour {
    Silent,
    Refuses,
    Forbids,
    Answers,
}

type Dialled = Result<DialledAddress<(), &'static str>, DialFailure<&'static str>>;

/// Dials addresses that behave so; returns the result and the order of the attempts.
fn dialled(behaviours: &[Behaviour]) -> (Dialled, Vec<u16>) {
    let ports = 0..behaviours.len() as u16;
    let all: Vec<SocketAddr> = ports.map(|n| ([192, 0, 2, 1], n).into()).collect();
    let begun = RefCell::new(Vec::new());
    let attempt = |address: SocketAddr| {
        begun.borrow_mut().push(address.port());
        let behaviour = behaviours[usize::from(address.port())];
        async move {
            match behaviour {
                Behaviour::Silent => pending().await,
                Behaviour::Refuses => Err("refused"),
                Behaviour::Forbids => Err("forbidden"),
                Behaviour::Answers => Ok(()),
            }
        }
    };
    let done = block_on(first(&all, attempt, |e| *e == "forbidden", sleep_until));
    (done, begun.into_inner())
}

#[test]
fn addresses_of_both_families_alternate() {
    let found = ["[::1]:1", "[::2]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1", "2.2.2.2:1"];
    let order = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"];
    assert_eq!(ordered(addresses(&found), None), addresses(&order));
    let order = ["2.2.2.2:1", "[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"];
    assert_eq!(ordered(addresses(&found), Some(addresses(&order)[0])), addresses(&order));
}

#[test]
fn preferred_address_of_another_name_is_ignored() {
    let found = addresses(&["1.1.1.1:1", "2.2.2.2:1"]);
    assert_eq!(ordered(found.clone(), Some("3.3.3.3:1".parse().unwrap())), found);
}

#[test]
fn list_of_addresses_is_bounded_and_has_both_families() {
    let many = (0..100).map(|n| SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], n)));
    let one = addresses(&["1.1.1.1:1"]);
    let order = ordered(many.chain(one.clone()), None);
    assert_eq!(order.len(), MAX_ADDRESSES);
    assert_eq!(order[1], one[0]);
}

#[test]
fn silent_address_does_not_delay_the_next_beyond_its_turn() {
    let (done, begun) = dialled(&[Behaviour::Silent, Behaviour::Silent, Behaviour::Answers]);
    let done = done.unwrap();
    assert_eq!((done.address.port(), begun), (2, vec![0, 1, 2]));
    assert_eq!(
        done.others(|e| e.to_string()),
        " (192.0.2.1:0: no connection so far, 192.0.2.1:1: no connection so far)"
    );
}

#[test]
fn first_answer_begins_no_further_attempt() {
    let (done, begun) = dialled(&[Behaviour::Refuses, Behaviour::Answers, Behaviour::Answers]);
    let done = done.unwrap();
    assert_eq!((done.address.port(), begun), (1, vec![0, 1]));
    assert_eq!(done.others(|e| e.to_string()), " (192.0.2.1:0: refused)");
}

#[test]
fn all_failures_are_listed_and_final_ones_end_the_attempts() {
    let (done, _) = dialled(&[Behaviour::Refuses, Behaviour::Refuses]);
    let DialFailure::All(failed) = done.unwrap_err() else { panic!("not final") };
    let line = listed(&failed, |e| e.to_string());
    assert_eq!(line, "192.0.2.1:0: refused, 192.0.2.1:1: refused");
    let (done, begun) = dialled(&[Behaviour::Silent, Behaviour::Forbids, Behaviour::Answers]);
    assert_eq!(done.unwrap_err(), DialFailure::Final("forbidden"));
    assert_eq!(begun, [0, 1]);
    assert_eq!(dialled(&[]).0.unwrap_err(), DialFailure::All(Vec::new()));
}

/// A listener whose queue is full: further connections to it stay unanswered.
#[cfg(target_os = "linux")]
fn full() -> (socket2::Socket, SocketAddr, socket2::Socket) {
    let of = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let listener = of();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let at = listener.local_addr().unwrap();
    let client = of();
    client.connect(&at).unwrap();
    (listener, at.as_socket().unwrap(), client)
}

#[test]
#[cfg(target_os = "linux")]
fn tcp_reaches_the_address_after_silent_and_refusing_ones() {
    let (_listener, silent, _client) = full();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let answers = listener.local_addr().unwrap();
    // Systems give this port to no socket that asks for any.
    let refuses = ([127, 0, 0, 1], 9).into();
    let second = Duration::from_secs(60);
    let done = tcp::connect(&[silent, refuses, answers], second, || false).unwrap();
    assert_eq!((done.address, done.value.peer_addr().unwrap()), (answers, answers));
    assert_eq!((done.failed[0].address, done.pending), (refuses, vec![silent]));
    let failure = tcp::connect(&[silent, refuses], Duration::from_millis(1), || false).unwrap_err();
    let DialFailure::All(failed) = failure else { panic!("not final") };
    let kinds: Vec<_> = failed.iter().map(|failed| failed.cause.kind()).collect();
    assert_eq!(kinds, [io::ErrorKind::TimedOut, io::ErrorKind::ConnectionRefused]);
    assert!(matches!(tcp::connect(&[silent], second, || true), Err(DialFailure::Final(_))));
}
