"""nmt: from parallel text to a trained Transformer and a BLEU score one can trust."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.decoding.translate import Translator as Translator

__all__ = ["Translator"]


def __getattr__(name: str) -> Any:
    """Import torch only when the translator is asked for."""
    if name == "Translator":
        from nmt.decoding.translate import Translator

        return Translator
    raise AttributeError(f"module nmt has no attribute {name!r}")
