//! An echo server on a tokio runtime: `cargo run -p narrows-net --example echo_server` prints the client's command.

use narrows_net::endpoint::{connection, new_key};
use narrows_net::{Endpoint, Options};
use narrows_transport::Protocol;
use narrows_transport::endpoint::Clients;
use std::error::Error;
use tokio::io::AsyncWriteExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).unwrap_or("127.0.0.1:0".into()).parse()?;
    let identity = new_key()?;
    let key: String = identity.public().iter().map(|byte| format!("{byte:02x}")).collect();
    let config = connection(Protocol::rrtp());
    // Bound within the runtime, so a task of it drives the socket.
    let server = Endpoint::bind(listen, Options::server(identity, Clients::Any, config))?;
    let at = server.local_addr();
    println!("cargo run -p narrows-net --example echo_client -- {at} {key} hello");
    loop {
        let connection = server.accept().await?;
        tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    tokio::io::copy(&mut receive, &mut send).await?;
                    send.shutdown().await
                });
            }
        });
    }
}
