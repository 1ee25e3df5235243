"""What starts something: crawls, commands and other processes, a Redis server, a browser.

`crawling` is what most tests need; below it are `processes`, which forks processes that start quickly, and
the programs that run in them. `killing` and `faulttable` are programs that can also be run by hand.
"""
