"""The one exception for what a user did wrong."""


class UserError(Exception):
    """What was found, where, what was expected, what to do: printed as is, with exit status 2."""
