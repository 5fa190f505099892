"""Says whether a run may go on under a changed config."""

from nmt.config import Config, flatten
from nmt.errors import UserError

# A changed limit or log changes no weight of the updates that are done; where they are computed is
# the user's affair.
_HARMLESS = {
    f"training.{key}"
    for key in "max_steps max_epochs max_minutes patience log_every device precision".split()
}


def check_resume(old: Config, new: Config, run: str) -> None:
    """Raise UserError with both values where a key changed that would make it another run."""
    before, now = flatten(old), flatten(new)
    changes = [
        f"{key} was {before[key]}, is {now[key]}"
        for key in now
        if now[key] != before[key] and key not in _HARMLESS
    ]
    if changes:
        raise UserError(
            f"{run}: has checkpoints made with another config: {'; '.join(changes)}. "
            f"Set these back, or give another folder with --run."
        )
