"""Component settings, such as `DOWNLOADER_MIDDLEWARES`: which of their keys stand for a class or enable it.

Keys are classes or import paths. `keys_of` imports nothing of the user's, so add-ons may use it;
`enabled_keys` imports what the user has listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_SETTINGS = ("ADDONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
_SAFE_TO_IMPORT = ("scrapy_norobots.", "scrapy.")


def keys_of(cls: type, components: Mapping[Any, Any]) -> list[Any]:
    """Return the keys that stand for a class.

    Nothing of the user's is imported: add-ons run before there is a reactor, and modules may import it.
    """
    return [
        key
        for key in components
        if (not isinstance(key, str) or key.startswith(_SAFE_TO_IMPORT)) and _load(key) is cls
    ]


def enabled_keys(settings: BaseSettings, name: str, cls: type) -> list[Any]:
    """Return the keys by which a component setting (Scrapy's own part too) enables a class or subclass."""
    components = compat.components(settings, name)
    return [
        key
        for key, order in components.items()
        if order is not None and isinstance(found := _load(key), type) and issubclass(found, cls)
    ]


def check_place(settings: BaseSettings, cls: type, place: str) -> None:
    """Raise `ValueError` if a class is in a component setting where it does nothing."""
    for name in _SETTINGS:
        components = settings.getdict(name)
        for key in keys_of(cls, components):
            if name != place and components[key] is not None:
                raise ValueError(f"{name} = {dict(components)!r}: {key!r} belongs into {place}")


def _load(key: Any) -> Any:
    try:
        return load_object(key)
    except Exception:  # whatever a module raises: Scrapy reports it
        return None
