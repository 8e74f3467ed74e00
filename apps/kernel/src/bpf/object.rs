//! The compiled programs, and their loading into the kernel.
//!
//! aya-obj reads the object and adapts it to the running kernel (CO-RE). Neither it nor aya can register a congestion
//! control (`struct_ops`), so this module calls bpf(2) for that.

use super::btf::{self, OpsLayout};
use super::ring::Ring;
use super::system::{SharedMemory, attributes, bpf, bpf_fd, number};
use crate::record::{CONTROL_BYTES, RING_BYTES, SLOT_BYTES, SLOTS};
use crate::{Error, Native};
use aya_obj::btf::{Btf, BtfType, Int, IntEncoding};
use aya_obj::generated::{
    bpf_attach_type, bpf_attr, bpf_attr__bindgen_ty_14__bindgen_ty_1,
    bpf_attr__bindgen_ty_14__bindgen_ty_2, bpf_cmd, bpf_insn, bpf_map_type, bpf_prog_type,
};
use aya_obj::{Map, Object};
use std::collections::{BTreeMap, HashSet};
use std::ffi::c_char;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `bpf/narrows.bpf.c`, compiled; `cargo xtask check` compiles it again and compares.
pub const OBJECT: &[u8] = include_bytes!("../../bpf/narrows.bpf.o");
/// The programs' licence, as the kernel wants to hear it.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";
/// A map that registers an operation by a link, which vanishes with its last descriptor.
const BY_LINK: u32 = 1 << 13;
/// Programs without rights may choose it, and other network namespaces may have it as their default
/// (`TCP_CONG_NON_RESTRICTED`).
const ANYBODY: u32 = 1;
/// Operations that every congestion control has here. `cong_control` has two forms.
const OPERATIONS: [&str; 7] =
    ["init", "release", "set_state", "ssthresh", "undo_cwnd", "min_tso_segs", "cong_control"];
/// Longest name, without its final zero.
pub const MAX_NAME: usize = 15;

/// Where the kernel calls a program.
#[derive(Clone, Copy, Debug)]
enum ProgramType {
    /// Member of the operations with that type number.
    Operation { ops: u32, member: u32 },
    /// Attached to a cgroup.
    SockOps,
    /// Run by bpf(2).
    #[cfg(test)]
    Test,
}

/// A program that bpf(2) calls.
#[cfg(test)]
#[derive(Debug)]
pub struct TestProgram {
    program: OwnedFd,
}

#[cfg(test)]
impl TestProgram {
    /// Runs the program on these bytes, which it may change.
    pub fn run(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut attr = attributes();
        attr.test.prog_fd = number(&self.program);
        attr.test.ctx_in = bytes.as_mut_ptr() as u64;
        attr.test.ctx_size_in = bytes.len() as u32;
        bpf(bpf_cmd::BPF_PROG_TEST_RUN, &attr).map(|_| ())
    }
}

/// Handle of a congestion control in the kernel's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RegisteredControl {
    /// A descriptor: it vanishes with its last holder.
    ByLink,
    /// The map's own element: it stays until that is deleted.
    ByMap,
}

/// The programs, fitted to this kernel, with their maps.
#[derive(Debug)]
pub struct BpfPrograms {
    object: Object,
    layout: OpsLayout,
    maps: BTreeMap<String, OwnedFd>,
    ring_bytes: usize,
}

/// A registered congestion control. Dropping it, or the end of the process, removes it from the list. Connections that
/// use it keep it.
#[derive(Debug)]
pub struct Loaded {
    /// Where records come from.
    pub ring: Ring,
    /// Its descriptor becomes readable when a record wakes the reader.
    pub ring_fd: OwnedFd,
    /// The connections' slots.
    pub slots: SharedMemory,
    /// State that all connections share.
    pub control: SharedMemory,
    /// Ids of the maps of slots and of shared state.
    pub map_ids: [u32; 2],
    /// Id for [`unregister`], if the registration outlives this value.
    pub lasting: Option<u32>,
    _link: Option<OwnedFd>,
}

/// Chooses the congestion control of a cgroup's connections while it lives.
#[derive(Debug)]
pub struct Chooser {
    _link: OwnedFd,
}

fn name_of(text: &str) -> [c_char; 16] {
    let mut name = [0; 16];
    let valid = |b: u8| if b.is_ascii_alphanumeric() || b == b'_' { b } else { b'_' };
    name.iter_mut().zip(text.bytes().take(MAX_NAME)).for_each(|(to, b)| *to = valid(b) as c_char);
    name
}

impl BpfPrograms {
    /// Reads the object and fits it to this kernel; makes the maps.
    ///
    /// # Errors
    /// A kernel without BTF or eBPF congestion controls; missing rights.
    pub fn prepare() -> Result<BpfPrograms, Error> {
        BpfPrograms::prepare_with(RING_BYTES)
    }

    /// With a ring of `ring_bytes` bytes, a power of two of whole pages.
    pub(crate) fn prepare_with(ring_bytes: usize) -> Result<BpfPrograms, Error> {
        let bytes = std::fs::read(btf::PATH).map_err(|_| Error::NoBtf)?;
        let layout = OpsLayout::read(&bytes)?;
        let kernel = Btf::from_sys_fs().map_err(|_| Error::DamagedBtf)?;
        let mut object = Object::parse(OBJECT).map_err(|e| Error::Object(e.to_string()))?;
        object.relocate_btf(&kernel).map_err(|e| Error::Object(e.to_string()))?;
        let definitions = object.maps.clone();
        let mut maps = BTreeMap::new();
        for (name, map) in &definitions {
            let entries = match name.as_str() {
                "records" => ring_bytes as u32,
                _ => map.max_entries(),
            };
            maps.insert(name.clone(), create_map(name, map, entries)?);
        }
        let places =
            definitions.iter().map(|(name, map)| (name.as_str(), maps[name].as_raw_fd(), map));
        object.relocate_maps(places, &HashSet::new()).map_err(|e| Error::Object(e.to_string()))?;
        Ok(BpfPrograms { object, layout, maps, ring_bytes })
    }

    fn map(&self, name: &str) -> Result<&OwnedFd, Error> {
        self.maps.get(name).ok_or_else(|| Error::Object(format!("no map '{name}'")))
    }

    fn program(&self, name: &str, purpose: ProgramType) -> Result<OwnedFd, Error> {
        let function = self.object.functions.values().find(|f| f.name == name);
        let function = function.ok_or_else(|| Error::Object(format!("no program '{name}'")))?;
        load_program(name, &function.instructions, purpose)
    }

    /// Registers a congestion control of that name.
    ///
    /// # Errors
    /// A name that is in use, missing rights, or a kernel that refuses the programs.
    pub fn register(&self, name: &str) -> Result<Loaded, Error> {
        self.register_with(name, SLOTS as u32)
    }

    /// With `places` slots rather than the default number.
    pub(crate) fn register_with(&self, name: &str, places: u32) -> Result<Loaded, Error> {
        self.register_as(name, places, "nw", RegisteredControl::ByLink)
    }

    /// Registers a congestion control that is wholly inside the kernel. One that is `lasting` needs no process: it
    /// stays until [`unregister`].
    ///
    /// # Errors
    /// As [`register`](BpfPrograms::register).
    pub fn register_native(
        &self,
        name: &str,
        native: &Native,
        lasting: bool,
    ) -> Result<Loaded, Error> {
        self.fill(native)?;
        let how = if lasting { RegisteredControl::ByMap } else { RegisteredControl::ByLink };
        self.register_as(name, SLOTS as u32, "nw_stpd", how)
    }

    fn fill(&self, native: &Native) -> Result<(), Error> {
        update(self.map("stpd")?, Some(0), &native.parameters())?;
        for (product, gains) in (0..).zip(native.gains()) {
            update(self.map("gains")?, Some(product), &gains)?;
        }
        Ok(())
    }

    /// Registers the programs whose names begin with `begin`. For operations without such a program, the common one is
    /// used.
    fn register_as(
        &self,
        name: &str,
        places: u32,
        begin: &str,
        how: RegisteredControl,
    ) -> Result<Loaded, Error> {
        if is_registered(name) {
            return Err(Error::NameInUse(name.to_string()));
        }
        // On a stack of free slots: those with low numbers are taken first.
        for number in (0..places).rev() {
            update(self.map("free_slots")?, None, &number.to_ne_bytes())?;
        }
        let mut value = vec![0_u8; self.layout.value_size];
        let mut programs = Vec::new();
        for operation in OPERATIONS {
            let member = self.layout.member(operation).ok_or(Error::NoStructOps)?;
            let form = match (operation, member.arguments) {
                ("cong_control", 2) => "cong_control_2",
                _ => operation,
            };
            let own = format!("{begin}_{form}");
            let is_own = self.object.functions.values().any(|f| f.name == own);
            let form = if is_own { own } else { format!("nw_{form}") };
            let purpose = ProgramType::Operation { ops: self.layout.ops, member: member.index };
            let program = self.program(&form, purpose)?;
            let at = self.layout.data + member.offset;
            put(&mut value, at, &u64::from(number(&program)).to_ne_bytes())?;
            programs.push(program);
        }
        let at = self.layout.member("name").ok_or(Error::NoStructOps)?.offset + self.layout.data;
        put(&mut value, at, &name.as_bytes()[..name.len().min(MAX_NAME)])?;
        let at = self.layout.member("flags").ok_or(Error::NoStructOps)?.offset + self.layout.data;
        put(&mut value, at, &ANYBODY.to_ne_bytes())?;
        let ops = self.ops_map(name, how)?;
        let refused = |e: io::Error| match e.raw_os_error() {
            Some(libc::EEXIST) => Error::NameInUse(name.to_string()),
            _ => Error::from_kernel("registering the congestion control", &e),
        };
        set(&ops, Some(0), &value).map_err(refused)?;
        let link = match how {
            RegisteredControl::ByLink => Some(link(&ops, None).map_err(refused)?),
            RegisteredControl::ByMap => None,
        };
        let mapping = |e: io::Error| Error::from_kernel("mapping the programs' memory", &e);
        let slots = self.map("slots")?;
        let control = self.map("control")?;
        let ring_fd = self.map("records")?.try_clone().map_err(mapping)?;
        Ok(Loaded {
            ring: Ring::map(&ring_fd, self.ring_bytes).map_err(mapping)?,
            ring_fd,
            slots: SharedMemory::map(slots, 0, SLOTS * SLOT_BYTES, true).map_err(mapping)?,
            control: SharedMemory::map(control, 0, CONTROL_BYTES, true).map_err(mapping)?,
            map_ids: [id(slots)?, id(control)?],
            lasting: if link.is_none() { Some(id(&ops)?) } else { None },
            _link: link,
        })
    }

    fn ops_map(&self, name: &str, how: RegisteredControl) -> Result<OwnedFd, Error> {
        let btf = any_btf()?;
        let mut attr = attributes();
        attr.__bindgen_anon_1 = aya_obj::generated::bpf_attr__bindgen_ty_1 {
            map_type: bpf_map_type::BPF_MAP_TYPE_STRUCT_OPS as u32,
            key_size: 4,
            value_size: u32::try_from(self.layout.value_size).map_err(|_| Error::DamagedBtf)?,
            max_entries: 1,
            map_flags: if how == RegisteredControl::ByLink { BY_LINK } else { 0 },
            map_name: name_of(name),
            btf_fd: number(&btf),
            btf_vmlinux_value_type_id: self.layout.value,
            ..no_map()
        };
        bpf_fd(bpf_cmd::BPF_MAP_CREATE, &attr).map_err(|e| match e.raw_os_error() {
            Some(libc::EINVAL) => Error::NoStructOps,
            _ => Error::from_kernel("making the congestion control", &e),
        })
    }

    /// A program that is called on bytes that it may change: `nw_stpd_step`.
    #[cfg(test)]
    pub(crate) fn test_program(&self, name: &str, native: &Native) -> Result<TestProgram, Error> {
        self.fill(native)?;
        Ok(TestProgram { program: self.program(name, ProgramType::Test)? })
    }

    /// Lets every new connection of a cgroup have the congestion control of that name.
    ///
    /// # Errors
    /// Missing rights, or a kernel that refuses.
    pub fn choose(&self, cgroup: &OwnedFd, name: &str) -> Result<Chooser, Error> {
        let mut text = [0; 16];
        put(&mut text, 0, &name.as_bytes()[..name.len().min(MAX_NAME)])?;
        update(self.map("chosen")?, Some(0), &text)?;
        let program = self.program("nw_choose", ProgramType::SockOps)?;
        let link = link(&program, Some(cgroup))
            .map_err(|e| Error::from_kernel("choosing it for the command's cgroup", &e))?;
        Ok(Chooser { _link: link })
    }
}

/// The shared memory of a congestion control that another process has loaded, by its maps' ids.
///
/// # Errors
/// The maps no longer exist, or permission is missing.
pub fn foreign(map_ids: [u32; 2]) -> Result<[SharedMemory; 2], Error> {
    let open = |id: u32, length: usize| {
        let mut attr = attributes();
        attr.__bindgen_anon_6.__bindgen_anon_1.map_id = id;
        bpf_fd(bpf_cmd::BPF_MAP_GET_FD_BY_ID, &attr)
            .and_then(|fd| SharedMemory::map(&fd, 0, length, false))
            .map_err(|e| Error::from_kernel("opening the programs' memory", &e))
    };
    Ok([open(map_ids[0], SLOTS * SLOT_BYTES)?, open(map_ids[1], CONTROL_BYTES)?])
}

/// Whether the kernel has a congestion control of this name.
pub fn is_registered(name: &str) -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .is_ok_and(|known| known.split_whitespace().any(|k| k == name))
}

/// Takes a lasting congestion control from the kernel's list; its connections keep it.
///
/// # Errors
/// It is not there any more; missing rights.
pub fn unregister(ops_id: u32) -> Result<(), Error> {
    let failed = |e: io::Error| Error::from_kernel("unregistering the congestion control", &e);
    let mut attr = attributes();
    attr.__bindgen_anon_6.__bindgen_anon_1.map_id = ops_id;
    let ops = bpf_fd(bpf_cmd::BPF_MAP_GET_FD_BY_ID, &attr).map_err(failed)?;
    let key = 0_u32.to_ne_bytes();
    let mut attr = attributes();
    attr.__bindgen_anon_2.map_fd = number(&ops);
    attr.__bindgen_anon_2.key = key.as_ptr() as u64;
    bpf(bpf_cmd::BPF_MAP_DELETE_ELEM, &attr).map(|_| ()).map_err(failed)
}

fn no_map() -> aya_obj::generated::bpf_attr__bindgen_ty_1 {
    aya_obj::generated::bpf_attr__bindgen_ty_1 {
        map_type: 0,
        key_size: 0,
        value_size: 0,
        max_entries: 0,
        map_flags: 0,
        inner_map_fd: 0,
        numa_node: 0,
        map_name: [0; 16],
        map_ifindex: 0,
        btf_fd: 0,
        btf_key_type_id: 0,
        btf_value_type_id: 0,
        btf_vmlinux_value_type_id: 0,
        map_extra: 0,
        value_type_btf_obj_fd: 0,
        map_token_fd: 0,
    }
}

fn create_map(name: &str, map: &Map, entries: u32) -> Result<OwnedFd, Error> {
    let mut attr = attributes();
    attr.__bindgen_anon_1 = aya_obj::generated::bpf_attr__bindgen_ty_1 {
        map_type: map.map_type(),
        key_size: map.key_size(),
        value_size: map.value_size(),
        max_entries: entries,
        map_flags: map.map_flags(),
        map_name: name_of(name),
        ..no_map()
    };
    bpf_fd(bpf_cmd::BPF_MAP_CREATE, &attr)
        .map_err(|e| Error::from_kernel(&format!("making the map '{name}'"), &e))
}

/// The kernel requires BTF before it accepts a value of one of its types. This one has a single integer.
fn any_btf() -> Result<OwnedFd, Error> {
    let mut btf = Btf::new();
    let name = btf.add_string("int");
    btf.add_type(BtfType::Int(Int::new(name, 4, IntEncoding::Signed, 0)));
    let bytes = btf.to_bytes();
    let mut attr = attributes();
    attr.__bindgen_anon_7.btf = bytes.as_ptr() as u64;
    attr.__bindgen_anon_7.btf_size = bytes.len() as u32;
    bpf_fd(bpf_cmd::BPF_BTF_LOAD, &attr).map_err(|e| Error::from_kernel("loading BTF", &e))
}

/// Sets an element, or pushes one where there are no keys.
fn update(map: &OwnedFd, key: Option<u32>, value: &[u8]) -> Result<(), Error> {
    set(map, key, value).map_err(|e| Error::from_kernel("filling a map", &e))
}

fn set(map: &OwnedFd, key: Option<u32>, value: &[u8]) -> io::Result<()> {
    let mut attr = attributes();
    let key = key.map(u32::to_ne_bytes);
    attr.__bindgen_anon_2.map_fd = number(map);
    attr.__bindgen_anon_2.key = key.as_ref().map_or(0, |k| k.as_ptr() as u64);
    attr.__bindgen_anon_2.__bindgen_anon_1.value = value.as_ptr() as u64;
    bpf(bpf_cmd::BPF_MAP_UPDATE_ELEM, &attr).map(|_| ())
}

fn put(value: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Error> {
    let place = value.get_mut(at..at + bytes.len()).ok_or(Error::DamagedBtf)?;
    place.copy_from_slice(bytes);
    Ok(())
}

fn load_program(
    name: &str,
    instructions: &[bpf_insn],
    purpose: ProgramType,
) -> Result<OwnedFd, Error> {
    let mut log = vec![0_u8; 1 << 20];
    let mut attr = attributes();
    let program = |attr: &mut bpf_attr| {
        let (kind, target, member) = match purpose {
            ProgramType::Operation { ops, member } => {
                (bpf_prog_type::BPF_PROG_TYPE_STRUCT_OPS, ops, member)
            }
            ProgramType::SockOps => {
                let attach = bpf_attach_type::BPF_CGROUP_SOCK_OPS as u32;
                (bpf_prog_type::BPF_PROG_TYPE_SOCK_OPS, 0, attach)
            }
            #[cfg(test)]
            ProgramType::Test => {
                // Programs of this type must be allowed to sleep.
                attr.__bindgen_anon_3.prog_flags = 1 << 4;
                (bpf_prog_type::BPF_PROG_TYPE_SYSCALL, 0, 0)
            }
        };
        attr.__bindgen_anon_3.prog_type = kind as u32;
        attr.__bindgen_anon_3.insn_cnt = instructions.len() as u32;
        attr.__bindgen_anon_3.insns = instructions.as_ptr() as u64;
        attr.__bindgen_anon_3.license = LICENCE.as_ptr() as u64;
        attr.__bindgen_anon_3.prog_name = name_of(name);
        attr.__bindgen_anon_3.expected_attach_type = member;
        attr.__bindgen_anon_3.attach_btf_id = target;
    };
    program(&mut attr);
    let refused = match bpf_fd(bpf_cmd::BPF_PROG_LOAD, &attr) {
        Ok(program) => return Ok(program),
        Err(e) => e,
    };
    if matches!(refused.raw_os_error(), Some(libc::E2BIG)) {
        let why = "its verifier would need too many steps".to_string();
        return Err(Error::Refused { program: name.to_string(), why });
    }
    if matches!(refused.raw_os_error(), Some(libc::EPERM)) {
        return Err(Error::NotPermitted);
    }
    attr.__bindgen_anon_3.log_level = 1;
    attr.__bindgen_anon_3.log_size = log.len() as u32;
    attr.__bindgen_anon_3.log_buf = log.as_mut_ptr() as u64;
    if let Ok(program) = bpf_fd(bpf_cmd::BPF_PROG_LOAD, &attr) {
        return Ok(program);
    }
    let text = String::from_utf8_lossy(&log);
    let text = text.trim_end_matches('\0');
    if std::env::var_os("NARROWS_VERIFIER_LOG").is_some() {
        eprintln!("{text}");
    }
    let line = text.lines().rev().find(|l| !l.is_empty() && !l.starts_with("processed"));
    Err(Error::Refused { program: name.to_string(), why: line.unwrap_or("no reason").to_string() })
}

/// Attaches a program to a cgroup, or registers an operations' map.
fn link(what: &OwnedFd, cgroup: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    let fd = number(what);
    attr.link_create.__bindgen_anon_1 = bpf_attr__bindgen_ty_14__bindgen_ty_1 { prog_fd: fd };
    if let Some(cgroup) = cgroup {
        let target = number(cgroup);
        attr.link_create.__bindgen_anon_2 =
            bpf_attr__bindgen_ty_14__bindgen_ty_2 { target_fd: target };
        attr.link_create.attach_type = bpf_attach_type::BPF_CGROUP_SOCK_OPS as u32;
    } else {
        attr.link_create.attach_type = bpf_attach_type::BPF_STRUCT_OPS as u32;
    }
    bpf_fd(bpf_cmd::BPF_LINK_CREATE, &attr)
}

/// A map's number, from its description in /proc.
fn id(map: &OwnedFd) -> Result<u32, Error> {
    let path = format!("/proc/self/fdinfo/{}", map.as_raw_fd());
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let id = text.lines().find_map(|l| l.strip_prefix("map_id:")?.trim().parse().ok());
    id.ok_or_else(|| Error::Object("no number of a map".into()))
}
