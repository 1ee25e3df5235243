"""Tests of the documentation site and the package. `make check` builds both, then runs these tests."""
