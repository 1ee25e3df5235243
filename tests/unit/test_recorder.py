"""What a crawl calls to record evidence, without a crawl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_without_warcio_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['warcio'] = None\n"
        "from datetime import datetime\n"
        "from unittest.mock import MagicMock\n"
        "from scrapy.settings import Settings\n"
        "from scrapy_norobots.features.evidence import Evidence, EvidenceConfig\n"
        "from scrapy_norobots.settings import Config\n"
        "settings = Settings({'NOROBOTS_EVIDENCE': 'new'})\n"
        "read = Config.from_settings(settings), EvidenceConfig.from_settings(settings)\n"
        "Evidence(MagicMock(settings=settings), *read).open(datetime.now())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "needs warcio: pip install 'scrapy-norobots[evidence]'" in done.stderr.splitlines()[-1]
    assert "SettingError: NOROBOTS_EVIDENCE = 'new': " in done.stderr.splitlines()[-1]
    assert not (tmp_path / "new").exists()
