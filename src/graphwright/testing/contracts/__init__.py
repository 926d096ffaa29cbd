"""What every model, tool, run log and conversation store has to do, as tests that one of your own can run.

Each contract is a coroutine that returns when all is well, and raises an `AssertionError` that names the broken rule.
"""

from graphwright.testing.contracts.conversation_store import (
    conversation_store_contract,
    large_conversation_contract,
)
from graphwright.testing.contracts.guard import guard_contract
from graphwright.testing.contracts.isolation import isolation
from graphwright.testing.contracts.model import model_contract, tool_contract
from graphwright.testing.contracts.run_log import run_log_contract

__all__ = [
    "conversation_store_contract",
    "guard_contract",
    "isolation",
    "large_conversation_contract",
    "model_contract",
    "run_log_contract",
    "tool_contract",
]
