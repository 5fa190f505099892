"""The encoder and decoder layers: sub-layers, each with its residual and norm."""

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

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.outer(self.inner(x_BTD).relu())


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (Vaswani 2017, 3.1 and 5.4).

    With norm: pre, x + Dropout(Sublayer(LayerNorm(x))); the stack then ends with a norm of its own.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.is_pre:
            return x_BTD + self.dropout(sublayer(self.norm(x_BTD)))
        return self.norm(x_BTD + self.dropout(sublayer(x_BTD)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x_BSD: Tensor, keep_B11S: Tensor) -> Tensor:
        attended, fed = self.residuals
        x_BSD = attended(x_BSD, lambda x: self.attention(x, keep_B11S))
        return fed(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the memory, feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config.d_model, config.num_heads)
        self.cross = CrossAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, keep_B11S: Tensor) -> Tensor:
        """All target positions at once, as teacher forcing needs them."""
        attended, crossed, fed = self.residuals
        x_BTD = attended(x_BTD, lambda x: self.attention(x, None))
        x_BTD = crossed(x_BTD, lambda x: self.cross(x, memory_BSD, keep_B11S))
        return fed(x_BTD, self.feed_forward)
