"""Packs the built module and the package's Python files into a wheel for this system, with the metadata of the source
distribution: `cargo xtask package --debug` tries such a wheel. maturin would compile every crate again.

    python3 tools/package/debug_wheel.py SDIST MODULE FOLDER
"""

import base64
import hashlib
import sys
import tarfile
import zipfile
from pathlib import Path

TAG = "cp310-abi3-linux_x86_64"


def main(sdist, module, folder):
    """Writes the wheel into `folder`."""
    name = Path(sdist).name.removesuffix(".tar.gz")
    files = {"narrows/_narrows.abi3.so": Path(module).read_bytes()}
    with tarfile.open(sdist) as source:
        for member in source.getmembers():
            parts = Path(member.name).parts[1:]
            if parts[:2] == ("python", "narrows") and member.isfile():
                files["/".join(parts[1:])] = source.extractfile(member).read()
        files[f"{name}.dist-info/METADATA"] = source.extractfile(f"{name}/PKG-INFO").read()
    wheel = f"Wheel-Version: 1.0\nGenerator: narrows\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    files[f"{name}.dist-info/WHEEL"] = wheel.encode()
    record = f"{name}.dist-info/RECORD"
    rows = [f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items()]
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    with zipfile.ZipFile(Path(folder) / f"{name}-{TAG}.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            out.writestr(path, data)


def digest(data):
    """The SHA-256 of a file as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main(*sys.argv[1:])
