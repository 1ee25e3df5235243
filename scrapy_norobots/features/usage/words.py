"""The words for uses of pages: those of `NOROBOTS_PURPOSES`, and what each vocabulary calls the same uses.

The docs have these tables too, with the versions of the drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SEARCH, AI_INPUT, AI_TRAIN = "search", "ai-input", "ai-train"
PURPOSES = (SEARCH, AI_INPUT, AI_TRAIN)

# The kinds of statements, with the names of their fields.
CONTENT_USAGE, CONTENT_SIGNAL, LICENSE = "content-usage", "content-signal", "license"
TDM_RESERVATION, TDM_POLICY = "tdm-reservation", "tdm-policy"
NOAI, NOIMAGEAI = "noai", "noimageai"

# What the words of each kind are about.
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        CONTENT_SIGNAL: {purpose: (purpose,) for purpose in PURPOSES},
        CONTENT_USAGE: {
            "search": (SEARCH,),
            "ai-use": (AI_INPUT,),
            "train-ai": (AI_TRAIN,),
            # Words of earlier drafts
            "train-genai": (AI_TRAIN,),
            "ai": (AI_INPUT, AI_TRAIN),
            "bots": PURPOSES,
        },
    }
)

# Kinds whose value says by itself, when it is true, that a page must not be used for this.
REFUSALS: Mapping[str, str] = MappingProxyType(dict.fromkeys((TDM_RESERVATION, NOAI, NOIMAGEAI), AI_TRAIN))


def check_purpose(purpose: object) -> None:
    """Raise `ValueError` for a word that is not in `PURPOSES`, such as ``"train-ai"`` of Content-Usage."""
    if purpose not in PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}; choose from {', '.join(PURPOSES)}")


# The values of the word `use` of Content-Signal: how much of a page may be stored and shown.
USES = ("immediate", "reference", "full")
