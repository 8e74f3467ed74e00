//! Processor time of the user-space side per Gbit/s, over a pair of virtual Ethernet devices.

use super::LoadedController;
use crate::real::{alternate, spread};
use narrows_emulator::Namespace;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

const RUNS: usize = 5;
const SECONDS: Duration = Duration::from_secs(2);
/// As fast as this at most (SO_MAX_PACING_RATE), in bytes per second.
const RATE: u64 = 125_000_000;
const NEAR: &str = "198.18.255.1";
const FAR: &str = "198.18.255.2";

fn shell(line: &str) -> Result<(), String> {
    let out = Command::new("sh").args(["-c", line]).output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&out.stderr);
    if out.status.success() { Ok(()) } else { Err(format!("{line}: {}", said.trim())) }
}

/// Two namespaces with a pair of devices; whether the kernel's super-frames pass whole (GSO, GRO), or every packet of
/// 1,500 bytes by itself.
fn pair(whole: bool) -> Result<(Namespace, Namespace), String> {
    let text = |e: narrows_emulator::Error| e.to_string();
    let (a, b) = (Namespace::create("a").map_err(text)?, Namespace::create("b").map_err(text)?);
    // A thread in the other namespace, while its device is made.
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let b = &b;
        scope.spawn(move || {
            b.enter(move || {
                let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
                let _ = tell.send(link.file_name().map(|n| n.to_string_lossy().into_owned()));
                let _ = ended.recv();
            })
        });
        let thread = told.recv().ok().flatten().ok_or("no thread")?;
        let line = format!("ip link add nwa type veth peer name nwb netns {thread}");
        let made = a.enter(|| shell(&line)).map_err(text);
        drop(end);
        made?
    })?;
    let on = if whole { "on" } else { "off" };
    let features = format!("tso {on} gso {on} gro {on}");
    let up = |device: &str, address: &str| {
        shell(&format!(
            "ip addr add {address}/24 dev {device} && ip link set {device} up && ethtool -K {device} {features}"
        ))
    };
    a.enter(|| up("nwa", NEAR)).map_err(text)??;
    b.enter(|| up("nwb", FAR)).map_err(text)??;
    Ok((a, b))
}

/// Gbit/s, and the part of a core that the user-space side took for each.
fn once(loaded: &LoadedController, (a, b): &(Namespace, Namespace)) -> Result<(f64, f64), String> {
    let text = |e: std::io::Error| e.to_string();
    let within = |e: narrows_emulator::Error| e.to_string();
    let listener = b.enter(|| TcpListener::bind((FAR, 0))).map_err(within)?.map_err(text)?;
    let to = listener.local_addr().map_err(text)?;
    let mut near = a.enter(|| TcpStream::connect(to)).map_err(within)?.map_err(text)?;
    let (mut far, _) = listener.accept().map_err(text)?;
    rustix::net::sockopt::set_tcp_congestion(&near, &loaded.name).map_err(|e| e.to_string())?;
    let pacing = near.try_clone().map_err(text)?;
    narrows_kernel::set_max_pacing_rate(&OwnedFd::from(pacing), RATE).map_err(text)?;
    near.set_write_timeout(Some(Duration::from_millis(200))).map_err(text)?;
    let reader = std::thread::spawn(move || {
        let (mut all, mut buffer) = (0, vec![0; 1 << 20]);
        while let Ok(n @ 1..) = far.read(&mut buffer) {
            all += n;
        }
        all
    });
    let before = loaded.agent.status().statistics.cpu_s();
    let begun = Instant::now();
    let data = vec![0x6e; 1 << 18];
    while begun.elapsed() < SECONDS {
        let _ = near.write(&data);
    }
    let _ = near.shutdown(std::net::Shutdown::Both);
    drop(near);
    let bytes = reader.join().map_err(|_| "the reader panicked")?;
    let seconds = begun.elapsed().as_secs_f64();
    let gbit = bytes as f64 * 8e-9;
    let cpu = loaded.agent.status().statistics.cpu_s() - before;
    Ok((gbit / seconds, cpu / gbit))
}

/// With and without super-frames.
pub fn section() -> Result<String, String> {
    let mut text = format!(
        "| frames | controller | Gbit/s | part of a core per Gbit/s (median of {RUNS}, least to most) |\n|---|---|---|---|\n"
    );
    for (whole, what) in [(true, "super-frames (GSO, GRO)"), (false, "1,500 bytes each")] {
        let ends = pair(whole)?;
        let controllers = ["rrtp", "cubic"];
        let loaded =
            [LoadedController::load(controllers[0])?, LoadedController::load(controllers[1])?];
        let runs = alternate(RUNS, &loaded, |loaded| once(loaded, &ends))?;
        for (controller, runs) in controllers.iter().zip(runs) {
            let gbit = spread(runs.iter().map(|r| r.0)).0;
            let (cpu, least, most) = spread(runs.iter().map(|r| r.1 * 100.0));
            let _ = writeln!(
                text,
                "| {what} | {controller} | {gbit:.2} | {cpu:.1}% ({least:.1} to {most:.1}) |"
            );
        }
    }
    Ok(format!(
        "Processor time of the user-space side's thread, one connection over a pair of virtual Ethernet devices, at \
         most {} Gbit/s (`SO_MAX_PACING_RATE`), {} s each:\n\n{text}",
        RATE as f64 * 8e-9,
        SECONDS.as_secs()
    ))
}
