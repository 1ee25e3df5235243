"""Measurements, side by side with others in one run: ``python -m benchmarks NAME``.

Each figure is a ratio to a crawl without robots.txt handling, or to another handler, on the same machine
in the same minutes. Traffic goes to this machine only.
"""
