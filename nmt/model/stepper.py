"""The decoder one position at a time, for search: the same as the decoder, in fewer operations."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.model.attention import split_heads
from nmt.model.layers import DecoderLayer, Residual
from nmt.model.packed import fixed_map
from nmt.model.state import DecoderState, LayerState, look
from nmt.model.transformer import Transformer


class Stepper:
    """A model as a search calls it: `start` a state, then `step` after `step`.

    Where few sentences are left, Python and torch take longer to call an operation than it takes
    itself. So here are plain functions of weights that are made ready once, and no modules.
    """

    def __init__(self, model: Transformer) -> None:
        """Take a model in evaluation mode, whose weights do not change any more."""
        self._model = model
        self._dtype = model.output.weight.dtype
        self._layers = [_Layer(layer) for layer in model.decoder]
        self._norm = _norm(model.decoder_norm)
        self._output = fixed_map(model.output)
        self._embedding_VD = model.tgt_embedding.weight.detach()
        self._scale = math.sqrt(model.config.d_model)

    def start(self, src_BS: Tensor, keep_B11S: Tensor) -> DecoderState:
        """Encode the source and return the state before the first step, of one beam a sentence."""
        memory_BSD = self._model.encode(src_BS, keep_B11S)
        layers = []
        for layer in self._layers:
            memory_2BHSK = layer.project_memory(memory_BSD)
            layers.append(LayerState(memory_2BHSK[:, :, :, :0], memory_2BHSK))
        hidden_B1S = torch.where(keep_B11S[:, 0], 0.0, -math.inf).to(self._dtype)
        return DecoderState(layers, hidden_B1S, hidden_BWM=hidden_B1S[:, :, :0])

    def step(self, ids_BW: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Return the logits after the pieces chosen last, shape BWV, and the grown state."""
        place_1D = self._model.tgt_positions(1, state.num_positions, ids_BW.device)
        x_BWD = (self._embedding_VD[ids_BW] * self._scale + place_1D).to(self._dtype)
        state.open_slots()
        for layer, own in zip(self._layers, state.layers, strict=True):
            x_BWD = layer.step(x_BWD, own, state)
        state.num_positions += 1
        return self._output(self._norm(x_BWD)), state


class _Layer:
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
        self._inner = fixed_map(layer.feed_forward.inner, has_relu=True)
        self._outer = fixed_map(layer.feed_forward.outer)
        residuals = [module for module in layer.residuals if isinstance(module, Residual)]
        self._is_pre = residuals[0].is_pre
        self._norms = [_norm(residual.norm) for residual in residuals]

    def project_memory(self, memory_BSD: Tensor) -> Tensor:
        """Return keys and values of the memory, shape 2BHSK."""
        return split_heads(self._kv(memory_BSD), 2, self._num_heads).contiguous()

    def step(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        """Return the layer's output; its own state keeps the keys and values."""
        attended, crossed, fed = self._norms
        x_BWD = self._add(x_BWD, attended, lambda x: self._attend_to_past(x, own, state))
        x_BWD = self._add(x_BWD, crossed, lambda x: self._attend_to_memory(x, own, state))
        return self._add(x_BWD, fed, lambda x: self._outer(self._inner(x)))

    def _add(
        self,
        x_BWD: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Do what Residual does."""
        return x_BWD + sublayer(norm(x_BWD)) if self._is_pre else norm(x_BWD + sublayer(x_BWD))

    def _attend_to_past(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        qkv_3BHWK = split_heads(self._qkv(x_BWD), 3, self._num_heads)
        own.past_2BHMK[:, :, :, state.first_slot : state.num_slots] = qkv_3BHWK[1:]
        return self._out(look(qkv_3BHWK[0], own.past_2BHMK, state.hidden_BWM))

    def _attend_to_memory(self, x_BWD: Tensor, own: LayerState, state: DecoderState) -> Tensor:
        q_BHWK = split_heads(self._q(x_BWD), 1, self._num_heads)[0]
        return self._cross_out(look(q_BHWK, own.memory_2BHSK, state.hidden_B1S))


def _norm(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a layer norm as a function; torch computes it in fp32 inside, whatever comes in."""
    if not isinstance(module, nn.LayerNorm):
        return module
    shape, epsilon = module.normalized_shape, module.eps
    weight, bias = module.weight.detach(), module.bias.detach()
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
