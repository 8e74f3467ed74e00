//! The server of the page: HTTP/1.1 on a thread of its own. Connections, headers, bodies and the time for a header are
//! bounded. It serves only requests with the token.

mod body;
mod host;
pub mod metrics;
mod request;

use self::body::{Body, EventStream};
use self::request::{HttpRefusal, PageRequest, check};
use crate::controls::{Controls, PageCommand};
use crate::feed::Feed;
use crate::page;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use narrows_net::openings::{Opening, Openings};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most connections without a permitted request; the oldest of the network with the most gives way.
const MAX_OPENINGS: usize = 64;
/// Most connections with a permitted request; a browser opens up to six.
const MAX_CONNECTIONS: usize = 48;
/// Most pages with live updates.
const MAX_STREAMS: usize = 12;
/// Most bytes of a POST.
const MAX_BODY: usize = 1024;
/// Most bytes of a request's header.
const MAX_HEAD: usize = 16 * 1024;
/// Time limit for a header, and for a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// A page that is being served. Dropping it ends the server.
#[derive(Debug)]
pub struct LivePage {
    feed: Arc<Feed>,
    local: SocketAddr,
    token: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State shared by all connections.
struct PageShared {
    feed: Arc<Feed>,
    controls: Option<Arc<dyn Controls>>,
    token: String,
    port: u16,
    streams: Arc<AtomicUsize>,
    places: Arc<Semaphore>,
}

/// A connection's place: any newcomer can take it until a request has shown the token.
struct ServerPlace(Mutex<HeldPlace>);

enum HeldPlace {
    Opening(Opening),
    Kept { _permit: OwnedSemaphorePermit },
}

impl ServerPlace {
    /// Keeps the place after a permitted request. False if too many are kept.
    fn keep(&self, places: &Arc<Semaphore>) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let HeldPlace::Opening(_) = *held {
            let Ok(permit) = places.clone().try_acquire_owned() else { return false };
            *held = HeldPlace::Kept { _permit: permit };
        }
        true
    }

    /// Waits until the place is given to another connection.
    async fn given_up(&self) {
        std::future::poll_fn(|context| {
            match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
                HeldPlace::Opening(opening) => opening.poll_given_up(context),
                HeldPlace::Kept { .. } => Poll::Pending,
            }
        })
        .await;
    }
}

/// A bound address that is not served yet. It stays in its network namespace if this process enters another one later.
#[derive(Debug)]
pub struct BoundPage {
    listener: std::net::TcpListener,
    local: SocketAddr,
    token: String,
}

impl BoundPage {
    /// Binds an address; port 0 selects a free one.
    ///
    /// # Errors
    /// The address cannot be bound, or the system provides no random bytes.
    pub fn bind(address: SocketAddr) -> io::Result<BoundPage> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
        let token: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        Ok(BoundPage { listener, local, token })
    }

    /// URL of the page, with the token.
    pub fn url(&self) -> String {
        url(self.local, &self.token)
    }

    /// Serves the page on a thread. `controls` are the links that it may change.
    ///
    /// # Errors
    /// The system provides no thread.
    pub fn serve(
        self,
        feed: Arc<Feed>,
        controls: Option<Arc<dyn Controls>>,
    ) -> io::Result<LivePage> {
        let BoundPage { listener, local, token } = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let shared = Arc::new(PageShared {
            feed: feed.clone(),
            controls,
            token: token.clone(),
            port: local.port(),
            streams: Arc::default(),
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        });
        let serve = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(&listener, &shared) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("narrows-live".into()).spawn(serve)?;
        Ok(LivePage { feed, local, token, stop: Some(stop), thread: Some(thread) })
    }
}

impl LivePage {
    /// Serves the page at this address: [`BoundPage::bind`] and [`BoundPage::serve`].
    ///
    /// # Errors
    /// As those.
    pub fn open(
        address: SocketAddr,
        feed: Arc<Feed>,
        controls: Option<Arc<dyn Controls>>,
    ) -> io::Result<LivePage> {
        BoundPage::bind(address)?.serve(feed, controls)
    }

    /// The runs that it shows.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// URL of the page, with the token.
    pub fn url(&self) -> String {
        url(self.local, &self.token)
    }
}

/// For a wildcard address the URL has loopback; on other machines, replace it by this machine's address.
fn url(mut local: SocketAddr, token: &str) -> String {
    if local.ip().is_unspecified() {
        let here: IpAddr = match local {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        local.set_ip(here);
    }
    format!("http://{local}/?token={token}")
}

impl Drop for LivePage {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: &tokio::net::TcpListener, shared: &Arc<PageShared>) {
    let openings = Openings::new(MAX_OPENINGS);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Most likely file descriptors are exhausted: wait until some are closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        let place = ServerPlace(Mutex::new(HeldPlace::Opening(openings.admit(from.ip()))));
        tokio::spawn(async move {
            let service = service_fn(async |request| {
                Ok::<_, Infallible>(answer(&shared, &place, request).await)
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(MAX_HEAD);
            // Errors of a connection are left to the browser.
            tokio::select! {
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                () = place.given_up() => {}
            }
        });
    }
}

async fn answer(
    shared: &PageShared,
    place: &ServerPlace,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let permitted = check(&head, &shared.token, shared.port);
    let mut response = match permitted {
        Err(refusal) => refused(&refusal),
        Ok(_) if !place.keep(&shared.places) => refused(&HttpRefusal::busy()),
        Ok(PageRequest::Page) => page(),
        Ok(PageRequest::Events(wants)) => {
            match EventStream::open(
                &shared.feed,
                shared.controls.clone(),
                wants,
                &shared.streams,
                MAX_STREAMS,
            ) {
                Some(stream) => {
                    whole(StatusCode::OK, "text/event-stream", Body::Events(Box::new(stream)))
                }
                None => refused(&HttpRefusal::busy()),
            }
        }
        Ok(PageRequest::Scenario) => match shared.controls.as_ref().map(|c| c.scenario()) {
            Some(text) => {
                let mut response = whole(StatusCode::OK, "application/toml", Body::text(text));
                set(
                    &mut response,
                    "content-disposition",
                    "attachment; filename=\"narrows-live.toml\"",
                );
                response
            }
            None => refused(&HttpRefusal::no_link()),
        },
        Ok(PageRequest::Change) => match (&shared.controls, bytes(body).await) {
            (None, _) => refused(&HttpRefusal::no_link()),
            (_, Err(refusal)) => refused(&refusal),
            (Some(controls), Ok(bytes)) => match PageCommand::read(&bytes)
                .and_then(|o| controls.apply(&o))
            {
                Ok(said) => whole(StatusCode::OK, "text/plain; charset=utf-8", Body::text(said)),
                Err(why) => refused(&HttpRefusal::value(why)),
            },
        },
    };
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        set(&mut response, name, value);
    }
    response
}

/// The body of a POST, within the limits of length and time.
async fn bytes(mut body: Incoming) -> Result<Vec<u8>, HttpRefusal> {
    let all = async {
        let mut bytes = Vec::new();
        while let Some(frame) =
            std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let frame = frame.map_err(|_| HttpRefusal::value("the request was cut off".into()))?;
            if let Ok(data) = frame.into_data() {
                if bytes.len() + data.len() > MAX_BODY {
                    return Err(HttpRefusal::value(format!(
                        "a request has at most {MAX_BODY} bytes"
                    )));
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    let late = |_| Err(HttpRefusal::value("the request took too long".into()));
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(late)
}

fn page() -> Response<Body> {
    let mut random = [0; 16];
    // Without a nonce no script runs, and the page shows a notice.
    let _ = getrandom::fill(&mut random);
    let nonce: String = random.iter().map(|b| format!("{b:02x}")).collect();
    let text = page::html(&nonce);
    let mut response = whole(StatusCode::OK, "text/html; charset=utf-8", Body::text(text));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    set(&mut response, "content-security-policy", &policy);
    response
}

fn refused(refusal: &HttpRefusal) -> Response<Body> {
    let text = format!("narrows: {}\n", refusal.why);
    let mut response = whole(refusal.status, "text/plain; charset=utf-8", Body::text(text));
    // A refused connection is closed.
    set(&mut response, "connection", "close");
    response
}

fn whole(status: StatusCode, kind: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(&mut response, "content-type", kind);
    response
}

fn set(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
