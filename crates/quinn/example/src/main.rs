//! A quinn server that sends for some seconds under a controller of Narrows, and a client that says what arrived.
//!
//! ```sh
//! narrows relay --listen 127.0.0.1:5000 --to 127.0.0.1:5001 20Mbit/s,25ms,loss=1% &
//! cargo run --release -- rrtp 15 127.0.0.1:5001 127.0.0.1:5000
//! ```
//!
//! Controller (`quinn-cubic` and `quinn-bbr` are quinn's own), seconds, the server's address, and the address to
//! which the client connects: the relay's, or the server's.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn controller(name: &str) -> Result<Arc<dyn ControllerFactory + Send + Sync>, Error> {
    Ok(match name {
        "quinn-cubic" => Arc::new(CubicConfig::default()),
        "quinn-bbr" => Arc::new(BbrConfig::default()),
        name => Arc::new(narrows_quinn::Controllers::new(name)?),
    })
}

fn server(
    name: &str,
    address: SocketAddr,
) -> Result<(quinn::Endpoint, CertificateDer<'static>), Error> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let mut transport = quinn::TransportConfig::default();
    transport.send_window(32 << 20).congestion_controller_factory(controller(name)?);
    config.transport_config(Arc::new(transport));
    Ok((quinn::Endpoint::server(config, address)?, certificate))
}

fn client(certificate: CertificateDer<'static>) -> Result<quinn::Endpoint, Error> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window((16u32 << 20).into()).receive_window((32u32 << 20).into());
    config.transport_config(Arc::new(transport));
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Sends until the time is over, and says what it cost.
async fn send(endpoint: quinn::Endpoint, time: Duration) -> Result<quinn::ConnectionStats, Error> {
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.open_uni().await?;
    let (block, until) = (vec![0; 64 << 10], Instant::now() + time);
    let mut srtt = Vec::new();
    while Instant::now() < until {
        let writing = stream.write_all(&block);
        tokio::time::timeout_at(until.into(), writing).await.unwrap_or(Ok(()))?;
        srtt.push(connection.stats().path.rtt);
    }
    let mut stats = connection.stats();
    stats.path.rtt = srtt.iter().sum::<Duration>() / srtt.len().max(1) as u32;
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(stats)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "rrtp".into());
    let seconds: f64 = words.next().unwrap_or_else(|| "5".into()).parse()?;
    let address: SocketAddr = words.next().unwrap_or_else(|| "127.0.0.1:0".into()).parse()?;
    let (server, certificate) = server(&name, address)?;
    let own = server.local_addr()?;
    let to = words.next().map_or(Ok(own), |to| to.parse())?;
    let sending = tokio::spawn(send(server, Duration::from_secs_f64(seconds)));
    let connection = client(certificate)?.connect(to, "localhost")?.await?;
    let (mut stream, began, mut bytes) = (connection.accept_uni().await?, Instant::now(), 0);
    while let Ok(Some(chunk)) = stream.read_chunk(1 << 20, true).await {
        bytes += chunk.bytes.len();
    }
    let rate = bytes as f64 * 8e-6 / began.elapsed().as_secs_f64();
    let path = sending.await??.path;
    println!(
        "{name}: {rate:.1} Mbit/s, smoothed RTT {:.0} ms on average, {} of {} packets lost",
        path.rtt.as_secs_f64() * 1e3,
        path.lost_packets,
        path.sent_packets
    );
    Ok(())
}
