"""Train a model of your own with brood: https://pytorch.org modules, or plain functions of any library.

    import brood, torch, torch.nn.functional as F

    class Net(torch.nn.Module): ...

    brood.serve(Net, loss=F.cross_entropy, train=(x, y), test=(x_test, y_test))

and then

    brood run --algorithm diloco --members 4 --program 'python3 train.py'

This file belongs to the brood that printed it (brood program python > brood.py). It needs Python 3.8 and its standard
library; serve also needs torch 1.12 or later. docs/programs.md describes both, and the protocol.
"""

import array
import hashlib
import json
import mmap
import os
import random
import struct
import sys

_VERSION = 2
_HELLO, _MEMORY, _INIT, _GRADIENT, _EVALUATE, _STATISTICS, _STEPS, _CANDIDATE, _DESCRIPTION, _DONE = \
    1, 2, 3, 4, 5, 6, 7, 8, 65, 66
_OWN_STATISTICS, _ANCHORED, _CENTRE, _PARAMETERS, _ANNOUNCED = 1, 2, 4, 8, 16
_SAMPLES = 0x2545f4914f6cdd1d  # separates the seed of samples from the seed of the model
_HASHED = 64 << 20  # bytes of an array that its digest reads


def serve(model, loss=None, train=None, test=None, validation=None, *, compute=None, score=None, metrics=None,
          name=None, buffers=(), device=None, steps=None, optimiser=None, scaler=None, candidates=None, workers=0,
          threads=1, processes=0, timeout=600, batch=512):
    """Serve a torch model to brood. It does not return: the process ends with brood.

    model       a class or function that makes the module, called under the seed of each initial value; or a module,
                whose values every member begins with (fine-tuning)
    loss        loss(output, target): the mean over the batch
    train, test, validation
                a data set with len() and [i], or a tuple of tensors or arrays of equal length. Without validation,
                brood holds out a twelfth of train
    compute     in place of loss, compute(model, batch): the mean loss over a batch, or, with score="classes",
                (loss, samples that are predicted right)
    score       "classes": predictions are right or wrong; "loss": only the loss counts. Default: by the loss
    metrics     {name: f(output, target)}: further means over a batch that evaluations report
    buffers     names of buffers that a forward pass of training changes, besides those of batch-norm, such as the
                vectors of spectral normalisation. Each member has its own; those of the centre are rebuilt
    device      "cpu", "cuda:0", ...; default: cuda if there is one, else cpu. --device of brood takes precedence.
                Data sets that are tensors are copied to it
    steps       take the steps of SGD, Adam and AdamW here, so that parameters come and go once for many steps.
                Default: on a device. Results differ from those of brood's own steps by rounding
    optimiser   optimiser(model, eta): a torch.optim.Optimizer of your own, such as RAdam(model.parameters(), lr=eta),
                that takes the steps here. brood keeps its state_dict with each member, and sets the learning rates:
                those of param_groups follow the knob eta in the proportions that they have here
    scaler      with optimiser: a GradScaler for losses in float16, whose state is kept too
    candidates  add the noise of the candidates of evolution strategies here, with the bits of brood, so that the
                centre comes once for all of them. Default: on a device; on a CPU brood is faster
    workers     processes of each process that load samples of a data set ahead of the steps and gradients that need
                them; 0: none. They are forked. Results do not depend on it
    threads     of this process on a CPU. The results of torch depend on it
    processes   of each worker; default: its threads divided by threads, or 1 on a device
    timeout     seconds that one task may take
    batch       samples of an evaluation that are computed at once
    """
    if train is None or (loss is None) == (compute is None):
        raise TypeError("brood.serve needs train, and either loss or compute")
    if metrics and compute:
        raise TypeError("brood.serve takes metrics with loss, not with compute")
    if scaler and not optimiser:
        raise TypeError("brood.serve takes a scaler with an optimiser only")
    hello = _begin()
    _run(_Torch(model, loss, [train, validation, test], compute, score, metrics, name, buffers,
                hello["device"] or device, steps, optimiser, scaler, candidates, workers, threads, processes, timeout,
                batch))


def functions(parameters, init, gradient, evaluate, *, train, data, test=0, validation=0, name="functions",
              score="loss", metrics=(), library="python", device="cpu", threads=1, processes=0, timeout=600):
    """Serve plain functions to brood, for JAX, numpy or your own code. It does not return, as serve.

    parameters  {name: shape}, all float32
    init        init(seed): {name: array}, the initial values
    gradient    gradient(parameters, samples, seed): (mean loss over the samples, {name: array}, its gradient)
    evaluate    evaluate(parameters, samples, seed): (sum of the loss, correct predictions), and with metrics a third
                element, the list of their sums
    train, validation, test
                numbers of samples. Their ids count from 0 in this order
    data        a text that changes whenever the samples do, such as a digest: brood takes equal texts for equal data

    parameters are numpy arrays of their shapes if numpy is there, else flat arrays of floats; samples is a list of ids.
    The functions may return any sequence of numbers. They must depend on their arguments only.
    """
    _begin()
    _run(_Functions(locals()))


def maximise(f, parameters, *, metrics=(), low=None, high=None, init="zero", scale=1.0, start=0.0,
             seeds=(1000, 16, 64), name="objective", processes=0, timeout=60):
    """Have brood maximise f(parameters, seed), a number, higher the better. It does not return, as serve.

        brood.maximise(lambda x, seed: -sum(v * v for v in x), 10)

        brood run --algorithm snes --objective 'python3 f.py'

    parameters  how many, or {name: shape}: f gets an array, or {name: array}, of numpy if it is there
    metrics     names of further results; then f returns (number, [metrics])
    low, high   bounds of what f sees
    init        initial values: "zero", "normal" with deviation scale, or "uniform" within the bounds or +-scale;
                start is added to each
    seeds       how many there are for training, validation and test. Equal arguments must give equal results
    timeout     seconds that one evaluation may take
    """
    shapes = {"x": [parameters]} if isinstance(parameters, int) else {n: list(s) for n, s in parameters.items()}
    if _in is None:
        _explain("this program is maximised by brood: brood run --algorithm openai-es --objective")
    if os.environ.get("BROOD_PROGRAM"):
        sys.exit("this program has no gradients: give it as --objective, not as --program")
    if scale <= 0:
        raise ValueError("brood.maximise: scale = %r: give a number above 0" % scale)
    if os.environ.get("BROOD_OBJECTIVE") == "spec":
        _out.write(_spec(shapes, low, high, init, scale, start, seeds, name, processes, timeout).encode())
        os._exit(0)
    try:
        _maximise(f, shapes, isinstance(parameters, int), list(metrics))
    except Exception:
        _die()


def environment(make, policy, parameters, *, normalise=4, limit=10000, **more):
    """Have brood maximise the return of episodes in an environment with Gymnasium's reset and step. It does not return.

    make        make(): an environment. reset(seed=...) gives (observation, info); step(action) gives (observation,
                reward, terminated, truncated, info)
    policy      policy(parameters, observation): the action
    parameters  as in maximise; more are its other arguments
    normalise   number of episodes of random actions, the same in every process, whose mean and deviation scale the
                observations, which become float32 arrays (needs numpy); 0: policy gets observations as they are
    limit       steps of an episode

    The metric steps is the length of an episode.
    """
    if _in is None or os.environ.get("BROOD_OBJECTIVE") == "spec":
        maximise(None, parameters, metrics=["steps"], **more)
    env, scale = make(), None if normalise else lambda o: o

    def play(x, seed):
        nonlocal scale
        scale = scale or _scale(env, normalise, limit)
        total, steps = _episode(env, lambda o: policy(x, scale(o)), seed, limit)
        return total, [steps]
    maximise(play, parameters, metrics=["steps"], **more)


def _scale(env, episodes, limit):
    """A function that scales observations by their mean and deviation in episodes of random actions."""
    import numpy
    seen = []

    def act(observation):
        seen.append(numpy.asarray(observation, "float64"))
        return env.action_space.sample()
    for seed in range(episodes):
        env.action_space.seed(seed)
        _episode(env, act, 2 ** 31 - 1 - seed, limit)
    mean, deviation = numpy.mean(seen, 0), numpy.std(seen, 0)
    deviation[deviation < 1e-6] = 1  # what does not vary in them may vary later
    return lambda o: ((numpy.asarray(o, "float64") - mean) / deviation).astype("float32")


def _episode(env, act, seed, limit):
    """The return and the number of steps of one episode."""
    _seed(seed)
    observation, _ = env.reset(seed=seed)
    total = 0.0
    for steps in range(1, limit + 1):
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        total += float(reward)
        if terminated or truncated:
            break
    return total, steps


def _spec(shapes, low, high, init, scale, start, seeds, name, processes, timeout):
    """The SPEC.toml of an objective."""
    def text(x):
        return json.dumps(x, ensure_ascii=False)
    lines = ["name = " + text(name), 'timeout = "%dms"' % round(1000 * timeout), "processes = %d" % processes,
             "[seeds]"] + ["%s = %d" % x for x in zip(("train", "validation", "test"), seeds)]
    for n, shape in shapes.items():
        lines += ["[[param]]", "name = " + text(n), "shape = " + text(shape), "init = " + text(init),
                  "scale = %r" % float(scale), "start = %r" % float(start)]
        lines += ["%s = %r" % (side, float(x)) for side, x in (("low", low), ("high", high)) if x is not None]
    return "\n".join(lines) + "\n"


def _maximise(f, shapes, flat, metrics):
    """Answer batches of candidates until brood ends: docs/objectives.md."""
    view, sizes = _arrays(shapes)
    total = sum(sizes.values())
    _, body = _read()
    wanted = struct.unpack_from("<I", body, 4)[0]
    if wanted != total:
        raise ValueError("brood.maximise has %d parameters, and the run %d: leave --params out" % (total, wanted))
    names = [n.encode() for n in metrics]
    _write(2, struct.pack("<II", 1, len(names)) + b"".join(struct.pack("<I", len(n)) + n for n in names))
    while True:
        _, body = _read()
        count, width = struct.unpack_from("<II", body)
        rows, out = memoryview(body)[8 + 16 * count:].cast("f"), [struct.pack("<I", count)]
        for k in range(count):
            task, seed = struct.unpack_from("<QQ", body, 8 + 16 * k)
            x = view(rows[k * width:(k + 1) * width])
            _seed(seed)
            result = f(x["x"] if flat else x, seed)
            value, more = result if metrics else (result, ())
            out.append(struct.pack("<Qd%dd" % len(metrics), task, float(value), *map(float, more)))
        _write(4, b"".join(out))


def _arrays(shapes):
    """A function from a flat row to {name: array}, and the number of elements of each."""
    sizes = {}
    for n, shape in shapes.items():
        sizes[n] = 1
        for d in shape:
            sizes[n] *= d
    try:
        import numpy
    except ImportError:
        numpy = None

    def view(row):
        out, lo = {}, 0
        for n, size in sizes.items():
            part, lo = row[lo:lo + size], lo + size
            out[n] = numpy.array(part, "float32").reshape(shapes[n]) if numpy else array.array("f", part)
        return out
    return view, sizes


# The streams to and from brood.

_hello = None
_in = _out = None


def _begin():
    """Read brood's greeting, once. Standard output becomes standard error, so that print cannot disturb the frames."""
    global _hello
    if _in is None:
        _explain("this program is trained by brood: brood run --algorithm diloco --program")
    if os.environ.get("BROOD_OBJECTIVE"):
        sys.exit("this program trains a model: give it as --program, not as --objective")
    if _hello is None:
        kind, body = _read()
        version, n = struct.unpack_from("<II", body)
        if kind != _HELLO or version != _VERSION:
            sys.exit("brood speaks version %d of the protocol and brood.py version %d: "
                     "write it again with brood program python > brood.py" % (version, _VERSION))
        _hello = {"device": body[8:8 + n].decode()}
    return _hello


def _explain(text):
    """End a program that a person started, with the command line that starts it."""
    print("%s '%s'" % (text, " ".join([os.path.basename(sys.executable)] + sys.argv)), file=sys.stderr)
    sys.exit(2)


def _take_streams():
    global _in, _out
    _in, _out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)


if os.environ.get("BROOD_PROGRAM") or os.environ.get("BROOD_OBJECTIVE"):
    _take_streams()  # at the import: what the program prints from here on is no frame


def _read():
    head = _in.read(5)
    if len(head) < 5:
        _end(0)  # brood ended
    n, kind = struct.unpack("<IB", head)
    return kind, _in.read(n - 1)


def _write(kind, body):
    data = memoryview(struct.pack("<IB", len(body) + 1, kind) + body)
    while data:
        data = data[_out.write(data):]


def _run(trainer):
    """Describe the trainer, then execute tasks until brood ends."""
    try:
        _serve(trainer)
    except Exception:
        _die()


def _die():
    import traceback
    traceback.print_exc()
    _end(1)


def _end(status):
    """End this process and those that load samples. The ordinary exit of torch takes seconds."""
    sys.stderr.flush()
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    os._exit(status)


def _serve(trainer):
    _write(_DESCRIPTION, json.dumps(trainer.description()).encode())
    while True:
        kind, body = _read()
        if kind == _MEMORY:
            size, *rows, n = struct.unpack_from("<8QI", body)
            with open(body[68:68 + n].decode(), "r+b") as f:
                memory = mmap.mmap(f.fileno(), size)
            trainer.bind(memory, *rows)
            if trainer.state:
                trainer.state.bind(memory, *struct.unpack_from("<Q", body, 68 + n))
            continue
        task, key, flags, n = struct.unpack_from("<QQII", body)
        lengths, at = struct.unpack_from("<%dI" % n, body, 24), 24 + 4 * n
        batches = []
        for length in lengths:
            batches.append(struct.unpack_from("<%dI" % length, body, at))
            at += 4 * length
        loss, correct, metrics = 0.0, 0, [0.0] * len(trainer.metrics)
        if kind == _INIT:
            trainer.init(key)
        elif kind == _GRADIENT:
            if flags & _ANNOUNCED:
                trainer.announce(*struct.unpack_from("<Q", body, at), batches[1])
            loss = trainer.gradient(key, batches[0])
        elif kind == _EVALUATE:
            loss, correct, metrics = trainer.evaluate(key, flags & _OWN_STATISTICS != 0, batches[0])
        elif kind == _STEPS:
            keys = struct.unpack_from("<%dQ" % n, body, at)
            loss = trainer.steps(keys, batches, flags & _ANCHORED != 0, *struct.unpack_from("<IQ10f", body, at + 8 * n))
        elif kind == _CANDIDATE:
            trainer.candidate(flags & _CENTRE != 0, *struct.unpack_from("<4If2I", body, at))
            if flags & _PARAMETERS:
                trainer.store("x")
            loss, correct, metrics = trainer.measure(key, flags & _OWN_STATISTICS != 0, batches[0])
        elif kind == _STATISTICS:
            trainer.statistics(batches)
        else:
            sys.exit("brood asks for a task of kind %d, which this brood.py does not know" % kind)
        _write(_DONE, struct.pack("<QdQ%dd" % len(metrics), task, loss, correct, *metrics))


def _seed(key):
    random.seed(key)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(key & 0xffffffff)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(key & (2 ** 63 - 1))


def _feed(h, x):
    """Hash a sample or a whole array."""
    if isinstance(x, (tuple, list)):
        h.update(b"(%d" % len(x))
        for one in x:
            _feed(h, one)
    elif isinstance(x, dict):
        _feed(h, sorted(x.items()))
    elif hasattr(x, "detach") or hasattr(x, "__array__"):
        import torch
        t = torch.as_tensor(x).detach().cpu().contiguous()
        h.update(("%s%s" % (t.dtype, tuple(t.shape))).encode())
        size = t.numel() * t.element_size()
        if size > _HASHED:  # rows at equal distances
            t = t[::-(-size // _HASHED)].contiguous()
        h.update(t.flatten().view(torch.uint8).numpy())
    else:
        h.update(repr(x).encode())


class _Split:
    """The samples of one split."""

    def __init__(self, source, workers):
        import torch
        self.source, self.tensors = source, None
        self.workers, self.pool = workers, None
        self.pending, self.asked = {}, 0  # batches that are loaded ahead, and when they were asked for
        if type(source) is torch.utils.data.TensorDataset:
            source = source.tensors
        if isinstance(source, (tuple, list)) and source and all(hasattr(x, "shape") for x in source):
            self.tensors = [torch.as_tensor(x) for x in source]
            if len({len(x) for x in self.tensors}) > 1:
                raise ValueError("brood.serve: the tensors of a split have different lengths: %s"
                                 % [len(x) for x in self.tensors])

    def __len__(self):
        if self.source is None:
            return 0
        return len(self.tensors[0]) if self.tensors else len(self.source)

    def to(self, device):
        if self.tensors:
            self.tensors = [x.to(device) for x in self.tensors]

    def batch(self, ids):
        import torch
        if self.tensors:
            at = torch.tensor(ids, device=self.tensors[0].device)
            return tuple(x[at] for x in self.tensors)
        from torch.utils.data import default_collate
        return default_collate([self.source[i] for i in ids])

    def __getitem__(self, request):
        """The batch (key, ids), read under the seed key."""
        key, ids = request
        if not self.tensors:
            _seed(key)
        return self.batch(ids)

    def batches(self, requests):
        """The batches of requests, in their order."""
        for i, request in enumerate(requests):
            for later in requests[i + 1:i + 1 + 2 * self.workers]:
                self.announce(later)
            ahead = self.pending.pop(request, None)
            yield ahead[1].result() if ahead else self[request]

    def announce(self, request):
        """Load the batch of a request in another process."""
        if self.tensors or not self.workers or request in self.pending:
            return
        if self.pool is None:
            import torch.multiprocessing
            from concurrent.futures import ProcessPoolExecutor
            self.pool = ProcessPoolExecutor(self.workers, torch.multiprocessing.get_context("fork"), _adopt, (self,))
        self.asked += 1
        self.pending[request] = self.asked, self.pool.submit(_load, request)
        oldest = next(iter(self.pending))
        if self.asked - self.pending[oldest][0] > 8 + 2 * len(self.pending):  # no longer asked for
            self.pending.pop(oldest)[1].cancel()

    def digest(self, h):
        h.update(b"split %d " % len(self))
        if self.tensors:
            _feed(h, self.tensors)
        elif self.source is not None:
            n = len(self)
            for i in sorted({k * (n - 1) // 15 for k in range(16)} if n else ()):
                _seed(0)
                _feed(h, self.source[i])


def _adopt(split):
    global _adopted
    import torch
    torch.set_num_threads(1)
    _adopted = split


def _load(request):
    return _adopted[request]


class _State:
    """The state_dicts of an optimiser and a scaler as bytes of a fixed size: tensors as they are, a number as its type
    and 8 bytes. The first byte is 0 before the first step."""

    NUMBERS = ((type(None), "8x"), (bool, "q"), (int, "q"), (float, "d"))

    def __init__(self, make, scaler):
        import copy
        self.make, self.scaler, self.optimiser = make, scaler, None
        self.first = copy.deepcopy(scaler.state_dict()) if scaler else None

    def begin(self):
        self.optimiser = self.make()
        if self.scaler:
            self.scaler.load_state_dict(dict(self.first))

    def _dicts(self):
        return [part.state_dict() for part in (self.optimiser, self.scaler) if part]

    def _leaves(self, x, path=""):
        """(path, value) of what a state holds, in a fixed order."""
        if isinstance(x, dict):
            items = sorted(x.items(), key=lambda item: str(item[0]))
        elif isinstance(x, (list, tuple)):
            items = enumerate(x)
        else:
            yield path, x
            return
        for k, v in items:
            yield from self._leaves(v, "%s.%s" % (path, k))

    def _rebuild(self, x, values):
        """A state of the structure of x with the values in the order of _leaves."""
        if isinstance(x, dict):
            return {k: self._rebuild(v, values) for k, v in sorted(x.items(), key=lambda item: str(item[0]))}
        if isinstance(x, (list, tuple)):
            return type(x)(self._rebuild(v, values) for v in x)
        return next(values)

    def _form(self):
        """(path, what it is, its bytes) of each value of the present state."""
        out = []
        for path, v in self._leaves(self._dicts()):
            if hasattr(v, "detach"):
                out.append((path, (v.dtype, tuple(v.shape), v.device), v.numel() * v.element_size()))
            elif isinstance(v, (type(None), bool, int, float)):
                out.append((path, "number", 9))
            else:
                out.append((path, v, 0))
        return out

    def measure(self):
        """Take the form of the present state as that of all states after a step, and return its size in bytes."""
        self.form, self.like = self._form(), self._rebuild(self._dicts(), iter(int, 1))
        return 1 + sum(size for _, _, size in self.form)

    def check(self):
        now = self._form()
        for was, value in zip(self.form + [("", "", 0)], now + [("", "", 0)]):
            if was != value:
                raise ValueError("brood.serve: the state of the optimiser changes its size or form, at %s: brood keeps as "
                                 "many bytes for each member as there are after the first step" % (value[0] or was[0]))

    def bind(self, memory, at):
        import torch
        size = 1 + sum(size for _, _, size in self.form)
        self.memory, self.at = memory, at
        self.row = torch.frombuffer(memory, dtype=torch.uint8, offset=at, count=size)

    def load(self):
        if not self.row[0]:
            self.begin()
            return
        if not self.optimiser:
            self.begin()
        values = iter(list(self._read()))
        for part, like in zip((self.optimiser, self.scaler), self.like):
            part.load_state_dict(self._rebuild(like, values))

    def _read(self):
        at = 1
        for _, what, size in self.form:
            if what == "number":
                kind, letter = self.NUMBERS[self.memory[self.at + at]]
                value, = struct.unpack_from("<" + letter, self.memory, self.at + at + 1) or (None,)
                yield None if kind is type(None) else kind(value)
            elif isinstance(what, tuple):
                dtype, shape, device = what
                yield self.row[at:at + size].clone().view(dtype).view(shape).to(device)
            else:
                yield what
            at += size

    def save(self):
        import torch
        self.check()
        at = 1
        self.row[0] = 1
        for (_, v), (_, what, size) in zip(self._leaves(self._dicts()), self.form):
            if what == "number":
                kind = [isinstance(v, t) for t, _ in self.NUMBERS].index(True)
                struct.pack_into("<B" + self.NUMBERS[kind][1], self.memory, self.at + at, kind, *[v][:v is not None])
            elif size:
                self.row[at:at + size] = v.detach().cpu().contiguous().flatten().view(torch.uint8)
            at += size


class _Noise:
    """The noise of brood, with its bits: Philox4x32-10 by tensor and element (Salmon et al., 2011)."""

    # Normals: -2 ln u by a polynomial around 1, and the sine and cosine of pi/2*v.
    LOG = (-2.000001907348633, 1.000022292137146, -0.6662901639938354, 0.49819502234458923, -0.40992698073387146,
           0.3733559846878052, -0.2379191517829895)
    SIN = (1.5707948207855225, -0.645920991897583, 0.07948773354291916, -0.004362513776868582)
    COS = (0.9999999403953552, -1.2336982488632202, 0.2536507546901703, -0.02081063948571682, 0.0008581960573792458)
    M2LN2 = -1.3862943649291992  # float32 of -2 ln 2
    WHOLE = 0.027062881737947464  # float32 of the scale of whole numbers

    def __init__(self, device):
        import torch
        self.torch, self.device = torch, device
        self.tiles = 1 << (13 if device.type == "cpu" else 18)  # that are drawn at once

    def fill(self, out, stream, key0, key1, member, low, whole, rank):
        """Write the noise of tensor number stream to out, a matrix."""
        rows, cols = out.shape
        address = stream, key0, key1, member, low
        if not rank or rows == 1 or cols == 1:
            self._draw(out, whole, *address)
            return
        length = max(rows, cols)
        factors = self.torch.empty(2 * rank, length, device=self.device)
        self._draw(factors, False, *address)
        a, b = factors[0::2, :rows].mul(_float32(rank ** -.5)), factors[1::2, :cols]
        self.torch.mul(a[0, :, None], b[0], out=out)
        for q in range(1, rank):
            out.add_(a[q, :, None] * b[q])

    def _draw(self, out, whole, *address):
        arange = self.torch.arange
        rows, cols = out.shape
        wide = -(-cols // 32)  # tiles of a row
        many = max(1, self.tiles // wide)
        for r in range(0, rows, many):
            for c in range(0, wide, self.tiles):
                n, m = min(many, rows - r), min(self.tiles, wide - c)
                tile = arange(r, r + n, device=self.device)[:, None] * wide + arange(c, c + m, device=self.device)
                x = self._tiles(tile.reshape(-1), whole, *address).view(n, 32 * m)
                out[r:r + n, 32 * c:32 * (c + m)] = x[:, :min(32 * m, cols - 32 * c)]

    def _tiles(self, tile, whole, stream, key0, key1, member, low):
        torch = self.torch
        counter = (tile[:, None] * 8 + torch.arange(8, device=self.device)) & 0xffffffff
        w = self._philox(counter, stream, member, low, key0, key1)
        if whole:
            a, b, c, d = (self._whole(x) for x in w)
        else:
            (a, c), (b, d) = self._normals(w[0], w[2]), self._normals(w[1], w[3])
        out = torch.empty(len(tile), 2, 8, 2, device=self.device)
        out[:, 0, :, 0], out[:, 0, :, 1], out[:, 1, :, 0], out[:, 1, :, 1] = a, b, c, d
        return out.view(-1, 32)

    @staticmethod
    def _philox(c0, c1, c2, c3, k0, k1):
        mask = 0xffffffff
        for _ in range(10):
            p, q = c0 * 0xd2511f53, c2 * 0xcd9e8d57  # of int64: what wraps is masked
            c0, c1, c2, c3 = (q >> 32 & mask) ^ c1 ^ k0, q & mask, (p >> 32 & mask) ^ c3 ^ k1, p & mask
            k0, k1 = (k0 + 0x9e3779b9) & mask, (k1 + 0xbb67ae85) & mask
        return c0, c1, c2, c3

    def _normals(self, x, y):
        torch = self.torch

        def polynomial(c, t):
            out = torch.full_like(t, c[-1])
            for a in c[-2::-1]:
                out = out.mul_(t).add_(a)
            return out
        f = (x >> 1 | 1).float().mul_(2.0 ** -31)
        bits = f.view(torch.int32)
        e = bits - 0x3f3504f3 >> 23
        t = (bits - (e << 23)).view(torch.float32).add_(-1)
        w = polynomial(self.LOG, t).mul_(t).add_(e.float().mul_(self.M2LN2))
        r = w.double().sqrt_().float()
        v = (y - (y >> 31 << 32)).float().mul_(2.0 ** -31)
        v2 = v * v
        c, s = polynomial(self.COS, v2), polynomial(self.SIN, v2).mul_(v)
        c = torch.where((y & 1).bool(), -c, c)
        return c.mul_(r), s.mul_(r)

    def _whole(self, w):
        total = sum(((w >> shift & 255) ^ 128) - 128 for shift in (0, 8, 16)) + (((w >> 24 | 1) ^ 128) - 128)
        return (total + 3 >> 2).float().mul_(self.WHOLE)


def _float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class _Torch:
    def __init__(self, model, loss, splits, compute, score, metrics, name, buffers, device, steps, optimiser, scaler,
                 candidates, workers, threads, processes, timeout, batch):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        if self.device.type == "cuda":
            if self.device.index is not None:
                torch.cuda.set_device(self.device)
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
        self.make = None if isinstance(model, torch.nn.Module) else model
        _seed(0)
        self.model = (self.make() if self.make else model).to(self.device)
        self.loss, self.compute, self.size = loss, compute, batch
        self.metric = dict(metrics or {})
        self.metrics = list(self.metric)
        self.splits = [_Split(s, workers) for s in splits]
        self.offsets = [0, len(self.splits[0]), len(self.splits[0]) + len(self.splits[1])]
        self.params = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        self.flat = all(p.dtype == torch.float32 for _, p in self.params)
        self.norms, self.stats = [], []
        for prefix, m in self.model.named_modules():
            if isinstance(m, torch.nn.modules.batchnorm._NormBase) and m.running_mean is not None:
                if m.momentum is None:
                    raise ValueError("brood.serve: %s has momentum=None, whose statistics depend on a counter: "
                                     "give it a momentum" % (prefix or type(m).__name__))
                self.norms.append(m)
                for key in ("running_mean", "running_var"):
                    self.stats.append((prefix + "." + key if prefix else key, m, key))
        normal = {n for n, _, _ in self.stats}
        for n, b in self.model.named_buffers():
            if n not in buffers or n in normal:
                continue
            if b.dtype != torch.float32:
                raise ValueError("brood.serve: buffer %s has the type %s, and those of members have float32"
                                 % (n, b.dtype))
            owner, _, key = n.rpartition(".")
            self.stats.append((n, self.model.get_submodule(owner), key))
        self.others = self.stats[len(normal):]
        missing = set(buffers) - {n for n, _, _ in self.stats}
        if missing:
            raise ValueError("brood.serve: the model has no buffer %s" % min(missing))
        self.fixed = {n: b.clone() for n, b in self.model.named_buffers()
                      if n not in {n for n, _, _ in self.stats} and not n.endswith("num_batches_tracked")}
        self.begin = [p.detach().clone() for _, p in self.params], [m._buffers[k].clone() for _, m, k in self.stats]
        h = hashlib.blake2b(digest_size=16)
        for s in self.splits:
            s.digest(h)
            s.to(self.device)
        self.described = dict(
            name=name or type(self.model).__name__,
            parameters=[self._tensor(n, p) for n, p in self.params],
            buffers=[dict(name=n, shape=list(m._buffers[k].shape)) for n, m, k in self.stats],
            train=len(self.splits[0]), validation=len(self.splits[1]), test=len(self.splits[2]),
            data=h.hexdigest(), score=score or self._score(), metrics=self.metrics,
            steps=self.flat and bool(optimiser or (self.device.type != "cpu" if steps is None else steps)),
            candidates=self.device.type != "cpu" if candidates is None else candidates,
            library="torch " + torch.__version__.replace("/", "-"), device=self._family().replace("/", "-"),
            threads=threads, processes=processes or (0 if self.device.type == "cpu" else 1), timeout=timeout)

        self.state = None
        if workers:
            self.described["ahead"] = 2 * workers
        if optimiser:
            self._bring(optimiser, scaler)

    def _bring(self, optimiser, scaler):
        """Describe the state of an optimiser, as it is after steps along gradients of zero."""
        if not self.flat:
            raise ValueError("brood.serve: an optimiser of your own needs parameters of float32")
        eta = 2 ** -10
        self.state = _State(lambda: optimiser(self.model, eta), scaler)
        self.state.begin()
        self.rates = [group["lr"] / eta for group in self.state.optimiser.param_groups]
        before = [p.detach().clone() for _, p in self.params]
        for step in range(2):
            for _, p in self.params:
                p.grad = self.torch.zeros_like(p)
            self.state.optimiser.step()
            if step == 0:
                self.described["state"] = self.state.measure()
        self.state.check()
        with self.torch.no_grad():
            for (_, p), value in zip(self.params, before):
                p.copy_(value)

    def description(self):
        return self.described

    def _tensor(self, name, p):
        out = dict(name=name, shape=list(p.shape))
        owner = self.model.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, self.torch.nn.Embedding):
            out["table"] = True
        return out

    def _score(self):
        torch = self.torch
        F = torch.nn.functional
        classes = self.loss in (F.cross_entropy, F.nll_loss) or isinstance(
            self.loss, (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss))
        if not classes:
            return "loss"
        _seed(0)
        target = self.splits[0].batch([0])[1]
        return "classes" if target.dim() == 1 and not target.is_floating_point() else "loss"

    def _family(self):
        if self.device.type == "cuda":
            return "%s CUDA %s" % (self.torch.cuda.get_device_name(self.device), self.torch.version.cuda)
        for line in self.torch.__config__.show().splitlines():
            if "CPU capability usage" in line:
                return "cpu " + line.split(":")[1].strip()
        return self.device.type

    def bind(self, memory, x, s, g, first, second, anchor, mean):
        torch = self.torch
        shapes, stats = [p.shape for _, p in self.params], [m._buffers[k].shape for _, m, k in self.stats]
        n, k = sum(a.numel() for a in shapes), sum(a.numel() for a in stats)

        def row(at, n):
            return torch.frombuffer(memory, dtype=torch.float32, offset=at, count=n) if n else torch.empty(0)

        def views(row, shapes):
            out, lo = [], 0
            for shape in shapes:
                out.append(row[lo:lo + shape.numel()].view(shape))
                lo += shape.numel()
            return out
        self.rows = dict(x=row(x, n), s=row(s, k), g=row(g, n))
        if self.described["steps"]:
            self.rows.update(m=row(first, n), v=row(second, n), a=row(anchor, n), z=row(mean, n))
        # The model computes in the shared rows on a CPU, and in copies of them on a device.
        self.shared = self.device.type == "cpu"
        self.here = {a: r if self.shared else torch.empty_like(r, device=self.device)
                     for a, r in self.rows.items() if self.shared or a in "xsg"}
        self.noise, self.eps = _Noise(self.device), None
        self.x, self.g = views(self.here["x"], shapes), views(self.here["g"], shapes)
        self.begins = views(self.rows["x"], shapes) + views(self.rows["s"], stats)
        if self.flat:
            for (_, p), x, g in zip(self.params, self.x, self.g):
                p.data, p.grad = x, g
        self.s = views(self.here["s"], stats)
        for (_, m, key), s in zip(self.stats, self.s):
            m._buffers[key] = s

    def _load(self, names):
        with self.torch.no_grad():
            for a in names if not self.shared else "":
                if a not in self.here:
                    self.here[a] = self.torch.empty_like(self.rows[a], device=self.device)
                self.here[a].copy_(self.rows[a])
            if "x" in names:
                self._set()

    def _set(self):
        """Give the model the parameters of its row."""
        if not self.flat:
            for (_, p), x in zip(self.params, self.x):
                p.copy_(x)

    def store(self, names):
        for a in names:
            if not self.shared:
                self.rows[a].copy_(self.here[a])

    def _batches(self, keys, lists):
        """Batches of samples of one split, on the device."""
        first = lists[0][0]
        which = 2 if first >= self.offsets[2] else 1 if first >= self.offsets[1] else 0
        return map(self._move, self.splits[which].batches([self._request(*x, which) for x in zip(keys, lists)]))

    def _request(self, key, ids, which):
        return key ^ _SAMPLES, tuple(i - self.offsets[which] for i in ids)

    def announce(self, key, ids):
        """A later gradient will probably take this batch."""
        self.splits[0].announce(self._request(key, ids, 0))

    def _move(self, x):
        if isinstance(x, (tuple, list)):
            return tuple(self._move(one) for one in x)
        if isinstance(x, dict):
            return {k: self._move(one) for k, one in x.items()}
        return x.to(self.device, non_blocking=True) if hasattr(x, "to") else x

    def init(self, key):
        params, stats = self.begin
        if self.make:
            _seed(key)
            fresh = self.make()
            named = dict(fresh.named_parameters())
            params = [named[n].detach() for n, _ in self.params]
            buffers = dict(fresh.named_buffers())
            stats = [buffers[n] for n, _, _ in self.stats]
        for row, value in zip(self.begins, list(params) + list(stats)):
            row.copy_(value)

    def _trained(self):
        """After a forward pass of training: keep the buffers in their row, and see that no others changed."""
        for (_, m, key), s in zip(self.stats, self.s):
            if m._buffers[key] is not s:  # assigned, not written
                s.copy_(m._buffers[key])
                m._buffers[key] = s
        if self.fixed:
            for n, b in self.model.named_buffers():
                if n in self.fixed and not self.torch.equal(b, self.fixed[n]):
                    raise ValueError("brood.serve: buffer %s changes while the model trains: name it in buffers=[...], "
                                     "so that each member has its own" % n)
            self.fixed = None  # one look is enough

    def gradient(self, key, ids):
        self._load("xs")
        self.model.train()
        batch, = self._batches([key], [ids])
        loss = self._backward(key, batch)
        self.store("gs")
        return float(loss)

    def _backward(self, key, batch, scaler=None):
        """Write the gradient of the mean loss, and return the loss."""
        _seed(key)
        self.here["g"].zero_()
        if not self.flat:
            self.model.zero_grad(set_to_none=True)
        loss = self._mean(batch)
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.unscale_(self.state.optimiser)
        self._trained()
        if not self.flat:
            for (_, p), g in zip(self.params, self.g):
                if p.grad is not None:
                    g.copy_(p.grad)
        return loss.detach()

    def steps(self, keys, batches, anchored, optimiser, taken, eta, mu, b1, b2, eps, coupled, decay, clip, pull, alpha):
        """Steps of SGD with Nesterov momentum (0), Adam (1) or AdamW (2), on whole rows, or of an own optimiser (3)."""
        own = optimiser == 3
        scaler = self.state.scaler if own else None
        inputs = "xs" + "m" * (not own) + "v" * (0 < optimiser < 3) + "z" * anchored
        self._load(inputs + "a" * anchored)
        if own:
            self.state.load()
        self.model.train()
        x, g, m, v, a, z = (self.here.get(name) for name in "xgmvaz")
        for step, (key, batch) in enumerate(zip(keys, self._batches(keys, batches)), taken + 1):
            loss = self._backward(key, batch, scaler)
            with self.torch.no_grad():
                if clip > 0:
                    g.mul_((clip / g.norm()).clamp(max=1))
                if coupled > 0:
                    g.add_(x, alpha=coupled)
                if anchored:
                    g.add_(x, alpha=pull).add_(a, alpha=-pull)
                if own:
                    for group, rate in zip(self.state.optimiser.param_groups, self.rates):
                        group["lr"] = eta * rate
                    if scaler:
                        scaler.step(self.state.optimiser)
                        scaler.update()
                    else:
                        self.state.optimiser.step()
                elif optimiser == 0:
                    m.mul_(mu).add_(g)
                    x.add_(g, alpha=-eta).add_(m, alpha=-eta * mu)
                else:
                    if optimiser == 2:
                        x.mul_(1 - eta * decay)
                    m.mul_(b1).add_(g, alpha=1 - b1)
                    v.mul_(b2).addcmul_(g, g, value=1 - b2)
                    x.addcdiv_(m, v.sqrt().div_((1 - b2 ** step) ** .5).add_(eps), value=-eta / (1 - b1 ** step))
                if anchored:
                    z.mul_(alpha).add_(x, alpha=1 - alpha)
        if own:
            self.state.save()
        self.store(inputs)
        return float(loss)

    def _mean(self, batch):
        if self.compute:
            out = self.compute(self.model, batch)
            return out[0] if isinstance(out, tuple) else out
        return self.loss(self.model(batch[0]), batch[1])

    def candidate(self, fresh, key0, key1, member, low, step, whole, rank):
        """Set the parameters to centre + step*noise. fresh: the row of parameters is a new centre."""
        with self.torch.no_grad():
            if fresh:
                self._load("x")
                self.centre, self.address = self.here["x"].clone(), None
                self.eps = self.torch.empty_like(self.centre) if self.eps is None else self.eps
            address = key0, key1, member, low, whole, rank
            if address != self.address:
                self.address, lo = address, 0
                for stream, (_, p) in enumerate(self.params):
                    n, rows = p.numel(), p.shape[0] if p.dim() else 1
                    out = self.eps[lo:lo + n].view(rows if rows < n else 1, -1)
                    self.noise.fill(out, stream, key0, key1, member, low, whole, rank)
                    lo += n
            self.torch.mul(self.eps, step, out=self.here["x"]).add_(self.centre)
            self._set()

    def evaluate(self, key, own, ids):
        self._load("xs")
        return self.measure(key, own, ids)

    def measure(self, key, own, ids):
        self.model.eval()
        for m in self.norms if own else ():
            m.train()
        if own:
            self._reset()
        total, correct, sums = 0.0, 0, [0.0] * len(self.metrics)
        size = len(ids) if own else self.size
        parts = [ids[lo:lo + size] for lo in range(0, len(ids), size)]
        with self.torch.no_grad():
            keys = [key + i for i in range(len(parts))]
            for k, part, batch in zip(keys, parts, self._batches(keys, parts)):
                _seed(k)
                if self.compute:
                    out = self.compute(self.model, batch)
                    loss, right = out if isinstance(out, tuple) else (out, 0)
                else:
                    result = self.model(batch[0])
                    loss, right = self.loss(result, batch[1]), 0
                    if self.described["score"] == "classes":
                        right = (result.argmax(1) == batch[1]).sum()
                    for i, f in enumerate(self.metric.values()):
                        sums[i] += float(f(result, batch[1])) * len(part)
                total += float(loss) * len(part)
                correct += int(right)
        return total, correct, sums

    def _reset(self):
        """Set the buffers other than those of batch-norm to their initial values."""
        for i in range(len(self.stats) - len(self.others), len(self.stats)):
            self.s[i].copy_(self.begin[1][i])

    def statistics(self, batches):
        """Set the statistics of batch-norm to the means of those of the batches, and others to what they become."""
        self._load("xs")
        self._reset()
        self.model.eval()
        for _, m, _ in self.others:
            m.training = True
        momenta = [m.momentum for m in self.norms]
        for m in self.norms:
            m.train()
        with self.torch.no_grad():
            for k, batch in enumerate(self._batches(range(len(batches)), batches)):
                _seed(k)
                for m in self.norms:
                    m.momentum = 1 / (k + 1)
                self._mean(batch)
                self._trained()
        for m, momentum in zip(self.norms, momenta):
            m.momentum = momentum
        self.store("s")


class _Functions:
    state = None

    def __init__(self, given):
        self.g = given
        self.metrics = list(given["metrics"])
        self.shapes = {n: list(s) for n, s in given["parameters"].items()}
        self.views, self.sizes = _arrays(self.shapes)
        self.total = sum(self.sizes.values())

    def description(self):
        g = self.g
        return dict(name=g["name"], parameters=[dict(name=n, shape=s) for n, s in self.shapes.items()],
                    buffers=[], train=g["train"], validation=g["validation"], test=g["test"], data=g["data"],
                    score=g["score"], metrics=self.metrics, steps=False, candidates=False, library=g["library"],
                    device=g["device"], threads=g["threads"], processes=g["processes"], timeout=g["timeout"])

    def bind(self, memory, x, s, g, *_):
        self.x = memoryview(memory)[x:x + 4 * self.total].cast("f")
        self.out = memoryview(memory)[g:g + 4 * self.total].cast("f")

    def _store(self, values, row):
        lo = 0
        for n, size in self.sizes.items():
            v, hi = values[n], lo + size
            if "numpy" in sys.modules:
                numpy = sys.modules["numpy"]
                v = numpy.ascontiguousarray(v, "float32").ravel()
            else:
                v = array.array("f", v)
            if len(v) != hi - lo:
                raise ValueError("brood.functions: %s has %d values, want %d" % (n, len(v), hi - lo))
            row[lo:hi] = memoryview(v)
            lo = hi

    def init(self, key):
        _seed(key)
        self._store(self.g["init"](key), self.x)

    def gradient(self, key, ids):
        _seed(key)
        loss, values = self.g["gradient"](self.views(self.x), list(ids), key)
        self._store(values, self.out)
        return float(loss)

    def evaluate(self, key, own, ids):
        _seed(key)
        out = tuple(self.g["evaluate"](self.views(self.x), list(ids), key))
        return float(out[0]), int(out[1]), [float(m) for m in out[2]] if self.metrics else []

    def statistics(self, batches):
        pass
