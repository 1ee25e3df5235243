"""Tests of what `make check` builds, which runs them: the documentation site and the package."""
