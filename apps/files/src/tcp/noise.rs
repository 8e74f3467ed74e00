//! Noise XX over TCP.
//!
//! ```text
//! client: | "NRWT" (4) | version (1) | suite (1) |            in the clear; the prologue
//! server: | "NRWT" (4) | version (1) |                        in the clear; 0 instead of ours: refused
//! then    | length (2) | Noise message | …                    both ways
//! ```
//!
//! Message 3 carries the congestion control that the client requests. The server's first transport message names the
//! one in use. All other transport messages contain the stream's bytes; an empty one is its end. After every 2^14
//! messages a direction changes its key by Noise's own Rekey (1 GiB: far below the ciphers' limits).

use crate::stream::{FileStream, Output};
use crate::tcp::socket::{OPENING, TcpSocket};
use crate::wire::{Fields, put_text};
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_wire::Suite;
use narrows_wire::noise::{self, PublicKey};
use snow::{Builder, HandshakeState, TransportState};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const MAGIC: [u8; 4] = *b"NRWT";
const VERSION: u8 = 1;
/// Most bytes of a Noise message, and of its payload.
const MESSAGE: usize = 65535;
const PLAIN: usize = MESSAGE - 16;
/// Bytes of a message that are allocated at first.
const FIRST_STEP: usize = 4096;
const REKEY: u64 = if cfg!(test) { 8 } else { 1 << 14 };
/// Most bytes of a handshake message: two keys, two tags, a name.
const MAX_HANDSHAKE: usize = 512;

fn library(_: snow::Error) -> Error {
    Error::new(ErrorKind::Local, "the cryptographic library refused its own message")
}
fn forged(_: snow::Error) -> Error {
    Error::new(ErrorKind::Cut, "the peer's opening is not authentic")
}
/// Also for the peer's keys, which the second and third message use.
fn unmade(e: snow::Error) -> Error {
    if e == snow::Error::Dh { Error::protocol("a key of low order") } else { library(e) }
}

fn builder<'k>(
    suite: Suite,
    identity: &'k Identity,
    prologue: &'k [u8],
) -> Result<Builder<'k>, Error> {
    let local = |e: String| Error::new(ErrorKind::Local, e);
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|e| local(format!("the system gives no randomness: {e}")))?;
    noise::builder(suite.noise(), prologue, identity.private(), &seed)
        .map_err(|e| local(e.to_string()))
}

fn send(socket: &mut TcpSocket, state: &mut HandshakeState, payload: &[u8]) -> Result<(), Error> {
    let mut buffer = [0; MAX_HANDSHAKE];
    let n = state.write_message(payload, &mut buffer).map_err(unmade)?;
    let mut bytes = (n as u16).to_be_bytes().to_vec();
    bytes.extend(buffer.iter().take(n));
    socket.write_all(&bytes).map_err(Error::stream)
}

fn receive(socket: &mut TcpSocket, state: &mut HandshakeState) -> Result<Vec<u8>, Error> {
    let mut head = [0; 2];
    socket.read_exact(&mut head).map_err(Error::stream)?;
    let length = usize::from(u16::from_be_bytes(head));
    if length > MAX_HANDSHAKE {
        return Err(Error::protocol("an opening too long"));
    }
    let mut message = vec![0; length];
    socket.read_exact(&mut message).map_err(Error::stream)?;
    let mut payload = vec![0; length];
    let n = state.read_message(&message, &mut payload).map_err(forged)?;
    payload.truncate(n);
    Ok(payload)
}

fn peer_key(state: &HandshakeState) -> Result<PublicKey, Error> {
    let key = state.get_remote_static().and_then(|k| k.try_into().ok());
    key.ok_or_else(|| Error::protocol("no key in the opening"))
}

/// Performs the client's handshake.
pub(super) fn client(
    mut socket: TcpSocket,
    identity: &Identity,
    congestion: Option<&str>,
    accept: &dyn Fn(&PublicKey) -> Result<(), Error>,
) -> Result<FileStream, Error> {
    socket.due(Some(Instant::now() + OPENING));
    let suite = narrows_peers::key::suite();
    let [a, b, c, d] = MAGIC;
    let clear = [a, b, c, d, VERSION, suite.code()];
    let mut state = builder(suite, identity, &clear)?.build_initiator().map_err(library)?;
    socket.write_all(&clear).map_err(Error::stream)?;
    send(&mut socket, &mut state, &[])?;
    let mut answer = [0; 5];
    socket.read_exact(&mut answer).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Error::new(
            ErrorKind::Unreachable,
            "the server hung up at once: it is no narrows server, or has too many clients",
        ),
        _ => Error::stream(e),
    })?;
    let [a, b, c, d, version] = answer;
    if [a, b, c, d] != MAGIC {
        let line = "the program at this address is no narrows server";
        return Err(Error::new(ErrorKind::Unreachable, line));
    }
    if version != VERSION {
        let line = format!(
            "the server speaks version {version} of narrows over TCP, this client {VERSION}: \
             update the older one"
        );
        return Err(Error::new(ErrorKind::Version, line));
    }
    receive(&mut socket, &mut state)?;
    accept(&peer_key(&state)?)?;
    send(&mut socket, &mut state, congestion.unwrap_or_default().as_bytes())?;
    socket.due(None);
    let wanted = Some(congestion.map(str::to_string));
    Ok(halves(socket, state.into_transport_mode().map_err(library)?, wanted))
}

/// Performs the server's handshake. Returns the stream and the client's key, which the caller must check.
pub(super) fn server(
    mut socket: TcpSocket,
    identity: &Identity,
) -> Result<(FileStream, PublicKey), Error> {
    socket.due(Some(Instant::now() + OPENING));
    let mut clear = [0; 6];
    socket.read_exact(&mut clear).map_err(Error::stream)?;
    let [a, b, c, d, version, code] = clear;
    if [a, b, c, d] != MAGIC {
        return Err(Error::protocol("no client of narrows"));
    }
    socket.write_all(&MAGIC).map_err(Error::stream)?;
    socket.write_all(&[VERSION]).map_err(Error::stream)?;
    let suite = Suite::from_code(code).filter(|_| version == VERSION).ok_or_else(|| {
        Error::new(ErrorKind::Version, format!("a client with version {version}, suite {code}"))
    })?;
    let mut state = builder(suite, identity, &clear)?.build_responder().map_err(library)?;
    receive(&mut socket, &mut state)?;
    send(&mut socket, &mut state, &[])?;
    let wanted = receive(&mut socket, &mut state)?;
    let key = peer_key(&state)?;
    socket.due(None);
    let wanted = std::str::from_utf8(&wanted).unwrap_or_default();
    if super::socket::check_congestion_name(wanted).is_ok() {
        // If this fails, the first message below names the one in use.
        let _ = socket.set_congestion(wanted);
    }
    let mut hello = Vec::new();
    put_text(&mut hello, &socket.congestion());
    let mut stream = halves(socket, state.into_transport_mode().map_err(library)?, None);
    stream.output.write_all(&hello).and_then(|()| stream.output.flush()).map_err(Error::stream)?;
    Ok((stream, key))
}

type Shared = Arc<Mutex<TransportState>>;

/// `wanted`: at a client, whose first message is the server's hello.
fn halves(socket: TcpSocket, state: TransportState, wanted: Option<Option<String>>) -> FileStream {
    let shared: Shared = Arc::new(Mutex::new(state));
    let reader = NoiseReader {
        socket: socket.clone(),
        shared: Arc::clone(&shared),
        sealed: Vec::new(),
        plain: Vec::new(),
        at: 0,
        end: 0,
        count: 0,
        over: false,
        wanted,
    };
    let writer = NoiseWriter {
        socket,
        shared,
        plain: Vec::new(),
        sealed: Vec::new(),
        count: 0,
        over: false,
    };
    FileStream { input: Box::new(reader), output: Box::new(writer) }
}

struct NoiseReader {
    socket: TcpSocket,
    shared: Shared,
    sealed: Vec<u8>,
    plain: Vec<u8>,
    at: usize,
    end: usize,
    count: u64,
    over: bool,
    wanted: Option<Option<String>>,
}

impl NoiseReader {
    fn message(&mut self) -> io::Result<()> {
        let mut head = [0; 2];
        self.socket.read_exact(&mut head)?;
        let length = usize::from(u16::from_be_bytes(head));
        // The buffer grows with the bytes that arrive, not with the announced length.
        self.sealed.clear();
        while self.sealed.len() < length {
            let at = self.sealed.len();
            self.sealed.resize(at + (length - at).min(at.max(FIRST_STEP)), 0);
            self.socket.read_exact(self.sealed.get_mut(at..).unwrap_or_default())?;
        }
        if self.plain.len() < length {
            self.plain.resize(length, 0);
        }
        let sealed = &self.sealed;
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.end = state.read_message(sealed, &mut self.plain).map_err(|_| {
            Error::new(ErrorKind::Cut, "a message was changed on the way").into_io()
        })?;
        self.at = 0;
        self.count += 1;
        if self.count.is_multiple_of(REKEY) {
            state.rekey_incoming();
        }
        Ok(())
    }

    fn hello(&mut self, wanted: Option<String>) -> Result<(), Error> {
        self.message().map_err(Error::stream)?;
        let mut fields = Fields::new(self.plain.get(..self.end).unwrap_or_default());
        let used = fields.text()?.to_string();
        self.at = self.end;
        match wanted {
            Some(wanted) if wanted != used => Err(Error::new(
                ErrorKind::Input,
                format!(
                    "the server's kernel does not offer '{wanted}', it uses '{}'; \
                     ask for that, or for tcp alone",
                    narrows_peers::error::shown(&used)
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl Read for NoiseReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Some(wanted) = self.wanted.take() {
            self.hello(wanted).map_err(Error::into_io)?;
        }
        if self.at == self.end && !self.over && !to.is_empty() {
            self.message()?;
            self.over = self.end == 0;
        }
        let ready = self.plain.get(self.at..self.end).unwrap_or_default();
        let n = ready.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..n), ready.get(..n)) {
            to.copy_from_slice(from);
        }
        self.at += n;
        Ok(n)
    }
}

struct NoiseWriter {
    socket: TcpSocket,
    shared: Shared,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    count: u64,
    over: bool,
}

impl NoiseWriter {
    fn message(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.sealed.resize(self.plain.len() + 16 + 2, 0);
        let (head, body) = self.sealed.split_at_mut(2);
        let n = state.write_message(&self.plain, body).map_err(|e| library(e).into_io())?;
        head.copy_from_slice(&(n as u16).to_be_bytes());
        self.count += 1;
        if self.count.is_multiple_of(REKEY) {
            state.rekey_outgoing();
        }
        drop(state);
        self.plain.clear();
        self.socket.write_all(self.sealed.get(..n + 2).unwrap_or_default())
    }
}

impl Write for NoiseWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = bytes.len().min(PLAIN - self.plain.len());
        self.plain.extend(bytes.iter().take(n));
        if self.plain.len() == PLAIN {
            self.message()?;
        }
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        if self.plain.is_empty() { Ok(()) } else { self.message() }
    }
}

impl Output for NoiseWriter {
    fn finish(&mut self) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        self.flush()?;
        self.over = true;
        self.message()?;
        self.socket.shut()
    }
    /// Without an end message, the peer detects the truncation.
    fn abort(&mut self, _: &Error) {
        self.over = true;
        self.socket.hang_up();
    }
}
