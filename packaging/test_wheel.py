"""Makes a wheel of the package and of the module that the tests have compiled beside it, without compiling anything.

Arguments: the package's sources as maturin has packed them, and the folder for the wheel.
"""

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = Path("python/python/narrows")
TAG = "cp310-abi3-linux_x86_64"


def main(sources: Path, folder: Path) -> None:
    name = sources.name.removesuffix(".tar.gz")
    info = f"{name}.dist-info"
    with tarfile.open(sources) as packed, tempfile.TemporaryDirectory() as scratch:
        metadata = packed.extractfile(f"{name}/PKG-INFO").read()
        found = [p for p in sorted(PACKAGE.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
        files = {f"narrows/{p.relative_to(PACKAGE)}": p.read_bytes() for p in found}
        stripped = Path(scratch) / "module"
        subprocess.run(["strip", "-o", stripped, PACKAGE / "_narrows.abi3.so"], check=True)
        files["narrows/_narrows.abi3.so"] = stripped.read_bytes()
    files[f"{info}/METADATA"] = metadata
    wheel = f"Wheel-Version: 1.0\nGenerator: narrows\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    files[f"{info}/WHEEL"] = wheel.encode()
    record = f"{info}/RECORD"
    lines = [f"{path},sha256={digest(data)},{len(data)}" for path, data in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    with zipfile.ZipFile(folder / f"{name}-{TAG}.whl", "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in files.items():
            made.writestr(path, data)


def digest(data: bytes) -> str:
    """The hash in the form of a RECORD."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main(Path(sys.argv[1]), Path(sys.argv[2]))
