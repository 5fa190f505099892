"""The encoder and decoder layers: sub-layers, each with its residual and norm.

They compute on cells; masks say which are a sentence, and where it may look.
"""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.attention import CrossAttention, SelfAttention
from nmt.model.dropout import Dropout


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (Vaswani 2017, 3.3)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x_CD: Tensor) -> Tensor:
        return self.outer(self.inner(x_CD).relu())


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (Vaswani 2017, 3.1 and 5.4).

    With norm: pre, x + Dropout(Sublayer(LayerNorm(x))); the stack then ends with a norm of its own.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_CD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.is_pre:
            return x_CD + self.dropout(sublayer(self.norm(x_CD)))
        return self.norm(x_CD + self.dropout(sublayer(x_CD)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x_CD: Tensor, keep_B1SS: Tensor) -> Tensor:
        attended, fed = self.residuals
        x_CD = attended(x_CD, lambda x: self.attention(x, keep_B1SS))
        return fed(x_CD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the memory, feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.d_model, config.num_heads, is_causal=True)
        self.cross = CrossAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(
        self, x_CD: Tensor, memory_CD: Tensor, past_B1TT: Tensor, keep_B1TS: Tensor
    ) -> Tensor:
        """All target positions at once, as teacher forcing needs them."""
        attended, crossed, fed = self.residuals
        x_CD = attended(x_CD, lambda x: self.attention(x, past_B1TT))
        x_CD = crossed(x_CD, lambda x: self.cross(x, memory_CD, keep_B1TS))
        return fed(x_CD, self.feed_forward)
