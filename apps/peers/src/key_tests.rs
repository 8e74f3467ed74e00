use super::*;

#[test]
fn a_key_is_made_once_kept_private_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/server.key");
    let made = Identity::load_or_make(&path).unwrap();
    let again = Identity::load_or_make(&path).unwrap();
    assert_eq!(made.public(), again.public());
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let e = Identity::load_or_make(&path).unwrap_err();
        assert!(e.line.contains("chmod 600"), "{e}");
    }
}

/// A symbolic link with the temporary name of a new key file.
#[cfg(unix)]
#[test]
fn a_private_key_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "kept").unwrap();
    std::os::unix::fs::symlink(&precious, beside(&path, std::process::id())).unwrap();
    Identity::load_or_make(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    assert!(!std::fs::symlink_metadata(&path).unwrap().is_symlink());
}

#[test]
fn file_without_a_key_is_named_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    write_private(&path, "hello\n").unwrap();
    assert!(Identity::load_or_make(&path).unwrap_err().line.contains("not a key file"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello\n");
}

#[test]
fn a_public_key_is_read_as_it_is_written() {
    let key = [0xa5; 32];
    assert_eq!(read(&text(&key)).unwrap(), key);
    assert_eq!(read(&"a5".repeat(32)).unwrap(), key);
    assert_eq!(text(&key).len(), 52);
    for bad in ["", "x", &"1".repeat(52), &"g".repeat(64), &"é".repeat(26)] {
        assert!(read(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn config_folder_needs_no_home_if_it_is_given() {
    let given = |path: &str| config_folder_in(Some(path.into()), || None);
    assert_eq!(given("/x").unwrap(), PathBuf::from("/x/narrows"));
    for e in [given("relative"), config_folder_in(None, || None)] {
        assert!(e.unwrap_err().line.contains("set HOME or XDG_CONFIG_HOME"));
    }
    let usual = config_folder_in(Some("relative".into()), || Some("/home/.config".into()));
    assert_eq!(usual.unwrap(), PathBuf::from("/home/.config/narrows"));
}

#[test]
fn key_of_low_order_is_refused_wherever_it_is_text() {
    let aaaa = "a".repeat(52);
    let p = format!("ed{}7f", "ff".repeat(30));
    let high = format!("01{}80", "00".repeat(30));
    for text in [&aaaa, &p, &high] {
        let refused = [
            read(text).err(),
            crate::access::AllowList::read(text).err(),
            crate::access::known(&format!("host:1 {text}"), "other:1").err(),
        ];
        for e in refused {
            let e = e.expect("refused");
            assert!(e.kind == ErrorKind::Input && e.line.contains("low order"), "{e}");
        }
    }
}
