//! `narrows sweep --slurm`: a sweep as an array of jobs for a cluster with SLURM.

use narrows_lab::options::words::quoted;
use std::path::Path;

/// The script of a sweep in `parts` parts; `words` are the command's without `--slurm`.
pub fn script(words: &[String], out: &Path, parts: usize) -> String {
    let command: Vec<String> = words.iter().map(|w| quoted(w)).collect();
    let command = command.join(" ");
    let log = quoted(&out.join("slurm-%A_%a.log").to_string_lossy());
    let folder = quoted(&out.to_string_lossy());
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=narrows-sweep\n\
         #SBATCH --array=1-{parts}\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --output={log}\n\
         # mkdir -p {folder} && sbatch --wait sweep.sh && {command}\n\
         # Each task runs its part of the points and keeps them in a journal of its own; a task that is run again\n\
         # goes on where it was. The command at the end reads all journals, runs what a lost task left, and writes\n\
         # the tables and the report.\n\
         set -eu\n\
         {command} --part \"$SLURM_ARRAY_TASK_ID/{parts}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n"
    )
}
