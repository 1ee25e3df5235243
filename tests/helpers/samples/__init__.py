"""Data for the tests of single modules.

Snapshots and stores with some entries, evidence of a made-up crawl, the settings that are numbers, and the
bytes of a robots.txt in each encoding.
"""
