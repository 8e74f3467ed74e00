//! `docs/security.md` names the tests that protect each promise.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of all functions that are tests, in every source below.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("sources are text");
            // Other attributes, such as `ignore`, may stand between the attribute and the function.
            let text = text.replace("#[tokio::test", "#[test]");
            for after in text.split("#[test]").skip(1) {
                let name = after.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
                found.extend(name.map(str::to_owned));
            }
        }
    }
}

/// Each promise of the security page has a test that exists.
#[test]
fn every_test_that_the_security_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for floor in ["core", "papers", "apps"] {
        tests(&root.join(floor), &mut found);
    }
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    // Names of tests have at least three words; other text in backticks is shorter.
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.matches('_').count() >= 2 && !word.contains(' '))
        .collect();
    assert!(named.len() > 50, "{} names: the page is read wrongly", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !found.contains(**name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}
