"""Components of a user whose module imports the reactor, and so installs one if there is none yet."""

from __future__ import annotations

from twisted.internet import reactor  # noqa: F401


class Extension:
    """Does nothing."""


class Middleware:
    """Does nothing, at any place."""
