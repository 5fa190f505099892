"""The Transformer of Vaswani et al. 2017: token ids in, logits out.

Names of tensors end in their shape: B sentences, S source positions, T target positions, D d_model,
H heads, K width of a head, F feed-forward, V vocabulary, Q queries, M positions looked at, W beams,
R = B·W rows, N real target positions of a batch.
"""

import math

import torch
from torch import Tensor, nn

from nmt.config import ModelConfig
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
        x_BSD = self._embed(self.src_embedding, self.src_positions, src_BS)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, keep_B11S)
        return self.encoder_norm(x_BSD)

    def decode(self, tgt_in_BT: Tensor, memory_BSD: Tensor, keep_B11S: Tensor) -> Tensor:
        """Return the decoder's output at every position, teacher-forced, shape BTD."""
        x_BTD = self._embed(self.tgt_embedding, self.tgt_positions, tgt_in_BT)
        for layer in self.decoder:
            x_BTD = layer(x_BTD, memory_BSD, keep_B11S)
        return self.decoder_norm(x_BTD)

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits over the target vocabulary: ...D to ...V."""
        return self.output(hidden)

    def _embed(self, embedding: nn.Module, positions: nn.Module, ids_BT: Tensor) -> Tensor:
        """Embeddings times sqrt(d_model) plus positions, with dropout (Vaswani 2017, 3.4, 5.4)."""
        scaled_BTD = embedding(ids_BT) * math.sqrt(self.config.d_model)
        places_TD = positions(ids_BT.shape[1], 0, ids_BT.device)
        return self.dropout((scaled_BTD + places_TD).to(self.output.weight.dtype))

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
