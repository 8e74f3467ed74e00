//! Settings from a file (`--config`): words before those of the command line.

use crate::command_line::{FileSetting, GivenWords, with_negative_values};
use crate::failure::Failure;
use clap::parser::ValueSource;
use clap::{Arg, FromArgMatches};
use narrows_base::SpecError;
use narrows_peers::Error;
use narrows_peers::settings::{self, Setting};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Makes the command line's definition.
type Definition = fn() -> clap::Command;

/// That of this process, for a reload.
static DEFINITION: OnceLock<Definition> = OnceLock::new();

/// The words, with those of the file that `--config` names after the subcommand. The names of flags and arguments are
/// the keys. A flag on the command line replaces its key.
///
/// # Errors
/// The file cannot be read, is invalid, or has a key that the subcommand does not have.
pub fn with_file(mut words: Vec<OsString>, definition: Definition) -> Result<GivenWords, Failure> {
    let _ = DEFINITION.set(definition);
    let settings = insert_read(&mut words, definition, settings::load)?;
    Ok(GivenWords { words, settings })
}

fn insert_read(
    words: &mut Vec<OsString>,
    definition: Definition,
    read: fn(&Path) -> Result<Vec<Setting>, Error>,
) -> Result<Vec<FileSetting>, Failure> {
    let mut settings = Vec::new();
    if !words.iter().any(|word| word.to_string_lossy().starts_with("--config")) {
        return Ok(settings);
    }
    let mut command = &mut definition().ignore_errors(true);
    // A request for help needs no file.
    let Ok(mut given) = command.try_get_matches_from_mut(words.iter()) else { return Ok(settings) };
    let mut place = 1;
    while let Some((name, inner)) = given.remove_subcommand() {
        let Some(inner_command) = command.find_subcommand_mut(&name) else { return Ok(settings) };
        command = inner_command;
        given = inner;
        place += 1;
    }
    let Ok(Some(file)) = given.try_get_one::<PathBuf>("config") else { return Ok(settings) };
    let is_setting = |a: &&Arg| {
        !a.is_hide_set() && !a.is_last_set() && !["config", "help"].contains(&a.get_id().as_str())
    };
    let name = |a: &&Arg| a.get_long().unwrap_or(a.get_id().as_str()).to_string();
    let args: Vec<&Arg> = command.get_arguments().filter(is_setting).collect();
    let mut of_file = Vec::new();
    for setting in read(file).map_err(|e| Failure::Input(e.at("--config").line))? {
        let Some(arg) = args.iter().find(|a| name(a) == setting.key) else {
            let names: Vec<String> = args.iter().map(name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let file = file.display();
            let line = setting.line;
            let unknown = SpecError::unknown("setting", &setting.key, &names);
            return Err(Failure::Input(format!("--config: {file}: line {line}: {unknown}")));
        };
        if given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        let takes_value = arg.get_action().takes_values();
        let fits = |value: &Option<String>| value.is_some() == takes_value;
        if !setting.values.iter().all(fits) {
            let place = format!("--config: {}: line {}", file.display(), setting.line);
            let key = &setting.key;
            let form =
                if takes_value { "a text or a number" } else { "true or false, without quotes" };
            return Err(Failure::Input(format!("{place}: {key} is {form}")));
        }
        settings.push(FileSetting {
            argument: arg.to_string(),
            option: format!("--{}", setting.key),
            place: format!("--config: {}: line {}", file.display(), setting.line),
        });
        of_file.extend(setting.values.into_iter().map(|value| match (arg.get_long(), value) {
            (None, value) => value.unwrap_or_default().into(),
            (Some(flag), None) => OsString::from(format!("--{flag}")),
            (Some(flag), Some(value)) => format!("--{flag}={value}").into(),
        }));
    }
    words.splice(place..place, of_file);
    Ok(settings)
}

/// The arguments of this command, with the settings that its file has now.
///
/// # Errors
/// As [`with_file`], or an invalid setting.
pub fn again<T: FromArgMatches>() -> Result<T, Failure> {
    let Some(definition) = DEFINITION.get() else {
        return Err(Failure::Input("the command line is not known yet".into()));
    };
    let mut words = with_negative_values(std::env::args_os());
    let settings = insert_read(&mut words, *definition, settings::reload)?;
    let given = GivenWords { words, settings };
    let refused = |e: clap::Error| Failure::Input(given.refusal(&e));
    let mut found = definition().try_get_matches_from(&given.words).map_err(refused)?;
    while let Some((_, inner)) = found.remove_subcommand() {
        found = inner;
    }
    T::from_arg_matches(&found).map_err(refused)
}

/// Settings that a reload changes, but does not remove: a file that was cut off, or has a line in a comment, opens no
/// door.
#[derive(Default)]
pub struct KeptSettings(Vec<&'static str>);

impl KeptSettings {
    /// The new value, or the one in force if there is none.
    pub fn or<T: Clone>(
        &mut self,
        name: &'static str,
        new: Option<T>,
        in_force: &Option<T>,
    ) -> Option<T> {
        if new.is_none() && in_force.is_some() {
            self.0.push(name);
            return in_force.clone();
        }
        new
    }

    /// For the log, behind what was reloaded.
    pub fn line(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("; only a restart removes {}, which stay in force", self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn flags_take_precedence_over_the_settings_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "link = 'geo'\nback = 'lte'\nseed = 7\njson = true\nquiet = false\n";
        std::fs::write(file.path(), text).unwrap();
        let line = format!("narrows link --config {} --back dsl -- sh", file.path().display());
        let found = with_file(words(&line), crate::command).unwrap();
        let rest = format!("narrows link --json geo --seed=7 {}", &line["narrows link ".len()..]);
        assert_eq!(found.words, words(&rest));
        std::fs::write(file.path(), "seed = 7\nlnik = 'geo'\n").unwrap();
        let error = with_file(words(&line), crate::command).unwrap_err();
        let error = error.line();
        assert!(error.ends_with("line 2: unknown setting 'lnik'; did you mean 'link'?"), "{error}");
        for (text, end) in [
            ("seed = true\n", "line 1: seed is a text or a number"),
            ("seed = 7\njson = 'yes'\n", "line 2: json is true or false, without quotes"),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = with_file(words(&line), crate::command).unwrap_err();
            assert!(error.line().ends_with(end), "{}", error.line());
        }
        std::fs::remove_file(file.path()).unwrap();
        let error = with_file(words(&line), crate::command).unwrap_err();
        assert!(matches!(&error, Failure::Input(line) if line.contains("no such file")));
        // The program's own --config is none of ours.
        let line = words("narrows link geo -- program --config absent.toml");
        assert_eq!(with_file(line.clone(), crate::command).unwrap().words, line);
    }
}
