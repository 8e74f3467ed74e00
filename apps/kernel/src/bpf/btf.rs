//! The layout of `tcp_congestion_ops` in the running kernel, from its BTF: aya-obj relocates programs but does not
//! show a type's members.

use crate::Error;

/// Where the kernel describes its types.
pub const PATH: &str = "/sys/kernel/btf/vmlinux";

const STRUCT: u32 = 4;
const POINTER: u32 = 2;
const FUNCTION_TYPE: u32 = 13;

/// A member of a type.
#[derive(Clone, Debug)]
pub struct BtfMember {
    /// Its number, which is how bpf(2) names it.
    pub index: u32,
    /// Bytes from the start of the type.
    pub offset: usize,
    /// Arguments, if it points to a function.
    pub arguments: usize,
}

/// Layout of the kernel's `tcp_congestion_ops`.
#[derive(Debug)]
pub struct OpsLayout {
    /// Type number of `tcp_congestion_ops`.
    pub ops: u32,
    /// Type number of the value that registers it, its size, and where the ops are in it.
    pub value: u32,
    /// Size of that value in bytes.
    pub value_size: usize,
    /// Where the ops are in it.
    pub data: usize,
    members: Vec<(String, BtfMember)>,
}

impl OpsLayout {
    /// The member of that name.
    pub fn member(&self, name: &str) -> Option<&BtfMember> {
        self.members.iter().find(|(n, _)| n == name).map(|(_, m)| m)
    }

    /// Reads it from a kernel's BTF.
    ///
    /// # Errors
    /// BTF that is damaged, or without congestion controls by eBPF.
    pub fn read(btf: &[u8]) -> Result<OpsLayout, Error> {
        let types = Types::read(btf).ok_or(Error::DamagedBtf)?;
        let find = |name: &str| types.find(name).ok_or(Error::NoStructOps);
        let ops = find("tcp_congestion_ops")?;
        let value = find("bpf_struct_ops_tcp_congestion_ops")?;
        let damaged = Error::DamagedBtf;
        let members = types.members(ops).ok_or(Error::DamagedBtf)?;
        let of_value = types.members(value).ok_or(Error::DamagedBtf)?;
        let data = of_value.iter().find(|(n, _)| n == "data").ok_or(damaged)?.1.offset;
        let value_size = types.at(value).ok_or(Error::DamagedBtf)?.size as usize;
        Ok(OpsLayout { ops, value, value_size, data, members })
    }
}

struct Types<'a> {
    bytes: &'a [u8],
    strings: usize,
    /// Where each type begins; number 0 is void.
    starts: Vec<usize>,
}

struct Type {
    name: u32,
    kind: u32,
    count: usize,
    /// Size, or the type that it points to.
    size: u32,
    has_bit_fields: bool,
    rest: usize,
}

impl<'a> Types<'a> {
    fn read(bytes: &'a [u8]) -> Option<Types<'a>> {
        let mut types = Types { bytes, strings: 0, starts: vec![0] };
        if types.word(0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header = types.word(4)? as usize;
        let begin = header.checked_add(types.word(8)? as usize)?;
        let end = begin.checked_add(types.word(12)? as usize)?;
        types.strings = header.checked_add(types.word(16)? as usize)?;
        let mut at = begin;
        while at < end {
            types.starts.push(at);
            let t = types.parse(at)?;
            let rest = match t.kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => t.count.checked_mul(12)?,
                6 | 13 => t.count.checked_mul(8)?,
                _ => 0,
            };
            at = t.rest.checked_add(rest)?;
        }
        Some(types)
    }
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }
    fn parse(&self, at: usize) -> Option<Type> {
        let info = self.word(at + 4)?;
        Some(Type {
            name: self.word(at)?,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 == 1,
            size: self.word(at + 8)?,
            rest: at + 12,
        })
    }
    fn at(&self, number: u32) -> Option<Type> {
        self.parse(*self.starts.get(number as usize).filter(|at| **at > 0)?)
    }
    fn name(&self, offset: u32) -> Option<&'a str> {
        let bytes = self.bytes.get(self.strings.checked_add(offset as usize)?..)?;
        let end = bytes.iter().position(|b| *b == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }
    /// The structure of that name.
    fn find(&self, name: &str) -> Option<u32> {
        let is_it = |number: &u32| {
            self.at(*number).is_some_and(|t| t.kind == STRUCT && self.name(t.name) == Some(name))
        };
        (1..u32::try_from(self.starts.len()).ok()?).find(is_it)
    }
    fn members(&self, number: u32) -> Option<Vec<(String, BtfMember)>> {
        let t = self.at(number)?;
        (0..t.count)
            .map(|i| {
                let at = t.rest + i * 12;
                let bits = self.word(at + 8)?;
                let bits = if t.has_bit_fields { bits & 0x00ff_ffff } else { bits };
                let member = BtfMember {
                    index: u32::try_from(i).ok()?,
                    offset: bits as usize / 8,
                    arguments: self.arguments(self.word(at + 4)?),
                };
                Some((self.name(self.word(at)?)?.to_string(), member))
            })
            .collect()
    }
    fn arguments(&self, number: u32) -> usize {
        let function = self
            .at(number)
            .filter(|t| t.kind == POINTER)
            .and_then(|pointer| self.at(pointer.size))
            .filter(|t| t.kind == FUNCTION_TYPE);
        function.map_or(0, |f| f.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects against reading past the end of any damaged file.
    #[test]
    fn malformed_btf_is_refused() {
        for bytes in [&b""[..], b"\x9f\xeb\x01\x00", &[0xff; 64]] {
            assert!(OpsLayout::read(bytes).is_err());
        }
        let Ok(btf) = std::fs::read(PATH) else {
            eprintln!("skipped: this kernel has no BTF");
            return;
        };
        assert!(OpsLayout::read(&btf).is_ok());
        assert!(OpsLayout::read(&btf[..btf.len() / 2]).is_err());
    }
}
