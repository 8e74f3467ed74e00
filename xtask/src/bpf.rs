//! The compiled eBPF programs of `apps/kernel/bpf`: made from their source, or compared with it.

use crate::command::{is_installed, run};
use crate::files::failed;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "apps/kernel/bpf";
/// Other versions produce different instructions from the same source.
const COMPILER: &str = "clang-14";
const STRIP: &str = "llvm-strip-14";
/// Sections that the kernel loads: instructions, and their references to maps.
const COMPARED: [&str; 2] = [".text", ".rel.text"];

/// Compiles the source again and compares the instructions, if the compiler is installed.
pub fn check() -> Result<(), String> {
    if !is_installed(COMPILER) {
        eprintln!("eBPF programs: not compared with their source, for {COMPILER} is not installed");
        return Ok(());
    }
    let fresh = Path::new("target/narrows.bpf.o");
    compile(fresh)?;
    let kept = read(&Path::new(FOLDER).join("narrows.bpf.o"))?;
    let fresh = read(fresh)?;
    for name in COMPARED {
        let [kept, fresh] = [&kept, &fresh].map(|object| section(object, name));
        if kept.is_none() || kept != fresh {
            return Err(format!(
                "{FOLDER}/narrows.bpf.o is not what {COMPILER} makes of its source ({name} differs): run \
                 `cargo xtask bpf` and commit it"
            ));
        }
    }
    Ok(())
}

/// Makes the object that is shipped.
pub fn make() -> Result<(), String> {
    compile(&Path::new(FOLDER).join("narrows.bpf.o"))
}

fn compile(to: &Path) -> Result<(), String> {
    let source = format!("{FOLDER}/narrows.bpf.c");
    let flags = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-c"];
    let mut compiler = Command::new(COMPILER);
    run(compiler.args(flags).arg(&source).arg("-o").arg(to), &format!("{COMPILER} {source}"))?;
    // Lines for debuggers; BTF stays.
    run(Command::new(STRIP).arg("-g").arg(to), STRIP)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(failed(path))
}

/// A section of a 64-bit little-endian ELF file.
fn section<'a>(elf: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let part = elf.get(at..at.checked_add(bytes)?)?;
        Some(part.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let table = number(0x28, 8)?;
    let size = number(0x3a, 2)?;
    let count = number(0x3c, 2)?;
    let names = number(0x3e, 2)?;
    let place = |index: usize| -> Option<(usize, usize, usize)> {
        let at = table.checked_add(index.checked_mul(size)?)?;
        Some((number(at, 4)?, number(at + 0x18, 8)?, number(at + 0x20, 8)?))
    };
    let names = place(names)?.1;
    (0..count).filter_map(place).find_map(|(name, start, length)| {
        let text = elf.get(names.checked_add(name)?..)?;
        let is_it = text.strip_prefix(wanted.as_bytes())?.first() == Some(&0);
        elf.get(start..start.checked_add(length)?).filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found_by_its_whole_name() {
        let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps/kernel/bpf/narrows.bpf.o");
        let object = read(&object).unwrap();
        let text = section(&object, ".text").unwrap();
        assert!(text.len() > 1000 && text.len().is_multiple_of(8), "{}", text.len());
        assert_eq!(section(&object, "license"), Some(&b"Dual MIT/GPL\0"[..]));
        assert_eq!(section(&object, ".tex"), None);
        assert_eq!(section(&object[..200], ".text"), None);
    }
}
