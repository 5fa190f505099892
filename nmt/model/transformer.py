"""The Transformer of Vaswani et al. 2017: token ids in, logits out.

Names of tensors end in their shape: B sentences, S source positions, T target positions, D d_model,
H heads, K width of a head, F feed-forward, V vocabulary, Q queries, M positions looked at, W beams,
R = B·W rows, C cells (the positions of all sentences), N real target positions of a batch.
"""

import math

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import keep_past
from nmt.model.cells import as_cells, as_sentences
from nmt.model.dropout import Dropout
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.positions import LearnedPositions, SinusoidalPositions
from nmt.tokens.vocab import PAD


class Transformer(nn.Module):
    """Encoder and decoder: `encode`, `decode` and `project`; decoding goes by a Stepper."""

    def __init__(self, config: ModelConfig, *, src_vocab: int, tgt_vocab: int) -> None:
        super().__init__()
        self.config = config
        num_encoder, num_decoder = config.num_layers
        self.src_embedding = nn.Embedding(src_vocab, config.d_model)
        is_joint = config.tie == "all"
        assert src_vocab == tgt_vocab or not is_joint, "one matrix needs one vocabulary"
        self.tgt_embedding = (
            self.src_embedding if is_joint else nn.Embedding(tgt_vocab, config.d_model)
        )
        self.src_positions = _positions(config)
        self.tgt_positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(num_encoder))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(num_decoder))
        self.encoder_norm = _final_norm(config)
        self.decoder_norm = _final_norm(config)
        self.output = nn.Linear(config.d_model, tgt_vocab, bias=False)
        self._initialise()
        if config.tie != "none":
            self.output.weight = self.tgt_embedding.weight

    @property
    def max_positions(self) -> int | None:
        """How long a sequence may be; None where there is no end."""
        return self.config.max_positions if self.config.positions == "learned" else None

    def forward(self, src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        """Return the logits of the next piece at every target position, shape BTV."""
        keep_B11S = keep_real(src_BS)
        return self.project(self.decode(tgt_in_BT, self.encode(src_BS, keep_B11S), keep_B11S))

    def encode(self, src_BS: Tensor, keep_B11S: Tensor) -> Tensor:
        """Return the memory, shape BSD."""
        keep_B1SS = keep_B11S.expand(-1, -1, src_BS.shape[1], -1)
        x_CD = self._embed(self.src_embedding, self.src_positions, src_BS)
        for layer in self.encoder:
            x_CD = layer(x_CD, keep_B1SS)
        return as_sentences(self.encoder_norm(x_CD), *src_BS.shape)

    def decode(self, tgt_in_BT: Tensor, memory_BSD: Tensor, keep_B11S: Tensor) -> Tensor:
        """Return the decoder's output at every position, teacher-forced, shape BTD."""
        num_sentences, num_positions = tgt_in_BT.shape
        past_11TT = keep_past(num_positions).to(tgt_in_BT.device)
        past_B1TT = past_11TT.expand(num_sentences, -1, -1, -1)
        keep_B1TS = keep_B11S.expand(-1, -1, num_positions, -1)
        memory_CD = as_cells(memory_BSD)
        x_CD = self._embed(self.tgt_embedding, self.tgt_positions, tgt_in_BT)
        for layer in self.decoder:
            x_CD = layer(x_CD, memory_CD, past_B1TT, keep_B1TS)
        return as_sentences(self.decoder_norm(x_CD), num_sentences, num_positions)

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits over the target vocabulary: ...D to ...V."""
        return self.output(hidden)

    def _embed(self, embedding: nn.Module, positions: nn.Module, ids_BT: Tensor) -> Tensor:
        """Return embeddings times sqrt(d_model) plus positions, with dropout, shape CD.

        Vaswani 2017, 3.4 and 5.4.
        """
        scaled_BTD = embedding(ids_BT) * math.sqrt(self.config.d_model)
        places_TD = positions(ids_BT.shape[1], 0, ids_BT.device)
        return self.dropout(as_cells((scaled_BTD + places_TD).to(self.output.weight.dtype)))

    def _initialise(self) -> None:
        """Xavier for every matrix; embeddings so that their scaled entries have variance 1."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.d_model**-0.5)


def keep_real(ids_BS: Tensor) -> Tensor:
    """Return True where there is a piece and not padding, shape B11S."""
    return (ids_BS != PAD)[:, None, None, :]


def compute_in(model: Transformer, dtype: torch.dtype) -> Transformer:
    """Let all but the embeddings compute in `dtype`: their weights become copies in it."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.LayerNorm):
            for name, weight in module.named_parameters(recurse=False):
                if weight.dtype != dtype:
                    copied = nn.Parameter(weight.detach().to(dtype), weight.requires_grad)
                    setattr(module, name, copied)
    return model


def _positions(config: ModelConfig) -> nn.Module:
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.d_model)
    return SinusoidalPositions(config.d_model)


def _final_norm(config: ModelConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
