"""Benchmarks: compare the plugin with alternatives in one run: ``python -m benchmarks NAME``.

Each figure is compared with a crawl without robots.txt handling, or with another handler, on the same machine
at the same time. All traffic stays on this machine.
"""
