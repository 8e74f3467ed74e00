use narrows_base::{Duration, Rate, Spec, units};
use narrows_drive::endpoint::{connection, new_key};
use narrows_drive::{ConnectOptions, Endpoint, Options, Relay, block_on};
use narrows_flow::port::{Clients, ServerKey};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, LossSpec, QueueConfig};
use std::error::Error;
use std::time::Instant;
fn main() -> Result<(), Box<dyn Error>> {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let config = connection(Protocol::read(&Spec::parse(&a[0])?, Preset::Rfc, 1500)?);
    let rate = units::rate(&a[1])?;
    let delay = units::duration(&a[2])?;
    let queue: u64 = a[3].parse()?;
    let loss: f64 = a[4].parse()?;
    let secs: f64 = a[5].parse()?;
    let link = |loss: f64| {
        let mut l = LinkConfig::plain(rate, delay);
        l.queue = QueueConfig { limit: Limit::Bytes(queue), aqm: None };
        if loss > 0.0 {
            l.loss = LossSpec::parse_all(&loss.to_string()).unwrap();
        }
        l
    };
    let key = new_key()?;
    let public = *key.public();
    let address = "127.0.0.1:0".parse()?;
    let server = Endpoint::bind(address, Options::server(key, Clients::Any, config.clone()))?;
    let relay = Relay::bind(address, server.local_addr(), &link(loss), &link(0.0), 1)?;
    let client = Endpoint::bind(address, Options::client(new_key()?, config.clone()))?;
    let begin = Instant::now();
    let got = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        let server = &server;
        let got = &got;
        scope.spawn(move || {
            block_on(async {
                let connection = server.accept().await?;
                let mut stream = connection.accept_uni().await?;
                let mut buffer = vec![0; 256 << 10];
                while let n @ 1.. = stream.receive(&mut buffer).await? {
                    got.fetch_add(n as u64, std::sync::atomic::Ordering::Relaxed);
                }
                Ok::<(), narrows_drive::Error>(())
            })
        });
        let options = ConnectOptions::new(ServerKey::Is(public), config.clone());
        let connection = block_on(client.connect(relay.local_addr(), options)).unwrap();
        let connection: &narrows_drive::Connection = Box::leak(Box::new(connection));
        scope.spawn(move || {
            block_on(async {
                let mut stream = connection.open_uni().await?;
                let piece = vec![7; 256 << 10];
                loop {
                    stream.send_all(&piece).await?;
                }
                #[allow(unreachable_code)]
                Ok::<(), narrows_drive::Error>(())
            })
        });
        let mut last = 0;
        let step = secs / 40.0;
        for _ in 0..40 {
            std::thread::sleep(std::time::Duration::from_secs_f64(step));
            let s = connection.stats();
            let n = got.load(std::sync::atomic::Ordering::Relaxed);
            let mut w = String::new();
            connection.watch(&mut |k, v| w += &format!("{k}={v:.4} "));
            println!(
                "{:6.2} good {:8.0}k rate {:>10} win {:7.1} fl {:5} srtt {:6.1} min {:6.1} lost {} to {} dg {} | {w}",
                begin.elapsed().as_secs_f64(),
                (n - last) as f64 * 8e-3 / step,
                s.rate.map_or(String::new(), |r: Rate| r.to_string()),
                s.window,
                s.flight,
                s.srtt.as_secs_f64() * 1e3,
                s.min_rtt.as_secs_f64() * 1e3,
                s.counters.lost,
                s.counters.timeouts,
                s.datagram
            );
            last = n;
        }
        let total = begin.elapsed().as_secs_f64();
        let n = got.load(std::sync::atomic::Ordering::Relaxed);
        let r = relay.stats();
        println!(
            "share {:.3} offered/good {:.3} queue {:.2} ms late mean {:.3} p99 {:.3} max {:.1}ms dropped {} lost {}",
            n as f64 * 8.0 / total / rate.as_bps() as f64,
            r.there.offered_bytes as f64 / n as f64,
            r.there.mean_wait_s() * 1e3,
            r.lateness.mean_s * 1e3,
            r.lateness.p99_s * 1e3,
            r.lateness.max_s * 1e3,
            r.there.dropped,
            r.there.lost
        );
        let _ = Duration::ZERO;
        std::process::exit(0);
    })
}
