#!/bin/sh
# brood and PyTorch on one thread, one process after the other: make peer. PYTHON names an interpreter with torch.
# A second peer column has OpenBLAS take the fastest kernels that the processor runs, where it chooses others by itself.
# compare.sh choose prints those kernels and ends. CPUINFO names a file in place of /proc/cpuinfo.
set -eu
cd "$(dirname "$0")"

# has says whether the processor has all of these flags.
has() {
	for flag; do
		case " $flags " in *" $flag "*) ;; *) return 1 ;; esac
	done
}
flags="$(sed -n 's/^flags[^:]*://p' "${CPUINFO:-/proc/cpuinfo}" 2>/dev/null | head -n 1 | tr -s '\t' ' ')"
core=
if has avx512f avx512cd avx512bw avx512dq avx512vl; then
	core=SkylakeX
elif has avx2 fma; then
	core=Haswell
fi
if [ "${1:-}" = choose ]; then
	echo "$core"
	exit 0
fi

python="${PYTHON:-/usr/bin/python3}"
if ! "$python" -c 'import torch' 2>/dev/null; then
	echo "peer: $python has no PyTorch, so there is nothing to compare with: install it (apt-get install python3-torch libopenblas0-pthread) or name another with PYTHON=..."
	exit 0
fi
tmp="$(mktemp -d)"
trap 'rm -rf "$tmp"' EXIT
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
own="$(OPENBLAS_VERBOSE=2 "$python" -c 'import torch' 2>&1 | sed -n 's/^Core: *//p' | head -n 1)"
for suite in kernels train es noise; do
	echo "peer: measuring brood: $suite" >&2
	"${BROOD:-../../../bin/brood}" bench "$suite" --json
done >"$tmp/ours"
echo "peer: measuring PyTorch" >&2
"$python" peer.py measure >"$tmp/default"
set -- "$tmp/default"
kernels="OpenBLAS's own choice of kernels, ${own:-which it does not name}"
if [ -n "$core" ] && [ "$own" != "$core" ]; then
	echo "peer: measuring PyTorch with OPENBLAS_CORETYPE=$core" >&2
	OPENBLAS_CORETYPE="$core" "$python" peer.py measure >"$tmp/chosen"
	set -- "$@" "$tmp/chosen"
	kernels="$kernels, then OPENBLAS_CORETYPE=$core"
fi
echo "peer: PyTorch $("$python" -c 'import torch; print(torch.__version__)') with $kernels"
"$python" peer.py table "$tmp/ours" "$@"
