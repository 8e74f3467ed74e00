#!/bin/bash
# Installs the wheel and runs a notebook with it, and tries the sources, in fresh environments without Rust. Argument:
# the folder of the packages.
set -euo pipefail
folder=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
clean() { env -i HOME="$scratch" PATH="$scratch/venv/bin:/usr/bin:/bin" LANG=C.UTF-8 "$@"; }
never() { if "$@" >/dev/null 2>&1; then return 1; fi; }
never clean sh -c 'command -v cargo || command -v rustc'
clean python3 -m venv "$scratch/venv"
clean pip install --quiet "$folder"/narrows-*.whl
notebook=$(realpath python/notebooks/teach_congestion_control.ipynb)
cd "$scratch"
clean python -c "
import narrows
result = narrows.compare('20Mbit/s,25ms,loss=0.5%', protocols=['cubic', 'rrtp'], seeds=2, duration='5s')
assert '<' in result._repr_html_()
print('wheel: compares', narrows.__file__.split('/')[-2], 'without Rust')"
clean pip install --quiet matplotlib 'nbclient>=0.10,<1' 'ipykernel>=6,<8'
clean env NARROWS_QUICK=1 MPLBACKEND=agg python -c "
import nbclient, nbformat, sys
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=300, kernel_name='python3').execute()
print('wheel: a notebook runs,', sum(len(cell.get('outputs', [])) for cell in notebook.cells), 'outputs')" "$notebook"
said=$(clean pip install --no-deps "$folder"/narrows-?.?.?.tar.gz 2>&1) && exit 1
grep -m 1 -o 'narrows: this is the source.*' <<<"$said"
# What maturin would install to download a compiler.
never grep -i puccinialin <<<"$said"
