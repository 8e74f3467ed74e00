//! rrtp's side.

use crate::transport::{Connection, Endpoint, Error, Result};
use narrows_base::{Duration, Spec};
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{ConnectOptions, Driver, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use narrows_transport::Protocol;
use std::net::SocketAddr;

/// An endpoint: driven by a task of the runtime, as quinn's are, or by a thread of its own.
pub struct Rrtp<const IS_TASK: bool> {
    endpoint: narrows_net::Endpoint,
    server: Option<ServerKey>,
}

fn config() -> Result<ConnectionConfig> {
    Ok(connection(Protocol::rrtp()))
}

impl<const IS_TASK: bool> Rrtp<IS_TASK> {
    fn bind(options: Options, server: Option<ServerKey>) -> Result<Rrtp<IS_TASK>> {
        let driver = if IS_TASK { Driver::Tokio } else { Driver::Thread };
        let options = options.driven_by(driver);
        let endpoint = narrows_net::Endpoint::bind("127.0.0.1:0".parse()?, options)?;
        Ok(Rrtp { endpoint, server })
    }
}

impl<const IS_TASK: bool> Endpoint for Rrtp<IS_TASK> {
    type Connection = narrows_net::Connection;
    type Identity = [u8; 32];

    fn server() -> Result<(Self, SocketAddr, [u8; 32])> {
        let key = new_key()?;
        let public = *key.public();
        let mut options = Options::server(key, Clients::Any, config()?);
        // quinn's default has no bound; ours, 200 a second of an address, would be what is measured.
        options.limits.handshake_rate = 100_000;
        options.limits.handshake_rate_of_source = 100_000;
        let server = Self::bind(options, None)?;
        let address = server.endpoint.local_addr();
        Ok((server, address, public))
    }
    fn client(identity: [u8; 32]) -> Result<Self> {
        Self::bind(Options::client(new_key()?, config()?), Some(ServerKey::Is(identity)))
    }
    async fn connect(&self, to: SocketAddr) -> Result<narrows_net::Connection> {
        let key = self.server.ok_or("a server does not connect")?;
        Ok(self.endpoint.connect(to, ConnectOptions::new(key, config()?)).await?)
    }
    async fn accept(&self) -> Result<narrows_net::Connection> {
        Ok(self.endpoint.accept().await?)
    }
}

impl Connection for narrows_net::Connection {
    async fn request(&self, data: &[u8]) -> Result<usize> {
        let (mut send, mut receive) = self.open_bi().await?;
        send.send_last(data).await?;
        Ok(receive.receive_all(1 << 16).await?.len())
    }
    async fn answer_request(&self) -> Result<()> {
        let (mut send, mut receive) = self.accept_bi().await?;
        tokio::spawn(async move {
            let data = receive.receive_all(1 << 16).await?;
            Ok::<(), Error>(send.send_last(&data).await?)
        });
        Ok(())
    }
    async fn send(&self, data: &[u8], times: usize) -> Result<()> {
        let mut stream = self.open_uni().await?;
        for _ in 1..times {
            stream.send_all(data).await?;
        }
        Ok(stream.send_last(data).await?)
    }
    async fn read(&self) -> Result<usize> {
        let mut stream = self.accept_uni().await?;
        let mut all = 0;
        while let Some(chunk) = stream.receive_chunk(1 << 20).await? {
            all += chunk.len();
        }
        Ok(all)
    }
    fn send_message(&self, message: &[u8]) -> Result<()> {
        Ok(narrows_net::Connection::send_message(self, message, Duration::ZERO)?)
    }
    async fn message(&self) -> Result<usize> {
        Ok(self.receive_message().await?.len())
    }
    fn datagrams(&self) -> u64 {
        self.stats().datagrams_sent
    }
    async fn close(self) {
        narrows_net::Connection::close(&self, 0, "");
        self.closed().await;
    }
}
