"""The model for search: encodes, then decodes one position at a time, as the model would."""

import math

import torch
from torch import Tensor

from nmt.model.fixed_layers import FixedDecoderLayer, FixedEncoderLayer, fixed_norm
from nmt.model.packed import fixed_map
from nmt.model.state import DecoderState
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
        self._encoder = [FixedEncoderLayer(layer) for layer in model.encoder]
        self._decoder = [FixedDecoderLayer(layer) for layer in model.decoder]
        self._encoder_norm = fixed_norm(model.encoder_norm)
        self._decoder_norm = fixed_norm(model.decoder_norm)
        self._output = fixed_map(model.output)
        self._src_embedding_VD = model.src_embedding.weight.detach()
        self._tgt_embedding_VD = model.tgt_embedding.weight.detach()
        self._scale = math.sqrt(model.config.d_model)

    def start(self, src_BS: Tensor, keep_B11S: Tensor) -> DecoderState:
        """Encode the source and return the state before the first step, of one beam a sentence."""
        hidden_B1S = torch.where(keep_B11S[:, 0], 0.0, -math.inf).to(self._dtype)
        places_SD = self._model.src_positions(src_BS.shape[1], 0, src_BS.device)
        x_BSD = self._embed(self._src_embedding_VD[src_BS], places_SD)
        for layer in self._encoder:
            x_BSD = layer(x_BSD, hidden_B1S)
        memory_BSD = self._encoder_norm(x_BSD)
        layers = [layer.start(memory_BSD) for layer in self._decoder]
        return DecoderState(layers, hidden_B1S, hidden_BWM=hidden_B1S[:, :, :0])

    def step(self, ids_BW: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Return the logits after the pieces chosen last, shape BWV, and the grown state."""
        place_1D = self._model.tgt_positions(1, state.num_positions, ids_BW.device)
        x_BWD = self._embed(self._tgt_embedding_VD[ids_BW], place_1D)
        state.open_slots()
        for layer, own in zip(self._decoder, state.layers, strict=True):
            x_BWD = layer.step(x_BWD, own, state)
        state.num_positions += 1
        return self._output(self._decoder_norm(x_BWD)), state

    def _embed(self, embedded_BTD: Tensor, places_TD: Tensor) -> Tensor:
        return (embedded_BTD * self._scale + places_TD).to(self._dtype)
