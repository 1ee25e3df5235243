"""How the access to an origin is found: in memory (`OriginCache`), in a store, or by a download (`fetch`).

`loader` is the way in. May import everything below the features.
"""
