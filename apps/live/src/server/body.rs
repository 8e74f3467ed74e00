//! Bodies of responses: a text, or a stream of events that lasts until the browser disconnects.

use crate::controls::Controls;
use crate::feed::Feed;
use crate::feed::frame::{FeedCursor, Wants};
use hyper::body::{Bytes, Frame};
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Interval of a page's updates: 60 a second.
const UPDATE: Duration = Duration::from_micros(16_667);
/// Interval of keep-alive comments without events.
const SILENCE: Duration = Duration::from_secs(10);

/// The body of a response.
pub enum Body {
    Text(Option<Bytes>),
    Events(Box<EventStream>),
}

impl Body {
    pub fn text(text: String) -> Body {
        Body::Text(Some(text.into()))
    }
}

/// Server-sent events: each has the data that the browser lacks when the socket has space. So a browser that does not
/// read uses its place and one frame, and no run waits for it.
pub struct EventStream {
    feed: Arc<Feed>,
    controls: Option<Arc<dyn Controls>>,
    /// Version of the links' state in the last event.
    links: Option<u64>,
    cursor: FeedCursor,
    next: Pin<Box<Sleep>>,
    said: Instant,
    open: Arc<AtomicUsize>,
}

impl EventStream {
    /// `None` if `max` streams are open already.
    pub fn open(
        feed: &Arc<Feed>,
        controls: Option<Arc<dyn Controls>>,
        wants: Wants,
        open: &Arc<AtomicUsize>,
        max: usize,
    ) -> Option<EventStream> {
        if open.fetch_add(1, Ordering::AcqRel) >= max {
            open.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let cursor = FeedCursor::new(wants);
        let now = Instant::now();
        let next = Box::pin(sleep_until(now));
        let feed = feed.clone();
        let open = open.clone();
        Some(EventStream { feed, controls, links: None, cursor, next, said: now, open })
    }

    fn event(&mut self) -> Option<String> {
        let mut out = String::new();
        if let Some(frame) = self.cursor.frame(&self.feed) {
            out = format!("data:{frame}\n\n");
        }
        if let Some(controls) = &self.controls {
            let (version, state) = controls.state(self.links);
            if let Some(state) = state {
                self.links = Some(version);
                out += &format!("event:links\ndata:{state}\n\n");
            }
        }
        (!out.is_empty()).then_some(out)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let stream = match self.get_mut() {
            Body::Text(text) => return Poll::Ready(text.take().map(|t| Ok(Frame::data(t)))),
            Body::Events(stream) => stream,
        };
        loop {
            if stream.next.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            stream.next.as_mut().reset(now + UPDATE);
            let event = match stream.event() {
                None if now - stream.said < SILENCE => continue,
                None => ":\n\n".to_string(),
                Some(event) => event,
            };
            stream.said = now;
            return Poll::Ready(Some(Ok(Frame::data(event.into()))));
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Text(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Body::Text(text) => {
                hyper::body::SizeHint::with_exact(text.as_ref().map_or(0, |t| t.len() as u64))
            }
            Body::Events(_) => hyper::body::SizeHint::default(),
        }
    }
}
