"""A stand-in for vLLM: the parts of its interface that plumb's worker uses, answering without computing.

FAKE_VLLM says how it behaves, words separated by commas: fail-boot, hang-boot, exit-boot, die=N (the engine is dead
from the Nth request on), exit=N (the process ends at the Nth request), hang=N, no-ready, two-engines, no-metrics.
"""

import os

__version__ = "9.9.9+fake"


def behaviour(word):
    """The number after `word=`, True for the word alone, None where it is not asked for."""
    for part in os.environ.get("FAKE_VLLM", "").split(","):
        name, _, number = part.partition("=")
        if name == word:
            return int(number) if number else True
    return None
