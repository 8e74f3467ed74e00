//! quinn's side.

use crate::transport::{Connection, Endpoint, Error, Result};
use quinn::VarInt;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub struct Quinn(quinn::Endpoint);

/// Windows for a bulk transfer; everything else as quinn has it.
fn transport() -> Result<Arc<quinn::TransportConfig>> {
    let mut transport = quinn::TransportConfig::default();
    transport
        .stream_receive_window((16u32 << 20).into())
        .receive_window((32u32 << 20).into())
        .send_window(32 << 20)
        .max_idle_timeout(Some(Duration::from_secs(60).try_into()?));
    Ok(Arc::new(transport))
}

impl Endpoint for Quinn {
    type Connection = quinn::Connection;
    type Identity = CertificateDer<'static>;

    fn server() -> Result<(Quinn, SocketAddr, CertificateDer<'static>)> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let certificate = CertificateDer::from(made.cert);
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let chain = vec![certificate.clone()];
        let mut config = quinn::ServerConfig::with_single_cert(chain, key.into())?;
        config.transport_config(transport()?);
        let endpoint = quinn::Endpoint::server(config, "127.0.0.1:0".parse()?)?;
        let address = endpoint.local_addr()?;
        Ok((Quinn(endpoint), address, certificate))
    }
    fn client(identity: CertificateDer<'static>) -> Result<Quinn> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity)?;
        let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(transport()?);
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse()?)?;
        endpoint.set_default_client_config(config);
        Ok(Quinn(endpoint))
    }
    async fn connect(&self, to: SocketAddr) -> Result<quinn::Connection> {
        Ok(self.0.connect(to, "localhost")?.await?)
    }
    async fn accept(&self) -> Result<quinn::Connection> {
        Ok(self.0.accept().await.ok_or("closed")?.await?)
    }
}

impl Connection for quinn::Connection {
    async fn request(&self, data: &[u8]) -> Result<usize> {
        let (mut send, mut receive) = self.open_bi().await?;
        send.write_all(data).await?;
        send.finish()?;
        Ok(receive.read_to_end(1 << 16).await?.len())
    }
    async fn answer_request(&self) -> Result<()> {
        let (mut send, mut receive) = self.accept_bi().await?;
        tokio::spawn(async move {
            let data = receive.read_to_end(1 << 16).await?;
            send.write_all(&data).await?;
            send.finish()?;
            Ok::<(), Error>(())
        });
        Ok(())
    }
    async fn send(&self, data: &[u8], times: usize) -> Result<()> {
        let mut stream = self.open_uni().await?;
        for _ in 0..times {
            stream.write_all(data).await?;
        }
        Ok(stream.finish()?)
    }
    async fn read(&self) -> Result<usize> {
        let mut stream = self.accept_uni().await?;
        let mut all = 0;
        while let Some(chunk) = stream.read_chunk(1 << 20, true).await? {
            all += chunk.bytes.len();
        }
        Ok(all)
    }
    fn send_message(&self, message: &[u8]) -> Result<()> {
        Ok(self.send_datagram(message.to_vec().into())?)
    }
    async fn message(&self) -> Result<usize> {
        Ok(self.read_datagram().await?.len())
    }
    fn datagrams(&self) -> u64 {
        self.stats().udp_tx.datagrams
    }
    async fn close(self) {
        quinn::Connection::close(&self, VarInt::from_u32(0), b"");
        self.closed().await;
    }
}
