"""Says whether a run may go on under a changed config, key by key."""

from collections.abc import Sequence

from nmt.config import Config, flatten
from nmt.errors import UserError
from nmt.strict_yaml import nearest

# A changed limit or log changes no weight of the updates that are done; where they are computed,
# and which of them stay, is the user's affair.
_HARMLESS = {
    f"training.{key}"
    for key in (
        "max_steps max_epochs max_minutes patience log_every save_every keep keep_best keep_every "
        "tensorboard device device_tokens rank_timeout_minutes"
    ).split()
}


def check_resume(old: Config, new: Config, run: str, override: Sequence[str] = ()) -> list[str]:
    """Return a sentence for each change that `--override KEY` admits.

    Raises UserError with both values where another key changed that would make it another run.
    """
    before, now = flatten(old), flatten(new)
    for key in override:
        if key not in now:
            raise UserError(f"--override {key}: there is no such key; {nearest(key, list(now))}.")
    changes = {
        key: f"{key} was {_shown(before[key])}, is {_shown(now[key])}"
        for key in now
        if now[key] != before[key] and not _is_harmless(key)
    }
    refused = [key for key in changes if key not in override or _is_fixed(key)]
    if refused:
        raise UserError(
            f"{run}: has checkpoints made with another config: "
            f"{'; '.join(changes[key] for key in refused)}. {_what_to_do(refused, override)}"
        )
    return [f"{change}, as --override says" for change in changes.values()]


def _shown(value: object) -> str:
    return '""' if value == "" else str(value)


def _is_harmless(key: str) -> bool:
    return key in _HARMLESS or key.startswith("decoding.")


def _is_fixed(key: str) -> bool:
    """Return whether a changed value would not fit what is prepared, trained and scored so far."""
    section = key.partition(".")[0]
    return key in ("training.init_from", "training.best_by") or (
        section in ("src", "tgt", "data", "clean", "vocab", "model") and key != "model.dropout"
    )


def _what_to_do(refused: Sequence[str], override: Sequence[str]) -> str:
    fixed = [key for key in refused if _is_fixed(key)]
    tried = ", ".join(key for key in fixed if key in override)
    if tried:
        return (
            f"No --override admits {tried}: the data, weights or scores so far would not fit. "
            f"Set these back, or give another folder with --run."
        )
    if fixed:
        return "Set these back, or give another folder with --run."
    options = " ".join(f"--override {key}" for key in refused)
    return f"Set these back, go on all the same with {options}, or give another folder with --run."
