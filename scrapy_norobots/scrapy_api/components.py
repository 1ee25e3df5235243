"""Find a class in component settings such as `DOWNLOADER_MIDDLEWARES`.

The keys of these settings are classes or import paths. `keys_of` imports no modules of the user, so add-ons
may call it; `enabled_keys` imports the components that the user has listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.setting_error import SettingError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_SETTINGS = ("ADDONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
_SAFE_TO_IMPORT = ("scrapy_norobots.", "scrapy.")


def keys_of(cls: type, components: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of a component setting that refer to the class `cls`.

    Import paths of the user's modules are not imported: add-ons run before the reactor is installed, and a
    module may import (and so install) one.
    """
    return [
        key
        for key in components
        if (not isinstance(key, str) or key.startswith(_SAFE_TO_IMPORT)) and _load(key) is cls
    ]


def enabled_keys(settings: BaseSettings, name: str, cls: type) -> list[Any]:
    """Return the keys by which the setting `name`, or its ``_BASE``, enables `cls` or a subclass of it."""
    components = compat.components(settings, name)
    return [
        key
        for key, order in components.items()
        if order is not None and isinstance(found := _load(key), type) and issubclass(found, cls)
    ]


def unused_overrides(cls: type, base: type, former: type) -> list[str]:
    """Return the names of `former` that `base` lacks, and that `cls`, a subclass of `base`, overrides."""
    hooks = {name for name in vars(former) if not name.startswith("__") and not hasattr(base, name)}
    before = cls.__mro__[: cls.__mro__.index(base)]
    return sorted({name for one in before if one is not former for name in vars(one)} & hooks)


def check_place(settings: BaseSettings, cls: type, place: str) -> None:
    """Raise `ValueError` if `cls` is enabled in a component setting other than `place`."""
    for name in _SETTINGS:
        components = settings.getdict(name)
        for key in keys_of(cls, components):
            if name != place and components[key] is not None:
                raise SettingError(f"{name} = {dict(components)!r}: {key!r} belongs in {place}")


def _load(key: Any) -> Any:
    try:
        return load_object(key)
    except Exception:  # of any kind; Scrapy reports it
        return None
