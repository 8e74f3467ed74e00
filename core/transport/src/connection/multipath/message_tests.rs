//! Messages over several paths, in virtual time.

use super::tests::{Bonded, link};
use crate::streams::Side;
use narrows_base::Duration;
use narrows_multipath::PathStatus;

/// A flow of messages from the server at a constant rate.
struct MessageFlow {
    bits_per_second: f64,
    /// Messages that the application gives to the connection at once; it keeps the others.
    max_waiting: usize,
    holds_back: bool,
}

const LENGTH: usize = 1000;

impl MessageFlow {
    /// Bits per second that arrive from 2 s to 6 s.
    fn run(&self, world: &mut Bonded) -> f64 {
        world.open_paths();
        let mut given = 0;
        let mut received = 0;
        world.run(6.0, |world| {
            let due = (world.seconds() * self.bits_per_second / 8.0) as usize / LENGTH;
            let now = world.now;
            let server = &mut world.server;
            while given < due && server.messages_waiting() < self.max_waiting {
                given += 1;
                server.send_message(now, &[7; LENGTH], Duration::ZERO).unwrap();
            }
            if self.holds_back {
                server.hold_back(((due - given) * LENGTH) as u64);
            }
            let is_counted = world.seconds() >= 2.0;
            while world.client.receive_message().is_some() {
                received += usize::from(is_counted);
            }
            false
        });
        (received * LENGTH * 8) as f64 / 4.0
    }
}

#[test]
fn messages_beyond_the_best_paths_rate_take_another() {
    let flow = MessageFlow { bits_per_second: 25e6, max_waiting: 900, holds_back: false };
    let rate = flow.run(&mut Bonded::new(&[link(20, 10), link(10, 30)], 1));
    assert!(rate > 24e6, "{rate}");
}

#[test]
fn messages_held_back_count_for_the_choice_of_path() {
    let rate = |holds_back| {
        let flow = MessageFlow { bits_per_second: 25e6, max_waiting: 8, holds_back };
        flow.run(&mut Bonded::new(&[link(20, 10), link(10, 30)], 1))
    };
    let with = rate(true);
    let without = rate(false);
    assert!(with > 24e6 && without < 20e6, "{with}, without {without}");
}

/// The nearer path has the smaller MTU.
#[test]
fn messages_are_short_enough_for_every_path() {
    let mut world = Bonded::new(&[link(20, 30), link(20, 5)], 1);
    world.links[1].mtu = 1300;
    world.open_paths();
    world.transfer(Side::Client, 1 << 20, 3.0);
    let mut received = 0;
    for n in 0..100 {
        let now = world.now;
        let message = vec![1; world.client.max_message_len()];
        assert!((1200..1300).contains(&message.len()));
        world.client.send_message(now, &message, Duration::ZERO).unwrap();
        world.run(3.0 + 0.02 * f64::from(n + 1), |_| false);
        while world.server.receive_message().is_some() {
            received += 1;
        }
    }
    assert_eq!(received, 100);
    assert!(world.client.path_stats()[1].bytes_sent > 100 * 1200);
}

#[test]
fn stats_describe_the_paths_in_use_together() {
    let mut world = Bonded::new(&[link(20, 10), link(10, 50)], 1);
    world.open_paths();
    world.transfer(Side::Server, 1 << 30, 4.0);
    let both = world.server.stats();
    let permitted = both.permitted.unwrap().as_bps();
    assert!((25_000_000..40_000_000).contains(&permitted), "{permitted}");
    assert!(both.srtt < Duration::from_millis(60), "{}", both.srtt);
    assert!(both.delay_difference > Duration::from_millis(20), "{}", both.delay_difference);

    let now = world.now;
    assert!(world.client.set_path_status(now, 0, PathStatus::Standby));
    world.run(5.0, |_| false);
    let one = world.server.stats();
    let permitted = one.permitted.unwrap().as_bps();
    assert!((8_000_000..15_000_000).contains(&permitted), "{permitted}");
    assert!(one.srtt >= Duration::from_millis(100), "{}", one.srtt);
    assert_eq!(one.delay_difference, Duration::ZERO);
}
