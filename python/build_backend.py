"""Build maturin's way, but say at once if Rust is missing.

Without cargo, maturin would download a Rust toolchain.
"""

import shutil
import sys
from typing import Any

from maturin import *  # noqa: F403
from maturin import get_requires_for_build_wheel as _requires

MESSAGE = (
    "narrows: this is the source of the package, and its build needs Rust 1.88 or newer "
    "(https://rustup.rs) and a C compiler. Wheels need neither: pip install --only-binary narrows narrows"
)


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what a build needs beside maturin, if there is a compiler."""
    if shutil.which("cargo") is None:
        sys.exit(MESSAGE)
    return _requires(config_settings)


get_requires_for_build_editable = get_requires_for_build_wheel
