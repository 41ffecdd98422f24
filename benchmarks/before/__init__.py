"""The working tree beside an earlier commit, in one run: `python -m benchmarks.before REF`."""
