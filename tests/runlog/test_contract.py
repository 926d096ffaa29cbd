"""Every run log of the package passes the contract for run logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphwright.runlog import MemoryRunLog, Row, RunInfo, RunWriter, SQLiteRunLog
from graphwright.testing.contracts.run_log import run_log_contract


async def test_the_log_in_memory_keeps_the_contract() -> None:
    await run_log_contract(MemoryRunLog)


async def test_the_log_in_a_file_keeps_the_contract(tmp_path: Path) -> None:
    names = (tmp_path / f"{number}.db" for number in range(100))

    await run_log_contract(lambda: SQLiteRunLog(next(names)))


async def test_the_contract_finds_a_log_that_writes_a_row_twice() -> None:
    class Careless(MemoryRunLog):
        async def begin(self, *args: object, **kwargs: object) -> RunWriter:
            writer = await super().begin(*args, **kwargs)  # type: ignore[arg-type]
            put = writer.put

            def put_anyway(*rows: Row, soon: bool = False) -> None:
                try:
                    put(*rows, soon=soon)
                except ValueError:
                    return

            writer.put = put_anyway  # type: ignore[method-assign]
            return writer

    with pytest.raises(AssertionError, match="a second row does not raise ValueError"):
        await run_log_contract(Careless)


async def test_the_contract_finds_a_log_that_lets_two_write() -> None:
    class Open(MemoryRunLog):
        async def begin(self, info: RunInfo, **kwargs: object) -> RunWriter:
            thread = self._threads.get(info.thread_id)
            if thread is not None:
                thread.hand_to(None)
            return await super().begin(info, **kwargs)  # type: ignore[arg-type]

    with pytest.raises(AssertionError, match="begin\\(\\) on a thread at work does not raise ThreadBusy"):
        await run_log_contract(Open)
