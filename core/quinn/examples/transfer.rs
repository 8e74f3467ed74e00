//! A quinn client and server over an emulated link, once for each given congestion controller.
//!
//! ```sh
//! cargo run --release -p narrows-quinn --example transfer -- [--link LINK] [--seconds S] CONTROLLER...
//! ```
//!
//! `quinn-cubic` and `quinn-bbr` are quinn's own; every other name is one of Narrows', with its parameters. The link is
//! written as for `narrows speed --link`. The rate is counted where the server reads, from the moment at which the
//! client begins to connect; RTTs are quinn's smoothed ones, sampled every 50 ms.

use narrows_net::relay::Relay;
use narrows_quinn::Controllers;
use narrows_scenario::BottleneckLink;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of the largest packet, for queue limits in packets or bandwidth-delay products.
const PACKET: u32 = 1500;
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn factory(name: &str) -> Result<Arc<dyn ControllerFactory + Send + Sync>, Failure> {
    Ok(match name {
        "quinn-cubic" => Arc::new(CubicConfig::default()),
        "quinn-bbr" => Arc::new(BbrConfig::default()),
        name => Arc::new(Controllers::new(name)?),
    })
}

/// Configurations of both sides with a self-made certificate and the same controller.
fn configs(controller: &str) -> Result<(quinn::ServerConfig, quinn::ClientConfig), Failure> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(factory(controller)?);
    let transport = Arc::new(transport);
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    server.transport_config(transport.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);
    Ok((server, client))
}

/// Reads one stream of one connection and counts.
async fn serve(endpoint: quinn::Endpoint, counted: Arc<AtomicU64>) -> Result<(), Failure> {
    let connection = endpoint.accept().await.ok_or("the endpoint was closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    while let Some(chunk) = stream.read_chunk(1 << 20, true).await? {
        counted.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

#[derive(Default)]
struct Measured {
    mbit_s: f64,
    rtt_ms: f64,
    lost: u64,
    sent: u64,
}

/// Sends for the given time and samples the connection meanwhile.
async fn send(
    config: quinn::ClientConfig,
    to: SocketAddr,
    seconds: f64,
    counted: &AtomicU64,
) -> Result<Measured, Failure> {
    let mut endpoint = quinn::Endpoint::client(ANY)?;
    endpoint.set_default_client_config(config);
    let began = Instant::now();
    let connection = endpoint.connect(to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let sending = tokio::spawn(async move {
        let block = vec![0x5a_u8; 64 << 10];
        // Ends with an error when the connection is closed below.
        while stream.write_all(&block).await.is_ok() {}
    });
    let mut sum = 0.0;
    let mut samples = 0u32;
    while began.elapsed().as_secs_f64() < seconds {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        sum += connection.rtt().as_secs_f64() * 1e3;
        samples += 1;
    }
    let arrived = counted.load(Ordering::Relaxed) as f64;
    let measured = Measured {
        mbit_s: arrived * 8e-6 / began.elapsed().as_secs_f64(),
        rtt_ms: sum / f64::from(samples.max(1)),
        lost: connection.stats().path.lost_packets,
        sent: connection.stats().path.sent_packets,
    };
    connection.close(0u32.into(), b"");
    sending.await?;
    endpoint.wait_idle().await;
    Ok(measured)
}

fn transfer(controller: &str, link: &BottleneckLink, seconds: f64) -> Result<Measured, Failure> {
    let (server, client) = configs(controller)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let counted = Arc::new(AtomicU64::new(0));
    let _runtime = runtime.enter();
    let server = quinn::Endpoint::server(server, ANY)?;
    let address = server.local_addr()?;
    let serving = runtime.spawn(serve(server, counted.clone()));
    let rtt = link.forward.delay + link.reverse.delay;
    let forward = link.forward.config(rtt, PACKET, false);
    let reverse = link.reverse.config(rtt, PACKET, false);
    let relay = Relay::bind(ANY, address, &forward, &reverse, 1)?;
    let measured = runtime.block_on(send(client, relay.local_addr(), seconds, &counted))?;
    serving.abort();
    Ok(measured)
}

fn main() -> Result<(), Failure> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "another library has chosen a cryptography provider")?;
    let mut link = "20Mbit/s,25ms,loss=1%".to_string();
    let mut seconds = 15.0;
    let mut controllers: Vec<String> = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--link" => link = args.next().ok_or("--link needs a link")?,
            "--seconds" => seconds = args.next().ok_or("--seconds needs a number")?.parse()?,
            name => controllers.push(name.to_string()),
        }
    }
    if controllers.is_empty() {
        controllers = ["quinn-cubic", "quinn-bbr", "rrtp"].map(String::from).to_vec();
    }
    for name in &controllers {
        factory(name)?;
    }
    let parsed = BottleneckLink::parse(&link, Path::new("")).and_then(BottleneckLink::folded)?;
    println!("{link}, {seconds} s each");
    println!("{:<20}{:>9}{:>9}{:>8}{:>8}", "controller", "Mbit/s", "RTT ms", "lost", "sent");
    for name in &controllers {
        let m = transfer(name, &parsed, seconds)?;
        println!("{name:<20}{:>9.2}{:>9.1}{:>8}{:>8}", m.mbit_s, m.rtt_ms, m.lost, m.sent);
    }
    Ok(())
}
