"""Serve the library until Ctrl-C, then count the forbidden requests: ``python -m example_site [PORT]``."""

import sys
import time

from example_site import Library, off_limits, open_site


def main(port: int) -> None:
    """Serve on ``port``; on Ctrl-C, print the number of requests to places that are off limits."""
    with open_site(Library(), port) as site:
        print(f"The library is open at {site.url}/ (Ctrl-C closes it)", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            strays = [visit.target for visit in site.visits if off_limits(visit.target)]
            print(f"\n{len(site.visits)} requests, {len(strays)} of them off limits")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
