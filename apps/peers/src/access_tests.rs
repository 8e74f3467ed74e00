use super::*;

#[test]
fn changed_key_of_a_pinned_server_is_refused_until_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let known = KnownServers::at(folder.path().join("new/known_servers"));
    assert_eq!(known.check("a:1", &[1; 32]).unwrap(), KeyCheck::New);
    assert_eq!(known.check("b:1", &[2; 32]).unwrap(), KeyCheck::New);
    assert_eq!(known.check("a:1", &[1; 32]).unwrap(), KeyCheck::Same);
    let e = known.check("a:1", &[3; 32]).unwrap_err();
    assert_eq!(e.kind, ErrorKind::WrongKey);
    assert!(e.line.contains("narrows key --forget a:1"), "{e}");
    assert!(known.forget("a:1").unwrap());
    assert!(!known.forget("a:1").unwrap());
    assert_eq!(known.check("a:1", &[3; 32]).unwrap(), KeyCheck::New);
    assert_eq!(known.check("b:1", &[2; 32]).unwrap(), KeyCheck::Same);
}

#[cfg(unix)]
#[test]
fn a_new_content_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known");
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "kept").unwrap();
    std::fs::hard_link(&precious, key::beside(&path, std::process::id())).unwrap();
    replace(&path, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn malformed_line_is_an_error_not_a_forgotten_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known");
    for text in ["a:1\n", "# x\na:1 nonsense\n"] {
        std::fs::write(&path, text).unwrap();
        let e = KnownServers::at(path.clone()).check("a:1", &[1; 32]).unwrap_err();
        assert!(e.line.contains("line "), "{e}");
    }
}

#[test]
fn allow_list_has_comments_and_names_a_wrong_line() {
    let key = crate::key::text(&[7; 32]);
    let list = AllowList::read(&format!("# who\n\n{key} the laptop # mine\n")).unwrap();
    assert!(list.holds(&[7; 32]) && !list.holds(&[8; 32]) && list.len() == 1);
    assert!(AllowList::read("# a\nx\n").unwrap_err().line.starts_with("line 2"));
}

#[cfg(unix)]
#[test]
fn files_about_peers_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let public = std::fs::Permissions::from_mode(0o644);
    let home = folder.path().join("config/narrows");
    let known = home.join("known_servers");
    let paths = home.join("paths.toml");
    for server in ["a:1", "b:1"] {
        KnownServers::at(known.clone()).check(server, &[1; 32]).unwrap();
        replace(&paths, server).unwrap();
        for file in [&known, &paths] {
            assert_eq!(mode(file), 0o600);
            std::fs::set_permissions(file, public.clone()).unwrap();
        }
    }
    assert_eq!(mode(&home), 0o700);
    assert!(KnownServers::at(known.clone()).forget("a:1").unwrap());
    assert_eq!(mode(&known), 0o600);
}
