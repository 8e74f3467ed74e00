//! Memory to memory with quinn: server and client in one process, directly or through a relay.
//!
//! The client sends; what counts is what the server read, from the moment when the client began to
//! connect. Prints one JSON object, with the processor time of both ends together.

use clap::{Parser, ValueEnum};
use quinn::congestion::{BbrConfig, CubicConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Clone, Copy, ValueEnum)]
enum Control {
    Cubic,
    Bbr,
}

/// Sends from memory to memory and says how fast it went.
#[derive(Parser)]
struct Args {
    /// Where the server listens.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where the client connects: a relay to the server; by default the server itself.
    #[arg(long)]
    connect: Option<SocketAddr>,
    /// How long to send, seconds, the handshake included.
    #[arg(long)]
    seconds: Option<f64>,
    /// How much to send, bytes, on each connection.
    #[arg(long, default_value_t = 1_000_000_000)]
    bytes: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Congestion control of the sender.
    #[arg(long, value_enum, default_value = "cubic")]
    control: Control,
}

fn processor_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn configs(control: Control) -> Result<(quinn::ServerConfig, quinn::ClientConfig)> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut transport = quinn::TransportConfig::default();
    transport
        .stream_receive_window((16u32 << 20).into())
        .receive_window((32u32 << 20).into())
        .send_window(32 << 20)
        .max_idle_timeout(Some(Duration::from_secs(60).try_into()?));
    match control {
        Control::Cubic => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Control::Bbr => {
            transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
    }
    let transport = Arc::new(transport);
    let mut server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    server.transport_config(transport.clone());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);
    Ok((server, client))
}

async fn serve(server: quinn::Endpoint, connections: usize, counted: Arc<AtomicU64>) -> Result<()> {
    let mut serving = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let incoming = server.accept().await.ok_or("closed")?;
        serving.spawn(receive(incoming, counted.clone()));
    }
    while let Some(done) = serving.join_next().await {
        done??;
    }
    Ok(())
}

async fn receive(incoming: quinn::Incoming, counted: Arc<AtomicU64>) -> Result<()> {
    let connection = incoming.await?;
    let mut stream = connection.accept_uni().await?;
    while let Some(chunk) = stream.read_chunk(1 << 20, true).await? {
        counted.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

async fn send_all(
    client: &quinn::Endpoint,
    to: SocketAddr,
    connections: usize,
    bytes: u64,
) -> Result<()> {
    let mut sending = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let client = client.clone();
        sending.spawn(async move { send(&client, to, bytes).await });
    }
    while let Some(done) = sending.join_next().await {
        done??;
    }
    Ok(())
}

async fn send(client: &quinn::Endpoint, to: SocketAddr, bytes: u64) -> Result<()> {
    let connection = client.connect(to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let block = vec![0x5au8; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let n = left.min(block.len() as u64) as usize;
        stream.write_all(&block[..n]).await?;
        left -= n as u64;
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

fn main() -> Result<()> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "two providers")?;
    let args = Args::parse();
    let (server_config, client_config) = configs(args.control)?;
    let counted = Arc::new(AtomicU64::new(0));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    // A thread and a runtime for either end, as two processes would have.
    let (tell, told) = std::sync::mpsc::channel();
    let counter = counted.clone();
    let serving = std::thread::spawn(move || -> Result<()> {
        runtime()?.block_on(async {
            let endpoint = quinn::Endpoint::server(server_config, args.listen)?;
            tell.send(endpoint.local_addr()?)?;
            serve(endpoint, args.connections, counter).await
        })
    });
    let server = told.recv()?;
    let began = Instant::now();
    let cpu = processor_seconds();
    let runtime = runtime()?;
    let sent = runtime.block_on(async {
        let any: SocketAddr =
            if server.is_ipv6() { "[::]:0".parse()? } else { "0.0.0.0:0".parse()? };
        let mut client = quinn::Endpoint::client(any)?;
        client.set_default_client_config(client_config);
        let to = args.connect.unwrap_or(server);
        match args.seconds {
            None => send_all(&client, to, args.connections, args.bytes).await,
            Some(s) => {
                let all = send_all(&client, to, args.connections, u64::MAX);
                match tokio::time::timeout(Duration::from_secs_f64(s), all).await {
                    Ok(done) => done,
                    Err(_) => Ok(()),
                }
            }
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let bytes = counted.load(Ordering::Relaxed);
    let cpu = processor_seconds() - cpu;
    if args.seconds.is_none() {
        // The last bytes may still wait to be read.
        let _ = serving.join();
    }
    let bytes = if args.seconds.is_none() { counted.load(Ordering::Relaxed) } else { bytes };
    let error = sent.err().map(|e| e.to_string());
    println!(
        "{{\"bytes\":{bytes},\"seconds\":{seconds:.6},\"bits_per_second\":{:.0},\
         \"cpu_seconds\":{cpu:.6},\"error\":{}}}",
        bytes as f64 * 8.0 / seconds,
        error.map_or("null".into(), |e| format!("{e:?}")),
    );
    std::process::exit(0);
}
