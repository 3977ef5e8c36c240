#!/bin/sh
# brood and PyTorch on one thread, one process after the other: make peer. PYTHON names an interpreter with torch.
# The second peer column has OpenBLAS take its AVX-512 kernels, which it does not choose by itself on some processors.
set -eu
cd "$(dirname "$0")"
python="${PYTHON:-/usr/bin/python3}"
if ! "$python" -c 'import torch' 2>/dev/null; then
	echo "peer: $python has no PyTorch, so there is nothing to compare with: install it (apt-get install python3-torch libopenblas0-pthread) or name another with PYTHON=..."
	exit 0
fi
tmp="$(mktemp -d)"
trap 'rm -rf "$tmp"' EXIT
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
for suite in kernels train es noise; do
	"${BROOD:-../../../bin/brood}" bench "$suite" --json
done >"$tmp/ours"
"$python" peer.py measure >"$tmp/default"
OPENBLAS_CORETYPE=SkylakeX "$python" peer.py measure >"$tmp/skylake"
echo "peer: PyTorch $("$python" -c 'import torch; print(torch.__version__)') with its own choice of kernels, then with OPENBLAS_CORETYPE=SkylakeX"
"$python" peer.py table "$tmp/ours" "$tmp/default" "$tmp/skylake"
