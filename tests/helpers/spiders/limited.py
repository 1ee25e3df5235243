"""Spiders whose process has too little of something: room or speed of its disk, open files, quick DNS."""

from __future__ import annotations

import logging
import resource
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from scrapy_norobots.features import evidence
from scrapy_norobots.features.evidence import answers, writer
from scrapy_norobots.features.evidence.fields import Answer
from tests.helpers.spiders.pages import Pages


class OnASmallDisk(Pages):
    """Can write files of 64 KiB, and is closed as soon as the log has a text."""

    def __init__(self, until: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        self._until = until
        self._is_there = False
        logging.getLogger("scrapy_norobots").addHandler(_Watcher(self._look))

    def _look(self, record: logging.LogRecord) -> None:
        self._is_there = self._is_there or self._until in record.getMessage()

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        if self._is_there:
            raise CloseSpider("the log has it")
        self.pages.clear()
        yield from super().parse(response, **kwargs)


class WithoutItsFolder(Pages):
    """Removes a folder when its first page comes."""

    def __init__(self, folder: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._folder = Path(folder)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        shutil.rmtree(self._folder, ignore_errors=True)
        return iter(())


class OnASlowDisk(Pages):
    """Writes no answer as evidence before the log has a text; its queue for evidence is small."""

    def __init__(self, queue_max: int, until: str, longest_end: float = 60, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        evidence._LONGEST_END = longest_end
        writer.Writer = partial(writer.Writer, queue_max=queue_max)  # type: ignore[misc,assignment]
        may_write = threading.Event()

        def look(record: logging.LogRecord) -> None:
            if until in record.getMessage():
                may_write.set()

        def packed(answer: Answer) -> bytes:
            assert may_write.wait(60)
            return really_packed(answer)

        really_packed = answers.packed
        answers.packed = packed
        logging.getLogger("scrapy_norobots").addHandler(_Watcher(look))


class _Watcher(logging.Handler):
    def __init__(self, look: Callable[[logging.LogRecord], object]) -> None:
        super().__init__()
        self._look = look

    def emit(self, record: logging.LogRecord) -> None:
        self._look(record)


class WithFewFiles(Pages):
    """May open few files; the limit is set before there is a downloader."""

    def __init__(self, files: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


class WithSlowNames(Pages):
    """Resolves each name of a host under .example to 127.0.0.1, after some seconds in a thread."""

    def __init__(self, seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        real = socket.getaddrinfo

        def address(host: str | bytes) -> str:
            name = host if isinstance(host, str) else host.decode()
            if not name.endswith(".example"):
                return name
            time.sleep(seconds)
            return "127.0.0.1"

        def getaddrinfo(host: str | bytes, *args: Any, **kwargs: Any) -> Any:
            return real(address(host), *args, **kwargs)

        socket.gethostbyname = address
        socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
