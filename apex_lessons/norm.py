"""RMSNorm: divide each token's vector by its root mean square.

Statistics are float32 for half types (256 squared already overflows float16), float64
for float64. Reference, section 3. Paper: Zhang and Sennrich (arXiv:1910.07467), Eq. 4.
"""

from __future__ import annotations

import contextlib
import math

import torch
from torch import Tensor, nn

from apex_lessons.errors import floating_tensor, one_of, real_number, whole_number

ORDERS = ("cast-last", "cast-first", "cast-to-weight")
HALF_TYPES = (torch.float16, torch.bfloat16)


def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    *,
    weight_offset: float = 0.0,
    order: str = "cast-last",
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * (weight + weight_offset), over the last dimension.

    ``x``: [..., d], floating; ``weight``: [d] or None; ``eps`` stands inside the root
    and has the unit of x squared. ``weight_offset=1.0`` is Gemma's (1 + weight).
    ``order`` says when a half type is rounded, as published: "cast-last" (gpt-oss,
    Olmo, Gemma: weight in float32, one rounding), "cast-first" (Llama, Mistral, Qwen:
    round, then times weight), "cast-to-weight" (T5: round to the weight's dtype if that
    is a half type). Returns x's shape and dtype. Where squares would overflow or vanish
    the row is scaled first, so float32 1e20 gives 1 and not 0. A row of zeros gives
    zeros (with eps=0: NaN, as the formula says). Raises ValueError for a weight that
    does not fit, a negative or infinite eps and an unknown order; TypeError for x that
    is not floating, and for eps=None, whose meaning changed between torch versions.
    Source: reference, section 3.2 (the paper's Eq. 4 has no eps).

    >>> out = rms_norm(torch.tensor([2.0, -1.0, 0.5, 1.5]))
    >>> [round(value, 4) for value in out.tolist()]
    [1.4606, -0.7303, 0.3651, 1.0954]
    """
    eps = real_number("eps", eps, at_least=0.0, hint="1e-6 and 1e-5 are usual")
    weight_offset = real_number("weight_offset", weight_offset)
    one_of("order", order, ORDERS)
    _check(x, weight, weight_offset)
    if torch.compiler.is_compiling():
        return rms_norm_plain(x, weight, eps, weight_offset, order)
    learns = x.requires_grad or (weight is not None and weight.requires_grad)
    if torch.is_grad_enabled() and learns or _under_a_transform():
        return _RMSNorm.apply(x, weight, eps, weight_offset, order)[0]
    return _forward(x, weight, eps, weight_offset, order)[0]


def rms_norm_plain(
    x: Tensor, weight: Tensor | None, eps: float, weight_offset: float, order: str
) -> Tensor:
    """The formula, an operation a step; the fast path below is held to it."""
    wide = x.to(_statistics_dtype(x))
    # x / sqrt(mean(x^2) + eps)
    unit = wide / _rms_plain(wide, eps)
    if weight is None:
        return unit.to(x.dtype)
    scale = weight.to(wide.dtype) + weight_offset  # [d]
    return (_rounded(unit, x, weight, order) * scale).to(x.dtype)


class RMSNorm(nn.Module):
    """``rms_norm`` with a learned weight [d_model], or without one.

    ``d_model``: the width of x; ``eps``: inside the root. The weight starts at
    1 - weight_offset, so the scale starts at 1. ``order``: as in ``rms_norm``.
    Raises ValueError for d_model < 1 and what ``rms_norm`` refuses.
    Source: reference, section 3.

    >>> RMSNorm(4)(torch.full((1, 4), 3.0)).round(decimals=4).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-6,
        *,
        elementwise_affine: bool = True,
        weight_offset: float = 0.0,
        order: str = "cast-last",
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.d_model = whole_number("d_model", d_model, at_least=1)
        self.eps = real_number("eps", eps, at_least=0.0, hint="1e-6 and 1e-5 are usual")
        self.weight_offset = real_number("weight_offset", weight_offset)
        self.order = one_of("order", order, ORDERS)
        self.register_parameter("weight", None)
        if elementwise_affine:
            self.weight = nn.Parameter(torch.empty(d_model, device=device, dtype=dtype))
        elif weight_offset:
            raise ValueError(
                f"weight_offset={weight_offset} needs a weight: leave"
                " elementwise_affine=True"
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.constant_(self.weight, 1.0 - self.weight_offset)

    def forward(self, x: Tensor) -> Tensor:
        if floating_tensor("x", x).shape[-1:] != (self.d_model,):
            raise ValueError(
                f"x must end in d_model={self.d_model}, got shape {tuple(x.shape)}"
            )
        return rms_norm(
            x, self.weight, self.eps, weight_offset=self.weight_offset, order=self.order
        )

    def extra_repr(self) -> str:
        return (
            f"{self.d_model}, eps={self.eps:g},"
            f" elementwise_affine={self.weight is not None}"
            f", weight_offset={self.weight_offset:g}, order={self.order!r}"
        )


def _under_a_transform() -> bool:
    """Inside torch.func.vmap and the like, whose tensors have no values to look at."""
    return torch._C._are_functorch_transforms_active()


def _forward(x, weight, eps, weight_offset, order):
    """y, and 1 / rms of each row."""
    inverse = _inverse_rms(x, eps)  # [..., 1]
    y = x * inverse
    if weight is not None:
        y = _rounded(y, x, weight, order)
        y = y.mul_(weight.to(y.dtype) + weight_offset if weight_offset else weight)
    return y.to(x.dtype), inverse


class _RMSNorm(torch.autograd.Function):
    """One new buffer forward; backward keeps x, the weight and one number a row.

    Returns y and 1 / rms; only y is differentiable. Measured against a copy of x:
    forward 2.1, with backward 6.9; torch's own 3.5 and 14.6.
    """

    @staticmethod
    def forward(x, weight, eps, weight_offset, order):
        return _forward(x, weight, eps, weight_offset, order)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, *ctx.settings = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(x, weight, output[1])
        ctx.save_for_forward(x, weight, output[1])

    @staticmethod
    def backward(ctx, grad, _):
        x, weight, inverse = ctx.saved_tensors
        eps, weight_offset, _ = ctx.settings
        # Autocast would round the sums over rows to a half type.
        with _no_autocast(x.device.type):
            if torch.is_grad_enabled():  # a second derivative may be wanted
                found = _gradients_plain(x, weight, grad, eps, weight_offset)
            else:
                found = _gradients(x, weight, inverse, grad, weight_offset)
        return (*found, None, None, None)

    @staticmethod
    def jvp(ctx, dx, d_weight, *_):
        x, weight, r = ctx.saved_tensors
        x, dx = x.to(r.dtype), dx.to(r.dtype)
        scale = 1.0 if weight is None else weight.to(r.dtype) + ctx.settings[1]
        # d(x r w) = (dx - x r^2 mean(x dx)) r w + x r dw
        dy = (dx - x * r * (x * r * dx).mean(dim=-1, keepdim=True)) * r * scale
        dy = dy if d_weight is None else dy + x * r * d_weight
        return dy.to(ctx.saved_tensors[0].dtype), None

    @staticmethod
    def vmap(info, in_dims, x, weight, *settings):
        dims = ((x, in_dims[0]), (weight, in_dims[1]))
        x, weight = (
            t if t is None else _batch_first(t, dim, info.batch_size) for t, dim in dims
        )
        rows = [
            _RMSNorm.apply(x[i], None if weight is None else weight[i], *settings)
            for i in range(info.batch_size)
        ]
        return tuple(torch.stack(part) for part in zip(*rows)), (0, 0)


def _no_autocast(device_type: str):
    if device_type == "meta":
        return contextlib.nullcontext()
    return torch.autocast(device_type, enabled=False)


def _batch_first(t: Tensor, dim: int | None, size: int) -> Tensor:
    return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)


def _gradients_plain(x, weight, grad, eps, weight_offset):
    """dx = r (g w - x r mean(g w x r)), dw = sum over rows of g x r; r = 1 / rms."""
    wide = x.to(_statistics_dtype(x))
    grad = grad.to(wide.dtype)
    r = 1 / _rms_plain(wide, eps)  # [..., 1]
    scaled = grad if weight is None else grad * (weight.to(wide.dtype) + weight_offset)
    dx = r * (scaled - wide * r * (scaled * wide * r).mean(dim=-1, keepdim=True))
    if weight is None:
        return dx.to(x.dtype), None
    d_weight = (grad * wide * r).reshape(-1, x.shape[-1]).sum(dim=0)
    return dx.to(x.dtype), d_weight.to(weight.dtype)


def _gradients(x, weight, inverse, grad, weight_offset):
    """``_gradients_plain`` with one new buffer, which becomes dx."""
    shape, d, dtype, kept = x.shape, x.shape[-1], inverse.dtype, x.dtype
    x, grad, r = (t.to(dtype).reshape(-1, t.shape[-1]) for t in (x, grad, inverse))
    scale = x.new_ones(d) if weight is None else weight.to(dtype) + weight_offset
    product = grad * x  # [rows, d]
    # Two matrix-vector products do both sums.
    d_weight = None if weight is None else (product.T @ r.squeeze(-1)).to(weight.dtype)
    mean = (product @ scale).unsqueeze(-1) * r / d  # [rows, 1]
    dx = torch.mul(grad, scale, out=product).addcmul_(x, r * mean, value=-1).mul_(r)
    return dx.view(shape).to(kept), d_weight


def _rms_plain(wide: Tensor, eps: float) -> Tensor:
    """sqrt(mean(x^2) + eps), [..., 1]; the row's size, divided out, cancels."""
    size = _row_size(wide, eps)
    return (
        size
        * ((wide / size).square().mean(dim=-1, keepdim=True) + eps / size**2).sqrt()
    )


def _inverse_rms(x: Tensor, eps: float) -> Tensor:
    """1 / sqrt(mean(x^2) + eps), [..., 1], in the statistics' dtype."""
    dtype = _statistics_dtype(x)
    root = _root_mean_square(x, dtype)
    # A look at the numbers is cheap on the CPU and would wait for the device elsewhere.
    if x.is_cpu and _usual(root, eps):
        # 1 / sqrt(root^2 + eps)
        return root.square_().add_(eps).rsqrt_()
    size = _row_size(x.to(dtype), eps)
    root = _root_mean_square(x / size, dtype) * size
    # sqrt(root^2 + eps) = hypot(root, sqrt(eps)), which squares nothing large
    return torch.hypot(root, root.new_tensor(math.sqrt(eps))).reciprocal()


def _root_mean_square(x: Tensor, dtype: torch.dtype) -> Tensor:
    """norm(x) / sqrt(d), [..., 1]."""
    norm, d = x, x.shape[-1]
    if d >= 2048 and d % 16 == 0:
        # Sixteen partial norms first: torch adds in order, and long float32 sums drift.
        norm = torch.linalg.vector_norm(x.unflatten(-1, (16, -1)), dim=-1, dtype=dtype)
    norm = torch.linalg.vector_norm(norm, dim=-1, keepdim=True, dtype=dtype)
    return norm.div_(math.sqrt(d))


def _usual(root: Tensor, eps: float) -> bool:
    """Whether the rows' squares neither overflow nor vanish beside eps."""
    if not root.numel():
        return True
    smallest, largest = root.aminmax()
    return 1e18 > float(largest) and (eps > 1e-30 or float(smallest) > 1e-15)


def _row_size(wide: Tensor, eps: float) -> Tensor:
    """Each row's largest magnitude, at least sqrt(eps); constant for gradients."""
    smallest = max(math.sqrt(eps), torch.finfo(wide.dtype).tiny)
    return wide.detach().abs().amax(dim=-1, keepdim=True).clamp(min=smallest)


def _rounded(unit: Tensor, x: Tensor, weight: Tensor, order: str) -> Tensor:
    """The normalised x, rounded if the published order rounds before the weight."""
    if order == "cast-first":
        return unit.to(x.dtype).to(unit.dtype)
    if order == "cast-to-weight" and weight.dtype in HALF_TYPES:
        return unit.to(weight.dtype).to(unit.dtype)
    return unit


def _statistics_dtype(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _check(x: Tensor, weight: Tensor | None, weight_offset: float) -> None:
    floating_tensor("x", x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(
            f"x must have a last dimension of at least 1, got shape {tuple(x.shape)}"
        )
    if weight is None:
        if weight_offset:
            raise ValueError(f"weight_offset={weight_offset} needs a weight, got None")
        return
    floating_tensor("weight", weight, "or None")
    if weight.shape != x.shape[-1:]:
        raise ValueError(
            f"weight must have shape ({x.shape[-1]},), got {tuple(weight.shape)}:"
            " one number a dimension, shared by all tokens"
        )
