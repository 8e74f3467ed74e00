//! Unreliable messages between two rrtp endpoints on loopback, under any controller, also one for media: `cargo run -p
//! narrows --example messages -- tfrc`.

use narrows::base::Duration;
use narrows::net::endpoint::{connection, new_key};
use narrows::net::{ConnectOptions, Endpoint, Options, block_on};
use narrows::transport::Protocol;
use narrows::transport::endpoint::{Clients, ServerKey};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or("tfrc".into());
    let config = connection(name.parse::<Protocol>()?);
    let server_key = new_key()?;
    let local = "127.0.0.1:0".parse()?;
    let expected = ServerKey::Is(*server_key.public());
    let options = Options::server(server_key, Clients::Any, config.clone());
    let server = Endpoint::bind(local, options)?;
    let client = Endpoint::bind(local, Options::client(new_key()?, config.clone()))?;

    block_on(async {
        let to = server.local_addr();
        let there = client.connect(to, ConnectOptions::new(expected, config)).await?;
        let here = server.accept().await?;
        for n in 1..=3 {
            // The second argument is the time after which sending the message is pointless; zero is
            // none.
            there.send_message(format!("frame {n}").as_bytes(), Duration::ZERO)?;
            // On a real path a message may be lost.
            let frame = here.receive_message().await?;
            println!("{name}: {}", String::from_utf8_lossy(&frame));
        }
        Ok::<(), narrows::net::Error>(())
    })?;
    Ok(())
}
