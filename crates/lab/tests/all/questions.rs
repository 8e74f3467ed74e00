//! What users ask `compare`, and what is refused.

use narrows_lab::Question;
use std::path::Path;

#[test]
fn bad_questions_name_the_flag() {
    let ask = |change: &dyn Fn(&mut Question)| {
        let mut q = Question::default();
        change(&mut q);
        q.scenario(Path::new("")).map(|_| ()).unwrap_err().to_string()
    };
    assert!(ask(&|q| q.protocols = "reno,renoo".into()).starts_with("--protocols: "));
    assert!(ask(&|q| q.protocols = "reno,,sack".into()).contains("missing"));
    assert!(ask(&|q| q.protocols = "reno,reno".into()).contains("twice"));
    assert!(ask(&|q| q.protocols = "vegas(alpah=1)".into()).contains("did you mean 'alpha'"));
    assert!(ask(&|q| q.against = Some("reno:x".into())).starts_with("--against: "));
    assert!(ask(&|q| q.reverse = Some("reno:0".into())).starts_with("--reverse: "));
    assert!(ask(&|q| q.link = "nowhere".into()).starts_with("--link: "));
    assert!(ask(&|q| q.packet = 40).starts_with("--packet: "));
}
