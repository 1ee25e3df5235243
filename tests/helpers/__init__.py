"""What the tests share, grouped by what it is.

`sites` has local servers, `spiders` the spiders of crawls, and `components` what else a user lists in
settings. `worlds` makes random worlds and crawls them, `judges` decides what was right, `running` starts
processes, and `samples` has data for the tests of single modules. Each folder's docstring says more.
"""
