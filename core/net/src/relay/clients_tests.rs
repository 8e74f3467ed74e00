use super::*;

const PLACES: usize = 4;

/// Opens a client at each of these addresses, one a millisecond.
fn opened(addresses: &[&str]) -> RelayClients {
    let mut clients = RelayClients::new(PLACES, Duration::from_secs(300));
    for (at, address) in addresses.iter().enumerate() {
        open(&mut clients, at as u64, address);
    }
    clients
}

fn open(clients: &mut RelayClients, at_ms: u64, address: &str) {
    let to = SocketAddr::from(([127, 0, 0, 1], 9));
    let at = Time::from_nanos(at_ms * 1_000_000);
    assert!(clients.from(at, address.parse().unwrap(), to, 1).is_some(), "{address}");
}

/// B answers the client at this address.
fn answer(clients: &mut RelayClients, at_ms: u64, address: &str) {
    let number = clients.numbers[&address.parse().unwrap()];
    let at = Time::from_nanos(at_ms * 1_000_000);
    clients.list.get_mut(&number).unwrap().on_answer(at);
}

fn addresses(clients: &RelayClients) -> Vec<String> {
    clients.iter().map(|client| client.address.to_string()).collect()
}

#[test]
fn relay_full_replaces_oldest_unanswered_of_largest_network() {
    let mut clients = opened(&["192.0.2.9:1", "198.51.100.1:1", "198.51.100.1:2", "203.0.113.1:1"]);
    answer(&mut clients, 5, "203.0.113.1:1");
    open(&mut clients, 6, "203.0.113.7:1");
    let left = ["192.0.2.9:1", "198.51.100.1:2", "203.0.113.1:1", "203.0.113.7:1"];
    assert_eq!(addresses(&clients), left);
    assert_eq!(clients.replaced(), 1);
}

#[test]
fn relay_full_of_answered_clients_replaces_longest_idle() {
    let all = ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"];
    let mut clients = opened(&all);
    for (at, address) in all.iter().enumerate() {
        answer(&mut clients, 10 + at as u64, address);
    }
    open(&mut clients, 20, all[0]);
    open(&mut clients, 21, "192.0.2.5:1");
    assert_eq!(addresses(&clients), [all[0], all[2], all[3], "192.0.2.5:1"]);
}

/// Its answered clients do not protect a network that holds most places.
#[test]
fn relay_network_beyond_half_replaces_only_its_own() {
    let all = ["198.51.100.1:1", "198.51.100.1:2", "198.51.100.1:3", "192.0.2.9:1"];
    let mut clients = opened(&all);
    for address in &all[..3] {
        answer(&mut clients, 5, address);
    }
    for port in 4..40 {
        open(&mut clients, 5 + port, &format!("198.51.100.1:{port}"));
        answer(&mut clients, 5 + port, &format!("198.51.100.1:{port}"));
    }
    assert!(addresses(&clients).contains(&"192.0.2.9:1".into()), "{:?}", addresses(&clients));
    assert_eq!((clients.len(), clients.numbers.len()), (PLACES, PLACES));
}

#[test]
fn relay_client_idle_for_limit_is_removed() {
    let mut clients = opened(&["192.0.2.1:1", "192.0.2.2:1"]);
    answer(&mut clients, 1000, "192.0.2.2:1");
    clients.forget(Time::from_nanos(300_500 * 1_000_000));
    assert_eq!(addresses(&clients), ["192.0.2.2:1"]);
    assert_eq!(clients.replaced(), 0);
}
