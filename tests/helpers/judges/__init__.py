"""What decides whether the plugin was right, without code of the plugin.

`oracle` is a second implementation of the standard. `judge` uses it on the log of the servers of a crawl.
`evidence` reads the evidence of a crawl with the tools of its users.
"""
