"""What decides whether the plugin was right, without code of the plugin.

`oracle` and `rfc9309` are second implementations of the two standards; `comparison` asks them and the parser
the same questions, and `judge` uses them on the log of the servers of a crawl. `evidence` reads the evidence
of a crawl with the tools of its users.
"""
