//! `--record DIR`: recordings of real connections.

use crate::command_line::command_line;
use crate::failure::Failure;
use crate::terminal::note;
use clap::Args;
use narrows_net::relay::RelayTap;
use narrows_net::tap::Tap;
use narrows_record::{Recorder, RecordingDescription};
use narrows_report::output;
#[cfg(target_os = "linux")]
use narrows_scenario::{output_file, text_file::plain};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args, Clone, Debug, Default)]
pub struct RecordArgs {
    /// Record into this folder: pcapng, series, a report, and a qlog of each rrtp connection
    #[arg(long = "record", value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// A recording, if `--record` is set.
#[derive(Debug)]
pub struct OpenRecording(Option<(Arc<Recorder>, PathBuf)>);

impl RecordArgs {
    /// Whether `--record` is set.
    pub fn is_wanted(&self) -> bool {
        self.folder.is_some()
    }

    /// Begins a recording, if `--record` is set, of `command` with `protocol` over `link`.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn start(
        &self,
        command: &'static str,
        protocol: &str,
        link: String,
    ) -> Result<OpenRecording, Failure> {
        self.begin(command, protocol, link, Vec::new())
    }

    /// Begins a recording of a relay, with descriptions of its links.
    ///
    /// # Errors
    /// As [`start`](RecordArgs::start).
    pub fn relay(&self, link: String, ways: Vec<String>) -> Result<OpenRecording, Failure> {
        self.begin("relay", "any over UDP", link, ways)
    }

    /// Begins a recording of an emulated link; if there are several, each has a folder of its own.
    ///
    /// # Errors
    /// As [`start`](RecordArgs::start).
    #[cfg(target_os = "linux")]
    pub fn link(
        &self,
        below: Option<&str>,
        link: String,
        ways: Vec<String>,
    ) -> Result<OpenRecording, Failure> {
        let folder = self.folder.as_ref().map(|f| below.map_or(f.clone(), |name| f.join(name)));
        if let (Some(all), Some(own), Some(_)) = (&self.folder, &folder, below) {
            output::check_folder_of("--record", all).map_err(Failure::Input)?;
            let made = std::fs::create_dir_all(all).and_then(|()| output_file::folder(own));
            made.map_err(|e| {
                Failure::Outside(format!("--record: cannot write {}: {}", own.display(), plain(&e)))
            })?;
        }
        RecordArgs { folder }.begin("link", "any", link, ways)
    }

    fn begin(
        &self,
        command: &'static str,
        protocol: &str,
        link: String,
        ways: Vec<String>,
    ) -> Result<OpenRecording, Failure> {
        let Some(folder) = &self.folder else { return Ok(OpenRecording(None)) };
        output::check_folder_of("--record", folder).map_err(Failure::Input)?;
        let protocol = protocol.to_string();
        let command_line = command_line();
        let about = RecordingDescription { command, command_line, protocol, link, ways };
        let recorder = Recorder::start(folder, about).map_err(Failure::Outside)?;
        Ok(OpenRecording(Some((Arc::new(recorder), folder.clone()))))
    }
}

impl OpenRecording {
    /// Observer for an endpoint of this name.
    pub fn tap(&self, name: &'static str) -> Option<Arc<dyn Tap>> {
        self.0.as_ref().map(|r| r.0.tap(name))
    }

    /// Observer for a relay.
    pub fn watch(&self) -> Option<Arc<dyn RelayTap>> {
        self.0.as_ref().map(|r| r.0.watch())
    }

    /// The recorder, for a measurement or an emulated link.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        self.0.as_ref().map(|r| Arc::clone(&r.0))
    }

    /// Ends the recording after the endpoints are closed, and prints the names of its files. An error in `done` takes
    /// precedence over errors of the recording.
    ///
    /// # Errors
    /// As `done`, or the recording could not be written.
    pub fn finish(self, done: Result<(), Failure>) -> Result<(), Failure> {
        let Some((recorder, folder)) = self.0 else { return done };
        let written = recorder.finish();
        if let Ok(Some(written)) = &written {
            note(&format!("narrows: {}", written.line(&folder)));
        }
        done?;
        written.map(drop).map_err(Failure::Outside)
    }
}
