"""A second device for machines that have only a CPU.

Inside ``with PretendDevice("mps"):`` real CPU tensors moved by ``.to("mps")``, or made
with ``device="mps"``, answer "mps" when asked where they are. Results inherit the
place, mixing places is refused as on real hardware, and a float64 or complex result
there is an error, as it is on Apple GPUs. Backward passes are not watched: gradients
reach Python as new tensors.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

UNSUPPORTED = {torch.float64, torch.complex64, torch.complex128}
MOVES = {"to", "cpu", "mps", "cuda"}
LEAVES = {"cpu", "item", "tolist", "numpy", "__int__", "__bool__", "__float__"}
# Where a tensor says it is: x.device, x.is_cpu and so on.
PLACES = {torch.Tensor.device: None}
PLACES |= {
    getattr(torch.Tensor, f"is_{kind}"): kind for kind in ("cpu", "mps", "cuda", "meta")
}


class PretendDevice(TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.device = torch.device(name)
        self.here = WeakTensorKeyDictionary()
        self.made = 0  # results seen on the pretended device

    def is_here(self, value):
        return isinstance(value, torch.Tensor) and value in self.here

    def mark(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        with torch._C.DisableTorchFunction():
            dtype = value.dtype
        if dtype in UNSUPPORTED:
            raise AssertionError(f"a {dtype} tensor was made on {self.device}")
        self.here[value] = True
        self.made += 1
        return value

    def means_here(self, value):
        if isinstance(value, str):
            return value.split(":")[0] == self.device.type
        return isinstance(value, torch.device) and value.type == self.device.type

    def means_cpu(self, value):
        if isinstance(value, str):
            return value == "cpu"
        return isinstance(value, torch.device) and value.type == "cpu"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            if self.is_here(args[0]) and func.__self__ in PLACES:
                kind = PLACES[func.__self__]
                return self.device if kind is None else kind == self.device.type
            out = func(*args, **kwargs)
            return self.mark(out) if self.is_here(args[0]) else out
        if name == "__set__":
            func(*args, **kwargs)
            if self.is_here(args[1]):
                self.mark(args[0])
            return None
        if name == "_parse_to":  # reads the arguments of Module.to
            return func(*args, **kwargs)
        return self.call(func, name, args, kwargs)

    def call(self, func, name, args, kwargs):
        leaves = tree_leaves((args, kwargs))
        asked = any(self.means_here(v) for v in leaves)
        sent_home = any(self.means_cpu(v) for v in leaves) or name in LEAVES
        here = any(self.is_here(v) for v in leaves)
        if here and name not in MOVES | {"copy_"} and not name.startswith("_"):
            self.refuse_mixture(name, leaves)
        args, kwargs = tree_map(
            lambda v: torch.device("cpu") if self.means_here(v) else v, (args, kwargs)
        )
        out = func(*args, **kwargs)
        stays = asked or (here and not sent_home)
        if name in MOVES and any(out is v for v in leaves) and stays != here:
            out = out.clone()  # a move makes a new tensor
        return tree_map(self.mark, out) if stays else out

    def refuse_mixture(self, name, leaves):
        for value in leaves:
            if (
                isinstance(value, torch.Tensor)
                and value not in self.here
                and value.dim()
            ):
                raise RuntimeError(f"{name}: tensors on {self.device} and on the cpu")
