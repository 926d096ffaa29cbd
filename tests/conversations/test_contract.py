"""The four stores, and the fallback for a smaller one, against the one contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphwright.conversations import AppendingStore
from graphwright.testing.contracts.conversation_store import conversation_store_contract, large_conversation_contract


async def test_a_store_keeps_the_contract(make_store: Callable[..., AppendingStore]) -> None:
    await conversation_store_contract(make_store)


@pytest.mark.slow
async def test_a_store_keeps_large_conversations(make_store: Callable[..., AppendingStore]) -> None:
    await large_conversation_contract(make_store)
