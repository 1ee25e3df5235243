"""``python -m benchmarks NAME [--rounds N]``."""

from __future__ import annotations

import argparse

from benchmarks import broad, fleet, hosts, single, stores

BENCHMARKS = {"broad": broad, "single": single, "hosts": hosts, "stores": stores, "fleet": fleet}


def main() -> None:
    """Run one benchmark."""
    lines = [
        f"{name}: {(module.__doc__ or '').split(': ', 1)[-1].splitlines()[0]}"
        for name, module in BENCHMARKS.items()
    ]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (3)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    BENCHMARKS[options.name].run(options.rounds)


if __name__ == "__main__":
    main()
