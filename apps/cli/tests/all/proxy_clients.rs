//! Installed clients of both proxies of a tunnel: Python, git, ssh. If a client is missing, its test is skipped with a
//! message. `apps/tunnel` tests curl and hyper.

use crate::process::Process;
use crate::tunnel::{Running, serve, start};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Both proxies of a near side. The fields with `_` keep processes and folders alive.
struct Proxies {
    socks: String,
    http: String,
    _ends: [Running; 3],
    _homes: [TempDir; 2],
}

/// Starts proxies with access to these ports of this machine.
fn proxies(ports: &[u16]) -> Proxies {
    let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let allow: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let allow: Vec<_> = allow.iter().flat_map(|target| ["--allow", target]).collect();
    let (server, url) = serve(homes[0].path(), homes[1].path(), &allow);
    let near = |flag| start(homes[1].path(), &["tunnel", "connect", &url, flag, "0"], "leads to");
    let socks = near("--socks");
    let http = near("--http-proxy");
    let at = |end: &Running| end.last.split(' ').next().unwrap().to_string();
    Proxies { socks: at(&socks), http: at(&http), _ends: [server, socks, http], _homes: homes }
}

/// Whether one of these programs does not start; prints it as the reason for a skipped test.
fn is_missing(programs: &[(&str, &str)]) -> bool {
    for (program, flag) in programs {
        let run = Command::new(program).arg(flag).stdin(Stdio::null()).output();
        if run.is_err() {
            eprintln!("skipped: there is no {program} here");
            return true;
        }
    }
    false
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// An HTTP request; the names of fields are in lower case.
struct HttpRequest {
    line: Vec<String>,
    fields: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// The next request of a connection; `None` at the end of the connection.
fn next_request(from: &mut BufReader<TcpStream>) -> Option<HttpRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            line => lines.push(line.to_string()),
        }
    }
    let field = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_string()))
    };
    let fields: BTreeMap<_, _> = lines.iter().skip(1).filter_map(field).collect();
    let length = fields.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    let line = lines.first()?.split(' ').map(String::from).collect();
    Some(HttpRequest { line, fields, body })
}

/// An HTTP server on loopback; `answer` returns fields and body.
fn http_server(answer: impl Fn(&HttpRequest) -> (String, Vec<u8>) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut from = BufReader::new(tcp.try_clone().unwrap());
                while let Some(request) = next_request(&mut from) {
                    let (fields, body) = answer(&request);
                    let length = body.len();
                    let head =
                        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n");
                    let sent = tcp.write_all(&[head.as_bytes(), &body].concat());
                    if sent.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// A server that replies with its name, and the target and cookie of the request.
fn named_server(name: &'static str) -> u16 {
    http_server(move |request| {
        let cookie = request.fields.get("cookie").map_or("", String::as_str);
        (String::new(), format!("{name} {} {cookie}", request.line[1]).into_bytes())
    })
}

/// urllib and `http.client` send requests through a proxy: two servers in turn on one connection, and CONNECT. Each
/// request reaches the server in its URL.
#[test]
fn pythons_requests_reach_the_servers_that_they_name() {
    if is_missing(&[("python3", "--version")]) {
        return;
    }
    let ports = [named_server("one"), named_server("two")];
    let proxies = proxies(&ports);
    let script = "
import http.client, sys, urllib.request
proxy, one, two = sys.argv[1], 'http://127.0.0.1:' + sys.argv[2], 'http://127.0.0.1:' + sys.argv[3]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({'http': 'http://' + proxy}))
print(opener.open(one + '/urllib', timeout=60).read().decode())
kept = http.client.HTTPConnection(proxy, timeout=60)
for n, url in enumerate((one, two, one)):
    kept.request('GET', url + '/kept', headers={'Cookie': str(n)})
    print(kept.getresponse().read().decode())
host, port = proxy.split(':')
through = http.client.HTTPConnection(host, int(port), timeout=60)
through.set_tunnel('127.0.0.1', int(sys.argv[3]))
through.request('GET', '/connect')
print(through.getresponse().read().decode())
";
    let [one, two] = ports.map(|port| port.to_string());
    let mut python = Command::new("python3");
    let output = succeeds(python.args(["-c", script, &proxies.http, &one, &two]));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(lines, ["one /urllib", "one /kept 0", "two /kept 1", "one /kept 2", "two /connect"]);
}

fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    git.args(["-c", "user.name=n", "-c", "user.email=n@example.org"]);
    git
}

/// `git http-backend` behind an HTTP server.
fn git_server(root: &Path) -> u16 {
    let root = root.to_path_buf();
    http_server(move |request| {
        let (path, query) = request.line[1].split_once('?').unwrap_or((&request.line[1], ""));
        let field = |name| request.fields.get(name).map_or("", String::as_str);
        let mut cgi = git(&root)
            .arg("http-backend")
            .envs([("GIT_HTTP_EXPORT_ALL", "1"), ("REMOTE_USER", "n"), ("PATH_INFO", path)])
            .envs([("QUERY_STRING", query), ("REQUEST_METHOD", &request.line[0])])
            .envs([("CONTENT_TYPE", field("content-type"))])
            .envs([("HTTP_CONTENT_ENCODING", field("content-encoding"))])
            .envs([("GIT_PROTOCOL", field("git-protocol"))])
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("GIT_PROJECT_ROOT", &root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // git reads the whole request before its reply exceeds the buffer of a pipe.
        cgi.stdin.take().unwrap().write_all(&request.body).unwrap();
        let output = cgi.wait_with_output().unwrap().stdout;
        let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let fields = String::from_utf8(output[..end + 2].to_vec()).unwrap();
        assert!(!fields.contains("Status:"), "{fields}");
        (fields, output[end + 4..].to_vec())
    })
}

/// git clones a repository and pushes a commit through each proxy.
#[test]
fn git_clones_and_pushes() {
    if is_missing(&[("git", "--version")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeeds(git(folder).args(["init", "--quiet", "first"]));
    let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    std::fs::write(folder.join("first/file"), &text).unwrap();
    succeeds(git(&folder.join("first")).args(["add", "file"]));
    succeeds(git(&folder.join("first")).args(["commit", "--quiet", "-m", "first"]));
    succeeds(git(folder).args(["clone", "--quiet", "--bare", "first", "all.git"]));
    succeeds(git(&folder.join("all.git")).args(["config", "http.receivepack", "true"]));
    let port = git_server(folder);
    let proxies = proxies(&[port]);
    let url = format!("http://127.0.0.1:{port}/all.git");
    for (name, scheme, at) in
        [("by-http", "http", &proxies.http), ("by-socks", "socks5h", &proxies.socks)]
    {
        let proxy = format!("http.proxy={scheme}://{at}");
        succeeds(git(folder).args(["-c", &proxy, "clone", "--quiet", &url, name]));
        let copy = folder.join(name);
        assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), text);
        succeeds(git(&copy).args(["commit", "--quiet", "--allow-empty", "-m", name]));
        succeeds(git(&copy).args(["-c", &proxy, "push", "--quiet", "origin", "HEAD"]));
        let log = succeeds(git(&folder.join("all.git")).args(["log", "-1", "--format=%s"]));
        assert_eq!(String::from_utf8(log.stdout).unwrap().trim(), name);
    }
}

/// An sshd that accepts the key `folder/client` of this user, and its port; `None` if no sshd starts.
fn sshd(folder: &Path) -> Option<(Process, u16)> {
    let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"];
    let program = program.into_iter().find(|path| Path::new(path).exists())?;
    for key in ["host", "client"] {
        let mut keygen = Command::new("ssh-keygen");
        succeeds(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key)));
    }
    // As root, sshd requires this folder.
    let _ = std::fs::create_dir("/run/sshd");
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let config = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {at}/host\nAuthorizedKeysFile {at}/client.pub\n\
         StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n",
        at = folder.display()
    );
    std::fs::write(folder.join("config"), config).unwrap();
    let mut command = Command::new(program);
    let child = command.args(["-D", "-e", "-f"]).arg(folder.join("config")).stderr(log).spawn();
    let mut sshd = Process(child.ok()?);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if sshd.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::yield_now();
    }
    Some((sshd, port))
}

/// A server that sends an ssh banner, reads the client's banner, answers by a packet of an invalid length and closes. The
/// packet ends ssh: netcat does not end when its server closes.
fn ssh_stub() -> (std::sync::mpsc::Receiver<String>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, banners) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let mut banner = String::new();
            let _ = tcp.write_all(b"SSH-2.0-stub\r\n");
            let _ = BufReader::new(&tcp).read_line(&mut banner);
            let _ = tcp.write_all(&[0xff; 64]);
            let _ = tell.send(banner);
        }
    });
    (banners, port)
}

/// ssh opens a session through each proxy, with netcat as its proxy command. Without sshd the server is a stub.
#[test]
fn ssh_connects_by_a_proxy_command() {
    if is_missing(&[("ssh", "-V"), ("nc", "-h")]) {
        return;
    }
    let help = Command::new("nc").arg("-h").output().unwrap();
    if !String::from_utf8_lossy(&help.stderr).contains("-X proto") {
        return eprintln!("skipped: this netcat speaks to no proxy");
    }
    let folder = tempfile::tempdir().unwrap();
    let real = sshd(folder.path());
    if real.is_none() {
        eprintln!("there is no sshd that starts: ssh speaks to a stub");
    }
    let stub = ssh_stub();
    let proxies = proxies(&[real.as_ref().map_or(stub.1, |real| real.1)]);
    for (kind, at) in [("connect", &proxies.http), ("5", &proxies.socks)] {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"])
            .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"])
            .arg("-o")
            .arg(format!("ProxyCommand=nc -X {kind} -x {at} %h %p"))
            .arg("-i")
            .arg(folder.path().join("client"));
        match &real {
            Some((_, port)) => {
                ssh.args(["-p", &port.to_string(), "127.0.0.1", "echo $((6 * 7))"]);
                let output = succeeds(&mut ssh);
                assert_eq!(String::from_utf8(output.stdout).unwrap(), "42\n");
            }
            None => {
                ssh.args(["-p", &stub.1.to_string(), "127.0.0.1", "true"]);
                assert!(!ssh.stdin(Stdio::null()).output().unwrap().status.success());
                assert!(stub.0.recv().unwrap().starts_with("SSH-2.0-"));
            }
        }
    }
}
