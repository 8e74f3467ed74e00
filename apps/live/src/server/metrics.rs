//! The server of metrics: GET /metrics, without a token, since it shows only counters.

use super::{Body, MAX_HEAD, MAX_OPENINGS, PATIENCE, host, whole};
use crate::metrics::{MetricSource, Text};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use narrows_net::openings::Openings;
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A text is used for this time, so that frequent requests do not read all connections each time.
const FRESH: Duration = Duration::from_millis(100);

/// A bound address for metrics. It stays in its network namespace if this process enters another one later.
#[derive(Debug)]
pub struct MetricsListener {
    listener: std::net::TcpListener,
    local: SocketAddr,
    /// Names that clients may send as Host, besides addresses and `localhost`.
    names: Vec<String>,
}

impl MetricsListener {
    /// Binds an address; port 0 selects a free one. Clients may use an address, `localhost` or one of `names`.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr, names: Vec<String>) -> io::Result<MetricsListener> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        Ok(MetricsListener { listener, local, names })
    }

    /// The local address.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Serves these metrics on a thread until the process ends.
    ///
    /// # Errors
    /// The system provides no thread.
    pub fn serve(self, sources: Vec<Arc<dyn MetricSource>>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async {
                let Ok(listener) = tokio::net::TcpListener::from_std(self.listener) else { return };
                let names = self.names;
                accept(&listener, Rc::new(Exporter { sources, names, last: RefCell::default() }))
                    .await;
            });
        };
        std::thread::Builder::new().name("narrows-metrics".into()).spawn(serve).map(drop)
    }
}

struct Exporter {
    sources: Vec<Arc<dyn MetricSource>>,
    names: Vec<String>,
    last: RefCell<Option<(Instant, String)>>,
}

impl Exporter {
    fn text(&self) -> String {
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((at, text)) if at.elapsed() < FRESH => text.clone(),
            _ => {
                let mut text = Text::default();
                self.sources.iter().for_each(|source| source.write(&mut text));
                let text = text.finish();
                *last = Some((Instant::now(), text.clone()));
                text
            }
        }
    }

    /// Whether the request names this host, against DNS rebinding. HTTP/1.0 has no Host field.
    fn is_for_this_host(&self, request: &Request<Incoming>) -> bool {
        let hosts: Vec<_> = request.headers().get_all("host").iter().collect();
        let [host] = hosts[..] else {
            return hosts.is_empty() && request.version() == Version::HTTP_10;
        };
        host.to_str().is_ok_and(|host| {
            let (name, _) = host::split(host);
            host::is_address(name) || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
        })
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let plain = "text/plain; charset=utf-8";
        if !self.is_for_this_host(request) {
            let why = "unknown host: use an address, or name the host in --metrics ADDR,HOST\n";
            return whole(StatusCode::FORBIDDEN, plain, Body::text(why.into()));
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                whole(StatusCode::OK, kind, Body::text(self.text()))
            }
            _ => whole(StatusCode::NOT_FOUND, plain, Body::text("see /metrics\n".into())),
        }
    }
}

async fn accept(listener: &tokio::net::TcpListener, exporter: Rc<Exporter>) {
    let openings = Openings::new(MAX_OPENINGS);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Most likely file descriptors are exhausted: wait until some are closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let exporter = exporter.clone();
        let place = openings.admit(from.ip());
        tokio::task::spawn_local(async move {
            let service =
                service_fn(async |request| Ok::<_, Infallible>(exporter.answer(&request)));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(MAX_HEAD);
            // Each answer ends its connection, so that none holds a place for long.
            http.keep_alive(false);
            let served = http.serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = tokio::time::timeout(PATIENCE, served) => {}
                () = place.given_up() => {}
            }
        });
    }
}
