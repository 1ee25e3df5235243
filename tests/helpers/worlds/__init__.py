"""Random worlds, and programs that crawl them.

A seed makes a world: hosts, linked pages, and robots.txt files that are as hard to read as the standard
allows. `features` selects what the plugin is told to do there, and `slips` has the bugs that these crawls
must find. `invariant` crawls, and can also be run by hand, for any number of worlds.
"""
