//! The receiver counts the frames of a stream that ffmpeg sends. Without ffmpeg the test is skipped with a message.

use crate::process::{Process, narrows};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit on each step, so that a failed test ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// Latency in seconds: longer than a busy machine keeps a packet waiting.
const LATENCY: u64 = 5;

/// One of the two ends; it ends with the test. Its output goes to files, so that waiting for a line has a time limit.
struct MediaEnd {
    child: Process,
    home: tempfile::TempDir,
}

impl MediaEnd {
    fn start(home: tempfile::TempDir, args: &[&str]) -> MediaEnd {
        let file = |name| std::fs::File::create(home.path().join(name)).unwrap();
        let mut command = narrows(home.path());
        let child = command.args(args).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        MediaEnd { child: Process(child), home }
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.home.path().join(file)).unwrap_or_default()
    }

    /// The first word with this beginning in the complete lines of a file.
    fn word(&mut self, file: &str, beginning: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text(file);
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            if let Some(word) = whole.split_whitespace().find(|word| word.starts_with(beginning)) {
                return word.into();
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "no {beginning}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(&self) {
        self.child.interrupt();
    }

    /// Waits until the process exits.
    fn ends(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it does not end: {}", self.text("err"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A clip of 60 frames at 25 frames/s with sound; `None` if ffmpeg fails.
fn clip(folder: &Path) -> Option<std::path::PathBuf> {
    let clip = folder.join("clip.ts");
    let made = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"])
        .args(["-f", "lavfi", "-i", "sine", "-t", "2.4", "-c:v", "mpeg2video", "-qscale:v", "2"])
        .args(["-c:a", "mp2", "-f", "mpegts"])
        .arg(&clip)
        .stdin(Stdio::null())
        .status();
    made.is_ok_and(|status| status.success()).then_some(clip)
}

/// Whether the sender reports a connection over HTTP.
fn is_connected(url: &str) -> bool {
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let mut tcp = TcpStream::connect(at).unwrap();
    write!(tcp, "GET / HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer.contains("\"connected\":true")
}

/// The receiver's counts of datagrams and frames while ffmpeg sends to these outputs. PORT in them is replaced by the
/// sender's port.
fn counts(clip: &Path, outputs: &[&str]) -> (u64, u64) {
    let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [far, near] = homes;
    let key = narrows(near.path()).arg("key").output().unwrap();
    std::fs::write(far.path().join("clients"), key.stdout).unwrap();
    let player = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = player.local_addr().unwrap().to_string();
    let args = ["media", "receive", "--listen", "127.0.0.1:0", "--clients", "clients", "--to", &to];
    let mut receiver = MediaEnd::start(far, &[&args[..], &["--once", "--json"]].concat());
    // With --json the standard output has only measurements.
    let url = receiver.word("err", "rrtp://");
    let latency = format!("{LATENCY}s");
    let args = ["media", "send", &url, "--from", "0", "--latency", &latency, "--rate-http", "0"];
    let mut sender = MediaEnd::start(near, &args);
    let from = sender.word("out", "127.0.0.1:");
    let rates = sender.word("out", "http://");
    let until = Instant::now() + PATIENCE;
    while !is_connected(&rates) {
        assert!(Instant::now() < until, "it does not connect: {}", sender.text("err"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let port = from.rsplit(':').next().unwrap();
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-loglevel", "error", "-nostdin", "-re", "-i"]).arg(clip);
    ffmpeg.args(outputs.iter().map(|part| part.replace("PORT", port))).stdout(Stdio::null());
    assert!(ffmpeg.status().unwrap().success());
    // Packets in flight are delivered first, within the latency.
    player.set_read_timeout(Some(Duration::from_secs(2 * LATENCY))).unwrap();
    // Children of other tests end meanwhile, and their signal interrupts a read with a timeout.
    let is_over = |e: std::io::Error| e.kind() != ErrorKind::Interrupted;
    while !player.recv(&mut [0; 2000]).is_err_and(is_over) {}
    sender.interrupt();
    receiver.ends();
    let text = receiver.text("out");
    let count = |name: &str| -> u64 {
        let (_, rest) = text.split_once(&format!("\"{name}\":")).unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    (count("datagrams"), count("frames"))
}

/// ffmpeg's default datagrams of 1,472 bytes end within packets of MPEG-TS. The last frame counts when the next one
/// begins, so it may be missing.
#[test]
fn the_frames_of_ffmpeg_are_counted_however_it_cuts_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(clip) = clip(folder.path()) else {
        return eprintln!("skipped: there is no ffmpeg that makes MPEG-TS");
    };
    let ts = |target| vec!["-c", "copy", "-f", "mpegts", target];
    let m2ts = ["-c", "copy", "-mpegts_m2ts_mode", "1", "-f", "mpegts", "udp://127.0.0.1:PORT"];
    let in_rtp = ["-c", "copy", "-f", "rtp_mpegts", "rtp://127.0.0.1:PORT"];
    let sound = ["-map", "0:a", "-c", "copy", "-f", "rtp", "rtp://127.0.0.1:PORT"];
    let video = ["-map", "0:v", "-c", "copy", "-f", "rtp", "rtp://127.0.0.1:PORT"];
    // ffmpeg sends in real time, so at once.
    let clip = &clip;
    std::thread::scope(|scope| {
        for outputs in [
            ts("udp://127.0.0.1:PORT?pkt_size=1316"),
            ts("udp://127.0.0.1:PORT"),
            m2ts.to_vec(),
            in_rtp.to_vec(),
            [sound, video].concat(),
        ] {
            scope.spawn(move || {
                let (datagrams, frames) = counts(clip, &outputs);
                assert!((59..=60).contains(&frames), "{frames} of 60 frames: {outputs:?}");
                assert!(datagrams > 10 * frames, "{datagrams} datagrams: {outputs:?}");
            });
        }
    });
}
