//! Why the kernel's TCP cannot be driven.

use narrows_base::SpecError;

/// Why the kernel's TCP cannot be controlled: one line each, with the missing part.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No such controller, or an unknown or invalid parameter.
    Specification(SpecError),
    /// It needs packet numbers or has a receiver side; only rrtp supports that.
    NeedsRrtp(&'static str),
    /// It sends at a fixed rate, regardless of acknowledgements.
    Unresponsive(&'static str),
    /// It is not among those that are inside the kernel.
    NotNative(&'static str),
    /// A name that the kernel does not accept.
    BadName(String),
    /// A congestion control of this name exists.
    NameInUse(String),
    /// Missing rights.
    NotPermitted,
    /// The kernel does not describe its types.
    NoBtf,
    /// The description of the kernel's types cannot be read.
    DamagedBtf,
    /// The kernel does not support congestion controls as eBPF.
    NoStructOps,
    /// The kernel's verifier refuses a program.
    Refused {
        /// Name of the program.
        program: String,
        /// The verifier's last line.
        why: String,
    },
    /// The object of the programs is not as it should be.
    Object(String),
    /// Any other error.
    System(String),
}

impl Error {
    /// A failed system call, while doing something.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_kernel(doing: &str, e: &std::io::Error) -> Error {
        match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NotPermitted,
            Some(libc::ENOSYS) => Error::NoStructOps,
            _ => Error::System(format!("{doing}: {e}")),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Specification(e) => e.fmt(f),
            Error::NeedsRrtp(name) => write!(
                f,
                "{name} goes by packet numbers or has a receiver side, for which the kernel's TCP has no means: \
                 use {} over rrtp",
                over_rrtp(name)
            ),
            Error::Unresponsive(name) => write!(
                f,
                "{name} sends at a fixed rate and ignores other flows: use rrtp+{name} over rrtp"
            ),
            Error::NotNative(name) => write!(
                f,
                "{name} is not inside the kernel: --native has stpd only, and without --native all others run beside it"
            ),
            Error::BadName(name) => write!(
                f,
                "'{name}' cannot be a congestion control's name: 1 to 15 letters, digits and underscores, such as \
                 --as nw_test"
            ),
            Error::NameInUse(name) => write!(
                f,
                "the congestion control '{name}' exists already: `narrows kernel unload {name}`, or another name \
                 by --as"
            ),
            Error::NotPermitted => write!(
                f,
                "missing rights: eBPF congestion controls need CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN; run it as \
                 root (sudo)"
            ),
            Error::NoBtf => write!(
                f,
                "this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF, which the \
                 distributions' kernels have, and /sys mounted"
            ),
            Error::DamagedBtf => {
                write!(f, "the kernel's BTF (/sys/kernel/btf/vmlinux) cannot be read")
            }
            Error::NoStructOps => write!(
                f,
                "this kernel takes no congestion control as eBPF: it needs Linux 6.4 or newer with CONFIG_BPF_JIT \
                 and CONFIG_BPF_SYSCALL"
            ),
            Error::Refused { program, why } => {
                write!(f, "the kernel refuses the eBPF program {program}: {why}")
            }
            Error::Object(why) => write!(f, "the eBPF programs do not fit this kernel: {why}"),
            Error::System(why) => f.write_str(why),
        }
    }
}

/// The protocol that runs a controller over rrtp: rrtp's own have theirs, with the loss classifier that they go by.
fn over_rrtp(controller: &str) -> String {
    if controller.starts_with("rrtp") { controller.into() } else { format!("rrtp+{controller}") }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Specification(e) => Some(e),
            _ => None,
        }
    }
}

impl From<SpecError> for Error {
    fn from(e: SpecError) -> Error {
        Error::Specification(e)
    }
}
