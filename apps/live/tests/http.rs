//! The page over a real socket: responses to browsers, and refusals of unknown peers.

use narrows_base::Duration;
use narrows_link::LinkChange;
use narrows_live::controls::{ChangingLink, Controls, LinkControls};
use narrows_live::feed::{
    EventMark, Feed, FeedEvent, RunDescription, RunPhase, TrackKind, TrackSpec,
};
use narrows_live::media::sending::{SendingLive, SendingStatistics};
use narrows_live::{LivePage, MetricsListener};
use narrows_net::Clock;
use narrows_scenario::BottleneckLink;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Noted(Mutex<Vec<String>>);

impl ChangingLink for Noted {
    fn now(&self) -> Duration {
        Duration::from_secs(1)
    }
    fn change(&self, _: Duration, direction: usize, change: LinkChange) {
        self.0.lock().unwrap().push(format!("{direction} {change:?}"));
    }
}

fn about() -> RunDescription {
    RunDescription { name: "relay".into(), detail: "a <b>link</b>".into(), real: true, end_s: None }
}

/// A page with a run of one flow, and a link that can be changed.
fn page() -> (LivePage, Arc<Noted>, String, String) {
    let feed = Feed::new("narrows relay --test");
    let run = feed.begin(about()).unwrap();
    let cwnd = narrows_live::feed::TrackColumn {
        name: "cwnd",
        unit: "packets",
        meaning: "window".into(),
        merge: narrows_live::feed::history::Merge::Mean,
    };
    run.track(TrackKind::Flow, "main.0", vec![cwnd]).unwrap();
    for n in 1..100 {
        run.update(n * 10_000, |u| u.row(0, &[n as f32]));
    }
    let media = SendingLive::new(run.clone(), Clock::new());
    for dropped_by_rate in [0, 3, 3] {
        let connected = true;
        let told_bps = 2e6;
        let waiting_s = 0.04;
        media.show(&SendingStatistics {
            connected,
            told_bps,
            waiting_s,
            dropped_by_rate,
            ..SendingStatistics::default()
        });
    }
    let title = "cwnd 40.0 → 28.0 packets".into();
    let why = vec!["The queue dropped it.".into()];
    run.update(1_000_000, |u| {
        u.event(FeedEvent { time_us: 500_000, track: 0, mark: EventMark::Slower, title, why })
    });
    run.end(RunPhase::Done);
    let link = BottleneckLink::parse("20Mbit/s,25ms", Path::new("")).unwrap().folded().unwrap();
    let noted = Arc::new(Noted::default());
    let controls: Arc<dyn Controls> =
        Arc::new(LinkControls::new(noted.clone(), run, [link.forward, link.reverse]));
    let live = LivePage::open("127.0.0.1:0".parse().unwrap(), feed, Some(controls)).unwrap();
    let url = live.url();
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let address = address.to_string();
    let token = token.to_string();
    (live, noted, address, token)
}

/// The response to these bytes, until the connection ends or `enough` of it arrived.
fn raw(address: &str, request: &str, enough: impl Fn(&str) -> bool) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    let mut part = [0; 4096];
    loop {
        let n = stream.read(&mut part).unwrap_or(0);
        all.extend_from_slice(&part[..n]);
        let text = String::from_utf8_lossy(&all);
        if n == 0 || enough(&text) {
            return text.into_owned();
        }
    }
}

fn ask(address: &str, method: &str, target: &str, headers: &str, body: &str) -> String {
    let length = if method == "POST" {
        format!("Content-Length: {}\r\n", body.len())
    } else {
        String::new()
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{length}{headers}\r\n{body}"
    );
    raw(address, &head, |_| false)
}

/// The page is one response whose policy permits no other loads and no framing.
#[test]
fn page_is_one_answer_without_further_requests() {
    let (_live, _, address, token) = page();
    let answer = ask(&address, "GET", &format!("/?token={token}"), "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    for needed in
        ["default-src 'none'", "frame-ancestors 'none'", "no-store", "no-referrer", "nosniff"]
    {
        assert!(head.contains(needed), "{needed}: {head}");
    }
    assert!(!body.contains("src=\"") && !body.contains("https://") && !body.contains("@import"));
    assert!(!body.contains("{{") && body.contains("</html>"), "all places are filled");
    assert!(!body.contains(&token), "whoever saves the page does not save the key to it");
    let again = ask(&address, "GET", &format!("/?token={token}"), "", "");
    let nonce = |text: &str| text.split("nonce-").nth(1).unwrap()[..32].to_string();
    assert_ne!(nonce(&answer), nonce(&again));
}

/// Metrics need no token, so that a page of another site must not reach them under its own name.
#[test]
fn metrics_for_another_host_are_refused() {
    let own = vec!["metrics.example.org".to_string()];
    let bound = MetricsListener::bind("127.0.0.1:0".parse().unwrap(), own).unwrap();
    let address = bound.address().to_string();
    bound.serve(Vec::new()).unwrap();
    let status = |version: &str, hosts: &[&str]| {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let answer = raw(&address, &format!("GET /metrics {version}\r\n{hosts}\r\n"), |_| false);
        answer.split(' ').nth(1).unwrap_or_default().to_string()
    };
    for good in [&address[..], "localhost:1", "[::1]", "192.0.2.1:9147", "Metrics.Example.org:9147"]
    {
        assert_eq!(status("HTTP/1.1", &[good]), "200", "{good}");
    }
    for bad in
        ["example.org", "metrics.example.org.evil:9147", "localhost.evil", "127.0.0.1.evil", ""]
    {
        assert_eq!(status("HTTP/1.1", &[bad]), "403", "{bad}");
    }
    assert_eq!(status("HTTP/1.0", &[]), "200");
    assert_eq!(status("HTTP/1.1", &[]), "403");
    assert_eq!(status("HTTP/1.1", &[&address, "example.org"]), "403");
}

/// A stream of updates has the run, its rows and events, and the link's settings.
#[test]
fn updates_come_as_events() {
    let (_live, _, address, token) = page();
    let target = format!("/events?token={token}&packets=0");
    let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let text = raw(&address, &head, |t| t.contains("event:links") && t.contains("\"changes\":"));
    for part in [
        "text/event-stream",
        "\"phase\":\"done\"",
        "main.0",
        "The queue dropped it.",
        "\"rate\":20000000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Wrong token, wrong host, another site, wrong method, too long: one line each, and no change.
#[test]
fn forbidden_requests_get_one_line_and_change_no_setting() {
    let (_live, noted, address, token) = page();
    let order = r#"{"direction":0,"set":"rate","value":"1Mbit/s"}"#;
    let own = format!("x-narrows-token: {token}\r\n");
    let long = format!(r#"{{"direction":0,"set":"rate","value":"{}"}}"#, "1".repeat(2000));
    for (method, target, headers, body, status) in [
        ("GET", "/", "", "", "403"),
        ("GET", "/events?token=0", "", "", "403"),
        ("POST", "/link", "", order, "403"),
        ("POST", "/link", "x-narrows-token: 00\r\n", order, "403"),
        ("POST", "/link", &format!("{own}Origin: http://example.org\r\n"), order, "403"),
        ("DELETE", &format!("/link?token={token}"), "", "", "405"),
        ("GET", &format!("/favicon.ico?token={token}"), "", "", "404"),
        ("POST", "/link", &own, "{}", "400"),
        ("POST", "/link", &own, &long, "400"),
        ("POST", "/link", &own, r#"{"direction":0,"set":"rate","value":"fast"}"#, "400"),
    ] {
        let answer = ask(&address, method, target, headers, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {target}: {answer}");
        let line = answer.split("\r\n\r\n").nth(1).unwrap();
        assert!(line.starts_with("narrows: ") && line.trim_end().lines().count() == 1, "{line}");
    }
    let other =
        format!("GET /?token={token} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    assert!(raw(&address, &other, |_| false).starts_with("HTTP/1.1 403"));
    assert!(noted.0.lock().unwrap().is_empty());
    let answer =
        ask(&address, "POST", "/link", &format!("{own}Origin: http://{address}\r\n"), order);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(noted.0.lock().unwrap().len(), 1);
    let scenario = ask(&address, "GET", &format!("/scenario.toml?token={token}"), "", "");
    assert!(
        scenario.contains("rate = \"1Mbit/s\"") && scenario.contains("attachment"),
        "{scenario}"
    );
}

/// Endless headers, bytes that are not HTTP, silent connections: the page is served to others meanwhile.
#[test]
fn non_http_client_does_not_delay_the_rest() {
    let (_live, _, address, token) = page();
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let endless = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}", "X: y\r\n".repeat(20_000));
    for nonsense in ["\0\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", &endless] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let _ = stream.write_all(nonsense.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.contains("200 OK"), "{nonsense:.20}");
    }
    assert!(ask(&address, "GET", &format!("/?token={token}"), "", "").starts_with("HTTP/1.1 200"));
    drop(silent);
}

/// More silent connections than places, and some with refused requests: the next request is answered while the last of
/// them are open, so it waited for no deadline.
#[test]
fn silent_connections_delay_no_request() {
    let (_live, _, address, token) = page();
    let silent: Vec<_> = (0..300)
        .map(|n| {
            let mut stream = TcpStream::connect(&address).unwrap();
            if n % 3 == 0 {
                write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n").unwrap();
            }
            stream
        })
        .collect();
    let answer = ask(&address, "GET", &format!("/?token={token}"), "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let is_open = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.read(&mut [0]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open = || silent.iter().filter(|stream| is_open(stream)).count();
    // A program that another test starts inherits connections until it is executed, so they end a moment later.
    let begun = std::time::Instant::now();
    while open() > 63 && begun.elapsed() < std::time::Duration::from_secs(60) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(open(), 63, "of 300");
    // A refusal ends its connection, though another request follows at once.
    let bad = "GET /?token=0 HTTP/1.1";
    let good = format!("GET /?token={token} HTTP/1.1");
    let two = format!("{bad}\r\nHost: {address}\r\n\r\n{good}\r\nHost: {address}\r\n\r\n");
    let answers = raw(&address, &two, |_| false);
    assert!(answers.starts_with("HTTP/1.1 403") && !answers.contains("200 OK"), "{answers}");
}

/// A port in use is an error, and a page that is dropped frees its port.
#[test]
fn a_port_in_use_is_an_error() {
    let (live, _, address, _) = page();
    let at: std::net::SocketAddr = address.parse().unwrap();
    assert!(LivePage::open(at, Feed::new("second"), None).is_err());
    drop(live);
    // A program that another test starts inherits the listener, until it is executed.
    let is_free = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        TcpStream::connect(at).is_err()
    });
    assert!(is_free);
}

/// The page's DOM in a browser that had `seconds` before the command ended.
fn shown(chromium: &str, live: LivePage, seconds: u64) -> String {
    let profile = tempfile::tempdir().unwrap();
    let browser = Command::new(chromium)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"])
        .args(["--dump-dom", &format!("--user-data-dir={}", profile.path().display())])
        .arg(live.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    // The browser's clock stops while it waits for a response, and the stream of updates is one until here.
    drop(live);
    String::from_utf8_lossy(&browser.wait_with_output().unwrap().stdout).into_owned()
}

fn chromium() -> Option<&'static str> {
    let found = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(found);
    if chromium.is_none() {
        eprintln!("skipped: there is no Chromium to try the page with");
    }
    chromium
}

/// In a browser the page draws its data: its scripts run under its own policy, the event list is there, and names from
/// peers are shown as text.
#[test]
fn a_browser_shows_the_run() {
    let Some(chromium) = chromium() else { return };
    // A browser on a busy machine needs longer: if it had too little time, it gets more.
    let parts = [
        "cwnd 40.0 → 28.0 packets",
        "done · 1.0 s",
        "a &lt;b&gt;link&lt;/b&gt;",
        "20 Mbit/s",
        // A chart's text alternative.
        "aria-label=\"cwnd, packets: ",
        // For media: the wait, the drops, and their reason.
        "aria-label=\"Wait of packets before they leave, ms: ",
        "3 packets dropped before their deadline",
    ];
    let mut missing = Vec::new();
    for seconds in [3, 10, 40, 120] {
        let page = shown(chromium, page().0, seconds);
        missing = parts.into_iter().filter(|part| !page.contains(part)).collect();
        if missing.is_empty() {
            return;
        }
    }
    panic!("the page lacks {missing:?}");
}

/// Two real connections and their simulations.
fn page_with_simulation() -> LivePage {
    let feed = Feed::new("narrows speed --test");
    let run = feed.begin(about()).unwrap();
    for (name, simulated) in
        [("connection.1", false), ("connection.2", false), ("beside.1", true), ("beside.2", true)]
    {
        let cwnd = narrows_live::feed::TrackColumn {
            name: "cwnd",
            unit: "packets",
            meaning: "window".into(),
            merge: narrows_live::feed::history::Merge::Mean,
        };
        let spec = TrackSpec { simulated, ..TrackSpec::new(TrackKind::Flow, name, vec![cwnd]) };
        run.add(spec).unwrap();
    }
    for n in 1..100 {
        run.update(n * 10_000, |u| (0..4).for_each(|t| u.row(t, &[10.0 + t as f32])));
    }
    run.end(RunPhase::Done);
    LivePage::open("127.0.0.1:0".parse().unwrap(), feed, None).unwrap()
}

/// A connection's simulation is drawn over it: in the same chart and colour, with short dashes.
#[test]
fn browser_overlays_simulations_on_their_originals() {
    let Some(chromium) = chromium() else { return };
    // A flow's line in the legend button: colour and dashes.
    let line = |page: &str, name: &str| -> Option<(String, String)> {
        let (before, _) = page.split_once(&format!("{name}</button>"))?;
        let button = before.rsplit("<button").next()?;
        let value = |name: &str| {
            let (_, rest) = button.split_once(&format!("{name}=\""))?;
            rest.split('"').next().map(String::from)
        };
        Some((value("stroke")?, value("stroke-dasharray").unwrap_or_default()))
    };
    let mut seen = String::new();
    for seconds in [3, 10, 40, 120] {
        seen = shown(chromium, page_with_simulation(), seconds);
        if !seen.contains("beside.2 13") {
            continue;
        }
        let all = "cwnd, packets: connection.1 10, connection.2 11, beside.1 12, beside.2 13";
        assert!(seen.contains(all), "not all are in one chart");
        let of = |name| line(&seen, name).unwrap();
        let real = of("connection.1");
        let other = of("connection.2");
        let beside = of("beside.1");
        let beside_other = of("beside.2");
        assert!(real.0 == beside.0 && other.0 == beside_other.0 && real.0 != other.0, "colours");
        assert_eq!((beside.1.as_str(), beside_other.1.as_str()), ("3 3", "3 3"));
        assert_ne!(real.1, "3 3");
        return;
    }
    panic!("the simulations are not drawn: {}", &seen[..seen.len().min(500)]);
}

/// Twelve pages that never read, during an hour of updates: the next one is refused, the run waits for none, each uses
/// only its place, and a place that becomes free can be used again.
#[test]
fn pages_that_do_not_read_cost_their_places() {
    let feed = Feed::new("test");
    let run = feed.begin(about()).unwrap();
    let column = narrows_live::feed::TrackColumn {
        name: "cwnd",
        unit: "packets",
        meaning: String::new(),
        merge: narrows_live::feed::history::Merge::Mean,
    };
    run.track(TrackKind::Flow, "main.0", vec![column]).unwrap();
    let live = LivePage::open("127.0.0.1:0".parse().unwrap(), feed, None).unwrap();
    let url = live.url();
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let target = format!("/events?token={token}");
    let mut silent: Vec<TcpStream> = (0..12)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
            // Its header was read, so that it has its place.
            let mut part = [0; 16];
            stream.read_exact(&mut part).unwrap();
            assert!(part.starts_with(b"HTTP/1.1 200"));
            stream
        })
        .collect();
    for n in 1..216_000_i64 {
        run.update(n * 16_667, |u| u.row(0, &[n as f32]));
    }
    let answer = ask(address, "GET", &target, "", "");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("too many pages are open"), "{answer}");
    drop(silent.pop());
    // When the server has noticed, the newest request is served.
    let next = std::iter::repeat_with(|| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        raw(address, &head, |t| t.starts_with("HTTP/1.1 503") || t.contains("215999"))
    });
    assert!(next.take(600).any(|t| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        t.contains("215999")
    }));
}
