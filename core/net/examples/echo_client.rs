//! Sends a text to the echo server of `echo_server.rs`, and prints the answer. Arguments: address, key, text.

use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Endpoint, Options};
use narrows_transport::Protocol;
use narrows_transport::endpoint::ServerKey;
use std::error::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, key, text] = &arguments[..] else { return Err("ADDRESS KEY TEXT".into()) };
    let digits =
        key.as_bytes().chunks(2).map(|two| Ok(u8::from_str_radix(str::from_utf8(two)?, 16)?));
    let key = digits.collect::<Result<Vec<u8>, Box<dyn Error>>>()?;
    let key = <[u8; 32]>::try_from(key).map_err(|_| "a key has 64 digits")?;

    let config = connection(Protocol::rrtp());
    let options = Options::client(new_key()?, config.clone());
    let client = Endpoint::bind("0.0.0.0:0".parse()?, options)?;
    let options = ConnectOptions::new(ServerKey::Is(key), config);
    let connection = client.connect(address.parse()?, options).await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(text.as_bytes()).await?;
    send.shutdown().await?;
    let mut answer = String::new();
    receive.read_to_string(&mut answer).await?;
    println!("{answer}");
    client.close(256, "done");
    client.closed().await;
    Ok(())
}
