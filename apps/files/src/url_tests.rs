use super::*;
use proptest::prelude::*;

#[test]
fn addresses_are_read_with_and_without_optional_parts() {
    let key = key::text(&[5; 32]);
    for (text, server, path, folder) in [
        ("rrtp://a:1/x/y".to_string(), "a:1", "x/y", false),
        ("tcp://a".into(), "a:47470", "", true),
        ("TCP://A.b/".into(), "a.b:47470", "", true),
        ("tcp://[::1]:9/x/".into(), "[::1]:9", "x", true),
        ("tcp://[::1]/x%20y".into(), "[::1]:47470", "x y", false),
        (format!("rrtp://{key}@a:1/x"), "a:1", "x", false),
    ] {
        let url = Url::read(&text).unwrap();
        assert_eq!((url.server().as_str(), url.path.to_string().as_str()), (server, path));
        assert_eq!(url.folder, folder, "{text}");
        assert_eq!(url.key.is_some(), text.contains('@'));
    }
}

#[test]
fn malformed_address_names_fault_and_right_form() {
    for (text, hint) in [
        ("a:1/x", "rrtp://HOST:PORT/PATH"),
        ("rrt://a/x", "did you mean 'rrtp'?"),
        ("http://a/x", "rrtp, tcp"),
        ("tcp:///x", "host is missing"),
        ("tcp://a:x/", "0 to 65535"),
        ("tcp://a:99999/", "0 to 65535"),
        ("tcp://::1/x", "brackets"),
        ("tcp://[::1/x", "']'"),
        ("tcp://a/../x", "'..'"),
        ("tcp://a/%2e%2e/x", "'..'"),
        ("tcp://a/%2", "%25"),
        ("tcp://k@a/x", "not a key"),
        ("tcp://a b/x", "no host's name"),
    ] {
        let e = Url::read(text).unwrap_err();
        assert!(e.kind == ErrorKind::Input && e.line.contains(hint), "{text}: {e}");
        assert_eq!(e.line.lines().count(), 1);
    }
}

proptest! {
    #[test]
    fn an_address_is_written_as_it_can_be_read(text in "(tcp|rrtp)://[a-c.]{1,5}(:[0-9]{1,4})?(/[a%2.x é]{0,4}){0,3}/?") {
        if let Ok(url) = Url::read(&text) {
            prop_assert_eq!(Url::read(&url.to_string()).unwrap(), url);
        }
    }
    #[test]
    fn arbitrary_text_never_breaks_the_reader(text in "\\PC{0,40}") {
        let _ = Url::read(&text);
    }
}
