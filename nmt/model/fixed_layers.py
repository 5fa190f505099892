"""Layers whose weights stay as they are: what the layers do, in fewer operations."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.model.attention import split_heads
from nmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.model.packed import Map, fixed_map
from nmt.model.state import DecoderState, LayerState, look


def fixed_norm(module: nn.Module) -> Map:
    """Return a layer norm as a function; torch computes it in fp32 inside, whatever comes in."""
    if not isinstance(module, nn.LayerNorm):
        return module
    shape, epsilon = module.normalized_shape, module.eps
    weight, bias = module.weight.detach(), module.bias.detach()
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


class FixedEncoderLayer:
    """What EncoderLayer does."""

    def __init__(self, layer: nn.Module) -> None:
        assert isinstance(layer, EncoderLayer)
        self._num_heads = layer.attention.num_heads
        self._qkv, self._out = fixed_map(layer.attention.qkv), fixed_map(layer.attention.out)
        self._feed_forward = _fixed_feed_forward(layer.feed_forward)
        self._attended, self._fed = map(_fixed_residual, layer.residuals)

    def __call__(self, x_BSD: Tensor, hidden_B1S: Tensor) -> Tensor:
        x_BSD = self._attended(x_BSD, lambda x: self._attend(x, hidden_B1S))
        return self._fed(x_BSD, self._feed_forward)

    def _attend(self, x_BSD: Tensor, hidden_B1S: Tensor) -> Tensor:
        qkv_3BHSK = split_heads(self._qkv(x_BSD), 3, self._num_heads)
        return self._out(look(qkv_3BHSK[0], qkv_3BHSK[1:], hidden_B1S))


class FixedDecoderLayer:
    """What DecoderLayer does, for one new position of W beams a sentence.

    The beams of a sentence are the queries of one attention, over their past and over the memory,
    so that keys and values of the memory exist once a sentence.
    """

    def __init__(self, layer: nn.Module) -> None:
        assert isinstance(layer, DecoderLayer)
        self._num_heads = layer.attention.num_heads
        self._qkv, self._out = fixed_map(layer.attention.qkv), fixed_map(layer.attention.out)
        self._q, self._kv = fixed_map(layer.cross.q), fixed_map(layer.cross.kv)
        self._cross_out = fixed_map(layer.cross.out)
        self._feed_forward = _fixed_feed_forward(layer.feed_forward)
        self._attended, self._crossed, self._fed = map(_fixed_residual, layer.residuals)

    def start(self, memory_BSD: Tensor) -> LayerState:
        """Return the layer's state before the first position."""
        memory_2BHSK = split_heads(self._kv(memory_BSD), 2, self._num_heads).contiguous()
        return LayerState(memory_2BHSK[:, :, :, :0], memory_2BHSK)

    def step(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        """Return the layer's output; its own state keeps the keys and values."""
        x_BWD = self._attended(x_BWD, lambda x: self._attend_to_past(x, own, state))
        x_BWD = self._crossed(x_BWD, lambda x: self._attend_to_memory(x, own, state))
        return self._fed(x_BWD, self._feed_forward)

    def _attend_to_past(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        qkv_3BHWK = split_heads(self._qkv(x_BWD), 3, self._num_heads)
        own.past_2BHMK[:, :, :, state.first_slot : state.num_slots] = qkv_3BHWK[1:]
        return self._out(look(qkv_3BHWK[0], own.past_2BHMK, state.hidden_BWM))

    def _attend_to_memory(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        q_BHWK = split_heads(self._q(x_BWD), 1, self._num_heads)[0]
        return self._cross_out(look(q_BHWK, own.memory_2BHSK, state.hidden_B1S))


def _fixed_feed_forward(module: FeedForward) -> Map:
    inner, outer = fixed_map(module.inner, has_relu=True), fixed_map(module.outer)
    return lambda x: outer(inner(x))


def _fixed_residual(module: nn.Module) -> Callable[[Tensor, Map], Tensor]:
    """Return what Residual does as a function of x and the sub-layer."""
    assert isinstance(module, Residual)
    norm = fixed_norm(module.norm)
    if module.is_pre:
        return lambda x, sublayer: x + sublayer(norm(x))
    return lambda x, sublayer: norm(x + sublayer(x))
