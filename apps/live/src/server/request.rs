//! Access control of requests: the host that the browser connected to, the page that the request comes from, and the
//! token.

use super::host;
use crate::feed::frame::Wants;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use subtle::ConstantTimeEq as _;

/// Most flows that one page can select.
const MAX_FLOWS: usize = 160;

/// Kinds of permitted requests.
#[derive(Debug)]
pub enum PageRequest {
    Page,
    Events(Wants),
    Scenario,
    Change,
}

/// A refusal with its status and reason.
#[derive(PartialEq, Eq, Debug)]
pub struct HttpRefusal {
    pub status: StatusCode,
    pub why: String,
}

impl HttpRefusal {
    fn new(status: StatusCode, why: &str) -> HttpRefusal {
        HttpRefusal { status, why: why.into() }
    }
    pub fn busy() -> HttpRefusal {
        HttpRefusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are open: close one of them",
        )
    }
    pub fn no_link() -> HttpRefusal {
        HttpRefusal::new(StatusCode::NOT_FOUND, "this command has no link that a page could change")
    }
    pub fn value(why: String) -> HttpRefusal {
        HttpRefusal { status: StatusCode::BAD_REQUEST, why }
    }
}

/// Checks whether a request is permitted.
///
/// The host must be an address or `localhost`: a page of another site whose name was made to resolve to this machine
/// ("DNS rebinding") sends its own name. A request from a script of another site has that site's origin. Neither has
/// the token.
pub fn check(head: &Parts, token: &str, port: u16) -> Result<PageRequest, HttpRefusal> {
    let forbidden = |why| HttpRefusal::new(StatusCode::FORBIDDEN, why);
    let header = |name: &str| head.headers.get(name).map(|v| v.to_str().unwrap_or("\u{0}"));
    let hosts = head.headers.get_all("host").iter().count();
    let host = header("host").filter(|h| hosts == 1 && is_here(h, port));
    let Some(host) = host else {
        return Err(forbidden(
            "the host is not this page's address: open the one that was printed",
        ));
    };
    if header("origin").is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
        return Err(forbidden("the request comes from another site"));
    }
    if header("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(forbidden("the request comes from another site"));
    }
    let query = head.uri.query().unwrap_or("");
    let given = match head.method {
        // Changes need the token in a header, which no link or form can set.
        Method::POST => header("x-narrows-token"),
        _ => parameter(query, "token"),
    };
    if !bool::from(given.unwrap_or("").as_bytes().ct_eq(token.as_bytes())) {
        return Err(forbidden("the token is wrong or missing: open the address that was printed"));
    }
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/") => Ok(PageRequest::Page),
        (&Method::GET, "/events") => {
            wants(query).map(PageRequest::Events).map_err(HttpRefusal::value)
        }
        (&Method::GET, "/scenario.toml") => Ok(PageRequest::Scenario),
        (&Method::POST, "/link") => Ok(PageRequest::Change),
        (_, "/" | "/events" | "/scenario.toml" | "/link") => {
            Err(HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed here"))
        }
        _ => Err(HttpRefusal::new(StatusCode::NOT_FOUND, "there is no such page")),
    }
}

/// Whether this is the host of the page's own address.
fn is_here(host: &str, port: u16) -> bool {
    let (name, given) = host::split(host);
    // A browser leaves out HTTP's default port.
    let given = given.unwrap_or("80");
    let is_number = given.bytes().all(|b| b.is_ascii_digit());
    is_number && given.parse::<u16>() == Ok(port) && host::is_address(name)
}

/// The first value of a query's parameter. No permitted value needs escapes.
fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(n, _)| *n == name)).map(|p| p.1)
}

fn wants(query: &str) -> Result<Wants, String> {
    let number = |name: &str, text: &str| {
        text.parse::<usize>().map_err(|_| format!("{name}: a number is expected"))
    };
    let one = |name| parameter(query, name).filter(|t| !t.is_empty());
    let flows = match parameter(query, "flows") {
        None => None,
        Some(text) => {
            let texts: Vec<&str> = text.split('.').filter(|t| !t.is_empty()).collect();
            if texts.len() > MAX_FLOWS {
                return Err(format!("flows: at most {MAX_FLOWS}"));
            }
            Some(texts.into_iter().map(|t| number("flows", t)).collect::<Result<_, _>>()?)
        }
    };
    Ok(Wants {
        run: one("run").map(|t| number("run", t).map(|n| n as u64)).transpose()?,
        flows,
        packets: one("packets").map(|t| number("packets", t)).transpose()?,
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
