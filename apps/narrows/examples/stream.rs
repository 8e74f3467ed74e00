//! A request and its answer over a stream between two rrtp endpoints on loopback, under any controller: `cargo run -p
//! narrows --example stream -- rrtp+bbr`.

use narrows::net::endpoint::{connection, new_key};
use narrows::net::{ConnectOptions, Endpoint, Options, block_on};
use narrows::transport::Protocol;
use narrows::transport::endpoint::{Clients, ServerKey};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // `rrtp`, `tear-reliable` or `rrtp+NAME`, where NAME is any controller.
    let name = std::env::args().nth(1).unwrap_or("rrtp".into());
    let config = connection(name.parse::<Protocol>()?);
    let server_key = new_key()?;
    let local = "127.0.0.1:0".parse()?;
    let expected = ServerKey::Is(*server_key.public());
    let options = Options::server(server_key, Clients::Any, config.clone());
    let server = Endpoint::bind(local, options)?;
    let address = server.local_addr();

    let answering = std::thread::spawn(move || {
        block_on(async {
            let connection = server.accept().await?;
            let (mut send, mut receive) = connection.accept_bi().await?;
            let question = receive.receive_all(10 << 20).await?;
            send.send_all(format!("{} bytes came", question.len()).as_bytes()).await?;
            send.arrived().await
        })
    });

    let client = Endpoint::bind(local, Options::client(new_key()?, config.clone()))?;
    let answer = block_on(async {
        let connection = client.connect(address, ConnectOptions::new(expected, config)).await?;
        let (mut send, mut receive) = connection.open_bi().await?;
        send.send_all(&[7; 1_000_000]).await?;
        send.finish()?;
        receive.receive_all(1000).await
    })?;
    println!("{name}: {}", String::from_utf8(answer)?);
    answering.join().map_err(|_| "the server's thread panicked")??;
    Ok(())
}
