use super::*;
use hyper::Request;
use proptest::prelude::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn asked(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<PageRequest, u16> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let head = request.body(()).unwrap().into_parts().0;
    check(&head, TOKEN, 4600).map_err(|r| r.status.as_u16())
}

const HERE: (&str, &str) = ("host", "127.0.0.1:4600");

/// Without the complete token every request is refused.
#[test]
fn request_without_the_token_is_refused() {
    let page = format!("/?token={TOKEN}");
    assert!(matches!(asked("GET", &page, &[HERE]), Ok(PageRequest::Page)));
    for target in ["/", "/?token=", "/?token=0123", "/events", "/scenario.toml", "/?tokenx=1"] {
        assert_eq!(asked("GET", target, &[HERE]).unwrap_err(), 403, "{target}");
    }
    let longer = format!("/?token={TOKEN}0");
    assert_eq!(asked("GET", &longer, &[HERE]).unwrap_err(), 403);
}

/// A foreign name that resolves to this machine is refused, and another port is, too.
#[test]
fn other_hosts_are_refused() {
    let page = format!("/?token={TOKEN}");
    for good in
        ["localhost:4600", "LOCALHOST:4600", "127.0.0.1:4600", "[::1]:4600", "192.0.2.7:4600"]
    {
        assert!(asked("GET", &page, &[("host", good)]).is_ok(), "{good}");
    }
    for bad in [
        "",
        "example.org:4600",
        "localhost.example.org:4600",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:4601",
        "[::1]",
        "::1:4600",
        "localhost:+4600",
        "127.0.0.1:4600:4600",
        "[127.0.0.1]:4600",
        "127.1.evil:4600",
    ] {
        assert_eq!(asked("GET", &page, &[("host", bad)]).unwrap_err(), 403, "{bad}");
    }
    assert_eq!(asked("GET", &page, &[]).unwrap_err(), 403, "no host");
    assert_eq!(asked("GET", &page, &[HERE, HERE]).unwrap_err(), 403, "two");
}

/// Scripts of other sites are refused even with the token.
#[test]
fn other_sites_are_refused() {
    let token = ("x-narrows-token", TOKEN);
    let own = ("origin", "http://127.0.0.1:4600");
    assert!(matches!(asked("POST", "/link", &[HERE, token, own]), Ok(PageRequest::Change)));
    for origin in
        ["http://example.org", "null", "https://127.0.0.1:4600", "http://127.0.0.1:4601", ""]
    {
        let from = ("origin", origin);
        assert_eq!(asked("POST", "/link", &[HERE, token, from]).unwrap_err(), 403, "{origin}");
        let page = format!("/events?token={TOKEN}");
        assert_eq!(asked("GET", &page, &[HERE, from]).unwrap_err(), 403, "{origin}");
    }
    let cross = ("sec-fetch-site", "cross-site");
    assert_eq!(asked("POST", "/link", &[HERE, token, own, cross]).unwrap_err(), 403);
}

/// A link changes only by POST with the token in its own header, which links, images and forms cannot send.
#[test]
fn a_change_takes_a_post_with_the_tokens_header() {
    let token = ("x-narrows-token", TOKEN);
    let in_query = format!("/link?token={TOKEN}");
    assert_eq!(asked("POST", &in_query, &[HERE]).unwrap_err(), 403);
    assert_eq!(asked("GET", &in_query, &[HERE, token]).unwrap_err(), 405);
    assert_eq!(asked("PUT", &in_query, &[HERE, token]).unwrap_err(), 405);
    assert_eq!(asked("POST", "/", &[HERE, token]).unwrap_err(), 405);
    assert_eq!(asked("GET", &format!("/etc/passwd?token={TOKEN}"), &[HERE]).unwrap_err(), 404);
}

#[test]
fn request_is_parsed_and_bounded() {
    let read = |rest: &str| asked("GET", &format!("/events?token={TOKEN}{rest}"), &[HERE]);
    let Ok(PageRequest::Events(wants)) = read("&run=3&flows=0.7&packets=7") else { panic!() };
    assert_eq!((wants.run, wants.flows, wants.packets), (Some(3), Some(vec![0, 7]), Some(7)));
    let Ok(PageRequest::Events(wants)) = read("") else { panic!() };
    assert_eq!((wants.run, wants.flows, wants.packets), (None, None, None));
    assert_eq!(read("&run=x").unwrap_err(), 400);
    assert_eq!(read("&flows=1.-2").unwrap_err(), 400);
    assert_eq!(read(&format!("&flows={}", "1.".repeat(161))).unwrap_err(), 400);
}

proptest! {
    /// Any request without the token is refused without a panic.
    #[test]
    fn any_request_without_token_is_refused(
        method in "[A-Z]{1,7}",
        target in "/[!-~]{0,60}",
        headers in prop::collection::vec(("(host|origin|sec-fetch-site|x-narrows-token|[a-z]{1,9})", "[ -~]{0,40}"), 0..5),
    ) {
        let mut request = Request::builder().method(method.as_str()).uri(target.as_str());
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        if let Ok(request) = request.body(()) {
            prop_assert!(check(&request.into_parts().0, TOKEN, 4600).is_err());
        }
    }

    /// With the token, any query is parsed or refused.
    #[test]
    fn any_query_is_read_or_refused(rest in "[!-~]{0,200}") {
        let uri = format!("/events?token={TOKEN}&{rest}");
        if let Ok(request) = Request::builder().uri(uri).header(HERE.0, HERE.1).body(())
            && let Ok(PageRequest::Events(wants)) = check(&request.into_parts().0, TOKEN, 4600)
        {
            prop_assert!(wants.flows.is_none_or(|f| f.len() <= MAX_FLOWS));
        }
    }
}
