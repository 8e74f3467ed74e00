use super::*;
use proptest::prelude::*;

#[test]
fn path_out_of_the_root_is_refused() {
    for bad in ["..", "a/../b", "a/..", "./a", "a\0b", "../../etc/passwd", "x/.f.narrows-part"] {
        assert!(CleanPath::read(bad).is_err(), "{bad:?} was taken");
    }
    assert!(CleanPath::read(&"a/".repeat(200)).is_err());
    assert!(CleanPath::read(&"a".repeat(256)).is_err());
    for (text, clean) in [("/a//b/", "a/b"), ("", ""), ("/", ""), ("a/...", "a/...")] {
        assert_eq!(CleanPath::read(text).unwrap().to_string(), clean);
    }
}

#[test]
fn partial_files_name_fits_disks_and_cannot_be_requested() {
    for name in ["a", &"n".repeat(255), &"é".repeat(127)] {
        let part = part_name(name);
        assert!(part.len() <= MAX_NAME);
        assert!(check_name(&part).is_err());
    }
    assert_ne!(part_name(&"n".repeat(255)), part_name(&"n".repeat(254)));
    assert!(is_part("x.NARROWS-part"));
}

proptest! {
    #[test]
    fn whatever_comes_out_stays_below_its_root(text in "[a-b./\\\\\0é]{0,30}") {
        if let Ok(path) = CleanPath::read(&text) {
            let relative = path.relative();
            prop_assert!(!relative.is_absolute());
            for part in relative.components() {
                prop_assert!(matches!(
                    part,
                    std::path::Component::Normal(_) | std::path::Component::CurDir
                ));
            }
            prop_assert_eq!(CleanPath::read(&path.to_string()).unwrap(), path);
        }
    }
}
