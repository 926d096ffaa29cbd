"""Approval of an agent's tool calls: who is asked, what the model reads, and that there is no way around it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from graphwright import CallerContext, ConfigurationError, build_agent
from graphwright.approval import ApprovalDecision, ApprovalGate, ApprovalPolicy, ApprovalRequest, QueueApprovalHandler
from graphwright.cross_agent import CrossAgent
from graphwright.engine import BaseNode, NodeFlag, NodeResult, PromptGraph, PromptNode
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.interrupt import interrupt
from graphwright.engine.nodes import ParallelNode, SubgraphNode, ToolNode
from graphwright.run_events import ToolFinished
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, assert_valid_conversation, call, calls, calls_many, says
from graphwright.tools import answer_calls, as_tools, tool
from graphwright.tools.base import Verdict
from graphwright.types import ToolCall


class Shredder:
    """A tool whose calls are counted, and the people who are asked about it."""

    def __init__(self, answer: Any = True) -> None:
        self.ran: list[Any] = []
        self.asked: list[ApprovalRequest] = []
        self.answer = answer

        @tool
        async def delete(path: str, api_key: str = "") -> str:
            """Delete a file."""
            self.ran.append((path, api_key) if api_key else path)
            return f"deleted {path}"

        self.tool = delete

    async def ask(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(request) if callable(self.answer) else self.answer

    def policy(self, *patterns: str, **options: Any) -> ApprovalPolicy:
        return ApprovalPolicy(tools=list(patterns or ("delete*",)), handler=self.ask, **options)


def tool_results(result: Any) -> list[tuple[str, str]]:
    return [(message.status, message.content) for message in result.messages if message.type == "tool"]


async def test_an_approved_call_runs_and_the_request_says_what_would_run() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a", api_key="sk-1234567890abcdefghij"), says("done")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(metadata={"team": "ops"}, timeout=7),
    )

    result = await agent.ainvoke("please delete /a, password=hunter22", caller=CallerContext(user_id="ann"))

    assert shredder.ran == [("/a", "sk-1234567890abcdefghij")]
    [request] = shredder.asked
    assert request.tool_name == "delete"
    assert request.arguments == {"path": "/a", "api_key": "[redacted]"}
    assert request.raw_arguments == {"path": "/a", "api_key": "sk-1234567890abcdefghij"}
    assert request.caller_user_id == "ann"
    assert request.metadata == {"team": "ops"}
    assert request.timeout == 7
    assert request.context_summary == "human: please delete /a, password=[redacted]"
    assert request.tool_annotations["description"] == "Delete a file."
    assert "sk-1234567890abcdefghij" not in str(request.to_dict())
    assert "sk-1234567890abcdefghij" not in repr(request)
    assert result.text == "done"


@pytest.mark.parametrize("how", ["ainvoke", "astream", "astream_with_tools"])
async def test_a_denied_call_is_told_as_denied_everywhere(how: str) -> None:
    shredder = Shredder(ApprovalDecision(False, reason="not on a Friday"))
    model = ScriptedModel([calls("delete", path="/a"), says("I left it alone.")])
    agent = await build_agent(model=model, extra_tools=[shredder.tool], approval=shredder.policy())

    if how == "ainvoke":
        result = await agent.ainvoke("clean up")
        [told] = tool_results(result)
        assert_valid_conversation(result.messages)
    elif how == "astream":
        chunks = [chunk async for chunk in agent.astream("clean up")]
        [told] = [(m.status, m.content) for m in chunks[-1]["messages"] if m.type == "tool"]
    else:
        events = [event async for event in agent.astream_with_tools("clean up")]
        [end] = [event for event in events if event.type == "tool_end"]
        assert end.success is False
        [told] = [(m.status, m.content) for m in model.requests[-1].messages if m.type == "tool"]

    assert told[0] == "error"
    assert "A person rejected this call, so it did not run. They said: not on a Friday" in told[1]
    assert shredder.ran == []


async def test_a_denial_is_no_success_in_the_events_and_says_who_decided() -> None:
    shredder = Shredder(ApprovalDecision(False, reviewer_id="bob", reason="no"))
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(),
    )

    run = agent.start("go")
    events = [event async for event in run.events()]
    [finished] = [event for event in events if isinstance(event, ToolFinished)]

    assert (finished.result.success, finished.result.verdict) == (False, "rejected")
    assert finished.result.notes == [
        {"approval": "denied", "decided_by": "reviewer", "reviewer_id": "bob", "reason": "no"}
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RuntimeError("the pager is down"), "the approval handler failed (RuntimeError)"),
        (TimeoutError("of its own"), "the approval handler failed (TimeoutError)"),
        ("yes", "gave no decision that can be read"),
        (1, "gave no decision that can be read"),
        (None, "gave no decision that can be read"),
        ({"approved": "true"}, "gave no decision that can be read"),
        (ApprovalDecision("yes"), "gave no decision that can be read"),  # type: ignore[arg-type]
        (ApprovalDecision(True, modified_arguments="path=/b"), "gave no decision that can be read"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
async def test_what_is_no_clear_yes_denies(answer: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    shredder = Shredder(answer)
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(),
    )

    result = await agent.ainvoke("go")

    [(status, text)] = tool_results(result)
    assert status == "error"
    assert said in text
    assert "pager" not in text
    assert shredder.ran == []
    assert any(record.levelno == logging.ERROR for record in caplog.records)


@pytest.mark.parametrize(("on_timeout", "ran"), [("deny", []), ("allow", ["/a"])])
async def test_nobody_in_time_is_decided_by_the_policy(on_timeout: Any, ran: list[str]) -> None:
    shredder = Shredder()
    told: list[ApprovalDecision] = []
    cancelled = asyncio.Event()

    async def sleeps(request: ApprovalRequest) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return True

    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(
            tools=["delete"],
            handler=sleeps,
            timeout=0.01,
            on_timeout=on_timeout,
            on_decision=lambda request, decision: told.append(decision),
        ),
    )

    result = await agent.ainvoke("go")

    assert shredder.ran == ran
    assert cancelled.is_set()
    assert [decision.approved for decision in told] == [on_timeout == "allow"]
    assert told[0].decided_by == ("gate" if on_timeout == "allow" else "expiry")
    if on_timeout == "deny":
        assert tool_results(result) == [("error", "Nobody approved this call in time, so it did not run.")]


async def test_a_handler_that_cannot_be_cancelled_holds_up_nobody() -> None:
    shredder = Shredder()
    freed = asyncio.Event()

    async def stubborn(request: ApprovalRequest) -> bool:
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                continue
        return True

    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], handler=stubborn, timeout=0.01),
    )

    result = await agent.ainvoke("go")
    freed.set()
    await asyncio.sleep(0)

    assert "Nobody approved this call in time" in tool_results(result)[0][1]
    assert shredder.ran == []


async def test_edited_arguments_are_merged_run_and_announced_and_hidden_ones_come_back() -> None:
    def edit(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(True, modified_arguments={**request.arguments, "path": "/scratch/a"})

    shredder = Shredder(edit)
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a", api_key="key-0123456789abcdef"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(),
    )

    result = await agent.ainvoke("go")

    assert shredder.ran == [("/scratch/a", "key-0123456789abcdef")]
    [(status, text)] = tool_results(result)
    assert status == "success"
    assert text.startswith("A person changed the arguments of this call; it ran with {")
    assert "/scratch/a" in text
    assert text.endswith("deleted /scratch/a")


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"path": 7}, "path"),
        ({"pth": "/b"}, "pth"),
        ({"path": "/data/[redacted]"}, "stands for something hidden"),
    ],
)
async def test_edits_that_do_not_fit_deny_the_call(edits: dict[str, Any], said: str) -> None:
    shredder = Shredder(ApprovalDecision(True, modified_arguments=edits))
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(),
    )

    result = await agent.ainvoke("go")

    [(status, text)] = tool_results(result)
    assert status == "error"
    assert said in text
    assert shredder.ran == []


@pytest.mark.parametrize(("sequential", "most"), [(False, 3), (True, 1)])
async def test_the_calls_of_a_turn_are_asked_about_together_unless_sequential(sequential: bool, most: int) -> None:
    at_once: list[int] = []
    open_now = 0
    all_there = asyncio.Event()

    async def ask(request: ApprovalRequest) -> bool:
        nonlocal open_now
        open_now += 1
        at_once.append(open_now)
        if open_now == most:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(0)
        open_now -= 1
        return True

    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls_many(*(call("delete", path=f"/{name}") for name in "abc")), says("ok")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], handler=ask, sequential=sequential),
    )

    await agent.ainvoke("go")

    assert max(at_once) == most
    assert sorted(shredder.ran) == ["/a", "/b", "/c"]


async def test_calls_beyond_max_pending_are_denied_without_asking() -> None:
    queue = QueueApprovalHandler()
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls_many(*(call("delete", path=f"/{name}") for name in "abc")), says("ok")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], handler=queue, max_pending=2),
    )
    run = asyncio.create_task(agent.ainvoke("go"))
    for _ in range(2):
        queue.submit_decision((await queue.next_request()).request_id, True)

    result = await run

    assert sorted(shredder.ran) == ["/a", "/b"]
    assert "2 calls wait for approval already" in tool_results(result)[2][1]


async def test_a_tool_that_was_denied_often_is_refused_without_asking() -> None:
    shredder = Shredder(False)
    steps = [calls("delete", path=f"/{place}") for place in range(4)]
    agent = await build_agent(
        model=ScriptedModel([*steps, says("ok"), calls("delete", path="/x"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(max_retries_after_deny=2),
    )

    result = await agent.ainvoke("go", session_id="one")
    assert len(shredder.asked) == 2
    assert ["nobody is asked about it" in text for _, text in tool_results(result)] == [False, False, True, True]

    await agent.ainvoke("go", session_id="two")
    assert len(shredder.asked) == 3


async def test_denials_of_a_user_count_over_sessions_and_not_for_another_user() -> None:
    shredder = Shredder(False)
    model = ScriptedModel([step for _ in range(3) for step in (calls("delete", path="/a"), says("ok"))])
    agent = await build_agent(
        model=model,
        extra_tools=[shredder.tool],
        approval=shredder.policy(max_retries_after_deny=1, deny_scope="user"),
    )

    for user, session in (("ann", "1"), ("ann", "2"), ("bob", "3")):
        await agent.ainvoke("go", session_id=session, caller=CallerContext(user_id=user))

    assert [request.caller_user_id for request in shredder.asked] == ["ann", "bob"]


async def test_a_standing_approval_holds_for_the_tool_in_this_run_only() -> None:
    shredder = Shredder(ApprovalDecision(True, always=True))
    steps = [calls("delete", path="/a"), calls("delete", path="/b"), says("ok")]
    agent = await build_agent(
        model=ScriptedModel([*steps, *steps]), extra_tools=[shredder.tool], approval=shredder.policy()
    )

    await agent.ainvoke("go")
    assert (shredder.ran, len(shredder.asked)) == (["/a", "/b"], 1)

    await agent.ainvoke("go")
    assert len(shredder.asked) == 2


# The interrupts: a log and no handler.


async def test_with_a_log_and_no_handler_the_run_pauses_and_the_answer_holds() -> None:
    shredder = Shredder()
    told: list[Any] = []
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a", api_key="key-0123456789abcdef"), says("done")]),
        extra_tools=[shredder.tool],
        approval={"tools": ["delete"], "on_decision": lambda request, decision: told.append((request, decision))},
        runlog=MemoryRunLog(),
    )

    paused = await agent.ainvoke("go")
    [item] = paused.pending
    assert (paused.status, item.kind) == ("paused", "approval")
    assert item.value["params"] == {"path": "/a", "api_key": "[redacted]"}
    assert item.value["context_summary"] == "human: go"
    assert item.expires_at is None
    assert shredder.ran == []

    result = await agent.resume(
        paused.run_id, {item.id: {"approved": True, "args": {"path": "/b", "api_key": "[redacted]"}}}, by="ann"
    )

    assert shredder.ran == [("/b", "key-0123456789abcdef")]
    assert result.text == "done"
    [(request, decision)] = told
    assert (request.tool_name, decision.approved) == ("delete", True)


async def test_denials_of_paused_runs_count_too() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], max_retries_after_deny=1),
        runlog=MemoryRunLog(),
    )

    paused = await agent.ainvoke("go")
    result = await agent.resume(paused.run_id, False)

    assert result.status == "completed"
    assert [status for status, _ in tool_results(result)] == ["error", "error"]
    assert "nobody is asked about it" in tool_results(result)[1][1]


async def test_with_neither_log_nor_handler_the_call_is_refused() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]), extra_tools=[shredder.tool], approval=["del*"]
    )

    result = await agent.ainvoke("go")

    assert tool_results(result)[0][0] == "error"
    assert "needs a person's approval" in tool_results(result)[0][1]
    assert shredder.ran == []


async def test_a_handler_is_asked_once_although_the_run_goes_on_later() -> None:
    shredder = Shredder(lambda request: ApprovalDecision(True, modified_arguments={"path": "/edited"}))

    @tool
    async def publish(text: str) -> str:
        """Publish."""
        return "published"

    log = MemoryRunLog()
    asks: list[str] = []

    async def ask(request: ApprovalRequest) -> Any:
        asks.append(request.tool_name)
        return await shredder.ask(request)

    class Both:
        """A gate that asks the policy's handler about one tool and pauses for the other."""

        def __init__(self) -> None:
            self.gates = [
                ApprovalGate(ApprovalPolicy(tools=["delete"], handler=ask)),
                ApprovalGate(ApprovalPolicy(tools=["publish"])),
            ]

        async def judge(self, gated: Any) -> Any:
            return await self.gates[gated.call.name == "publish"].judge(gated)

    from graphwright.agent import Agent
    from graphwright.runtime import Durability

    model = ScriptedModel([calls_many(call("delete", path="/a"), call("publish", text="x")), says("ok")])
    engine = PromptGraphEngine(PromptGraph.react(), model, tools=[shredder.tool, publish], gate=Both())
    agent = Agent(engine, durability=Durability(log=log))

    paused = await agent.ainvoke("go")
    assert (paused.status, asks, shredder.ran) == ("paused", ["delete"], [])

    result = await agent.resume(paused.run_id, True)

    assert asks == ["delete"]
    assert shredder.ran == ["/edited"]
    texts = [text for _, text in tool_results(result)]
    assert texts[0].startswith("A person changed the arguments of this call")
    assert texts[1] == "published"


# No way around.


def via_subgraph(delete: Any) -> PromptGraph:
    inner = PromptGraph("inner")
    inner.add_node(PromptNode("deep", tools=[delete]))
    inner.set_entry("deep")
    outer = PromptGraph("outer")
    outer.add_node(SubgraphNode("sub", subgraph=inner))
    outer.set_entry("sub")
    return outer


def via_parallel(delete: Any) -> PromptGraph:
    graph = PromptGraph("outer")
    graph.add_node(ParallelNode("both", nodes=[PromptNode("left", tools=[delete])]))
    graph.set_entry("both")
    return graph


def via_own_tools(delete: Any) -> PromptGraph:
    graph = PromptGraph("outer")
    graph.add_node(PromptNode("own", tools=[delete], inject_tools=False))
    graph.set_entry("own")
    return graph


def via_retry(delete: Any) -> PromptGraph:
    graph = PromptGraph("outer")
    graph.add_node(PromptNode("again", tools=[delete], flags={NodeFlag.RETRYABLE}))
    graph.set_entry("again")
    return graph


def via_tool_node(delete: Any) -> PromptGraph:
    graph = PromptGraph("outer")
    graph.add_node(ToolNode("act", tools=[delete], tool_selector=lambda state: ("delete", {"path": "/a"})))
    graph.add_node(PromptNode("tell"))
    graph.add_edge("act", "tell")
    graph.set_entry("act")
    return graph


@pytest.mark.parametrize("build", [via_subgraph, via_parallel, via_own_tools, via_retry, via_tool_node])
async def test_no_node_runs_a_call_that_was_not_approved(build: Callable[[Any], PromptGraph]) -> None:
    shredder = Shredder(False)
    steps = [says("ok")] if build is via_tool_node else [calls("delete", path="/a"), says("ok")]
    agent = await build_agent(
        model=ScriptedModel(steps), agent_pattern=build(shredder.tool), approval=shredder.policy()
    )

    await agent.ainvoke("go")

    assert len(shredder.asked) == 1
    assert shredder.ran == []


async def test_a_pool_of_nodes_is_no_way_around() -> None:
    shredder = Shredder(False)
    agent = await build_agent(
        model=lambda_model(),
        node_pool=[PromptNode("cleaner", tools=[shredder.tool]), PromptNode("teller", is_terminal=True)],
        approval=shredder.policy(),
    )

    await agent.ainvoke("go")

    assert len(shredder.asked) == 1
    assert shredder.ran == []


def lambda_model() -> ScriptedModel:
    def choose(messages: list[Any]) -> Any:
        told = " ".join(str(message.content) for message in messages)
        tried = any(message.type == "tool" for message in messages)
        if '"next_node"' in told:
            return says('{"next_node": "teller"}' if tried else '{"next_node": "cleaner"}')
        return says("ok") if tried else calls("delete", path="/a")

    return ScriptedModel([choose] * 8)


class Rewires(BaseNode):
    """Adds a node to the graph of the run."""

    def __init__(self, delete: Any) -> None:
        super().__init__("rewires")
        self.delete = delete

    async def execute(self, state: Any, config: Any) -> NodeResult:
        state.graph.add_node(PromptNode("added", tools=[self.delete]))
        state.graph.add_edge("rewires", "added")
        return NodeResult(node_name=self.name, node_type="custom")


async def test_a_node_added_while_the_run_goes_on_is_no_way_around() -> None:
    shredder = Shredder(False)
    graph = PromptGraph("outer")
    graph.add_node(Rewires(shredder.tool))
    graph.set_entry("rewires")
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]), agent_pattern=graph, approval=shredder.policy()
    )

    result = await agent.ainvoke("go")

    assert result.report.nodes_visited[-1] == "added"
    assert len(shredder.asked) == 1
    assert shredder.ran == []


async def test_a_renamed_tool_is_known_by_the_name_its_author_gave() -> None:
    shredder = Shredder(False)
    renamed = tool(shredder.tool, name="tidy")
    agent = await build_agent(
        model=ScriptedModel([calls("tidy", path="/a"), says("ok")]), extra_tools=[renamed], approval=shredder.policy()
    )

    await agent.ainvoke("go")

    assert [request.tool_name for request in shredder.asked] == ["tidy"]
    assert shredder.asked[0].tool_annotations["other_names"] == ["delete"]
    assert shredder.ran == []


async def test_a_peer_with_the_same_tool_is_no_way_around() -> None:
    shredder = Shredder(False)
    peer = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("could not")]), extra_tools=[shredder.tool]
    )
    agent = await build_agent(
        model=ScriptedModel([calls("ask_agent_helper", message="delete /a for me"), says("ok")]),
        extra_tools=[shredder.tool],
        cross_agents={"helper": CrossAgent(peer)},
        approval=shredder.policy(),
    )

    await agent.ainvoke("go")

    assert [request.tool_name for request in shredder.asked] == ["delete"]
    assert shredder.ran == []


async def test_both_have_to_say_yes_where_a_peer_asks_too() -> None:
    outer, inner = Shredder(True), Shredder(ApprovalDecision(False, reason="the peer says no"))
    peer = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("could not")]),
        extra_tools=[outer.tool],
        approval=inner.policy(),
    )
    agent = await build_agent(
        model=ScriptedModel([calls("ask_agent_helper", message="delete /a"), says("ok")]),
        cross_agents={"helper": CrossAgent(peer)},
        approval=outer.policy("delete", "nothing*"),
    )

    await agent.ainvoke("go")

    assert outer.ran == []
    assert len(inner.asked) == 1


@pytest.mark.parametrize(
    ("patterns", "asked", "reached"), [(["ask_agent_*"], [], False), (["*"], ["broadcast_to_agents"], True)]
)
async def test_a_broadcast_reaches_a_peer_that_needs_approval_only_with_its_own_approval(
    patterns: list[str], asked: list[str], reached: bool
) -> None:
    questions = ScriptedModel([says("answer")])
    peer = await build_agent(model=questions)
    shredder = Shredder(True)
    agent = await build_agent(
        model=ScriptedModel([calls("broadcast_to_agents", message="hello"), says("ok")]),
        cross_agents={"a": CrossAgent(peer)},
        include_broadcast=True,
        approval=shredder.policy(*patterns),
    )

    result = await agent.ainvoke("go")

    assert [request.tool_name for request in shredder.asked] == asked
    assert bool(questions.requests) is reached
    assert ("needs its own approval" in tool_results(result)[0][1]) is not reached


# What `approval=` takes.


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("delete", r"give a list of patterns, such as approval=\['delete'\]"),
        ({"handler": print}, "approval has no 'tools'"),
        ({"tools": ["x"], "retries": 3}, "unknown key 'retries'"),
        (True, "approval is True"),
        (object(), "give an ApprovalPolicy"),
        (lambda request: True, "is a handler alone, which answers servers only"),
    ],
)
async def test_what_does_not_fit_is_refused_when_the_agent_is_built(value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        await build_agent(model=ScriptedModel([]), approval=value)


async def test_a_pattern_that_matches_no_tool_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    await build_agent(model=ScriptedModel([]), extra_tools=[Shredder().tool], approval=["delete", "drop_*"])

    assert [record.getMessage() for record in caplog.records] == [
        "the approval pattern 'drop_*' matches none of the agent's tools"
    ]


# What happens around a question.


async def test_a_run_that_is_cancelled_while_somebody_decides_leaves_nothing_behind() -> None:
    queue = QueueApprovalHandler()
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a")]),
        extra_tools=[shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], handler=queue),
    )
    run = asyncio.create_task(agent.ainvoke("go"))
    await queue.next_request()

    run.cancel()
    await asyncio.gather(run, return_exceptions=True)

    assert run.cancelled()
    assert queue.pending == []
    assert shredder.ran == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_tool_that_pauses_after_its_approval_is_not_asked_about_again() -> None:
    asked: list[ApprovalRequest] = []

    async def ask(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(True, modified_arguments={"seat": "2B"}, reviewer_id="ann")

    async def book(flight: str, seat: str = "") -> str:
        """Book a seat."""
        answer = await interrupt("meal", {"flight": flight})
        return f"{flight} {seat} with {answer}"

    booking = tool(book)
    booking.reenterable = True
    agent = await build_agent(
        model=ScriptedModel([calls("book", flight="LH1"), says("ok")]),
        extra_tools=[booking],
        approval=ApprovalPolicy(tools=["book"], handler=ask),
        runlog=MemoryRunLog(),
    )

    paused = await agent.ainvoke("go")
    assert [item.kind for item in paused.pending] == ["meal"]
    result = await agent.resume(paused.run_id, "rice")

    assert len(asked) == 1
    [(status, text)] = tool_results(result)
    assert (status, text.splitlines()[-1]) == ("success", "LH1 2B with rice")
    assert text.startswith("A person changed the arguments of this call")


async def test_a_handler_says_no_before_any_call_of_its_turn_has_run() -> None:
    order: list[str] = []

    async def look() -> str:
        """Look."""
        order.append("look")
        return "seen"

    async def ask(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        order.append("asked")
        return False

    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls_many(call("look"), call("delete", path="/a")), says("ok")]),
        extra_tools=[look, shredder.tool],
        approval=ApprovalPolicy(tools=["delete"], handler=ask),
    )

    result = await agent.ainvoke("go")

    assert order == ["asked", "look"]
    assert [status for status, _ in tool_results(result)] == ["success", "error"]


async def test_arguments_that_do_not_fit_and_unknown_tools_are_never_asked_about() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([calls_many(call("delete", path=3), call("deletee", path="/a")), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(),
    )

    result = await agent.ainvoke("go")

    assert shredder.asked == []
    assert [status for status, _ in tool_results(result)] == ["error", "error"]


async def test_on_decision_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    shredder = Shredder()

    def fails(request: ApprovalRequest, decision: ApprovalDecision) -> None:
        raise RuntimeError("no space left")

    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(on_decision=fails),
    )

    await agent.ainvoke("go")

    assert shredder.ran == ["/a"]
    assert "on_decision failed for 'delete'" in caplog.text


async def test_what_is_shown_can_be_left_out_or_left_whole() -> None:
    for options, shown in (
        ({"include_arguments": False}, {}),
        ({"redact_sensitive": False}, {"path": "/a", "api_key": "key-0123456789abcdef"}),
    ):
        shredder = Shredder()
        agent = await build_agent(
            model=ScriptedModel([calls("delete", path="/a", api_key="key-0123456789abcdef"), says("ok")]),
            extra_tools=[shredder.tool],
            approval=shredder.policy(context_messages=0, **options),
        )

        await agent.ainvoke("go")

        assert shredder.asked[0].arguments == shown
        assert shredder.asked[0].context_summary == ""
        assert shredder.ran == [("/a", "key-0123456789abcdef")]


async def test_an_agent_runs_from_plain_code_and_several_loops() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([step for _ in range(2) for step in (calls("delete", path="/a"), says("ok"))]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(sequential=True),
    )

    for _ in range(2):
        await asyncio.to_thread(agent.invoke, "go")

    assert shredder.ran == ["/a", "/a"]


async def test_a_decision_on_a_paused_run_is_told_once_however_often_the_run_goes_on() -> None:
    told: list[bool] = []

    async def book(flight: str) -> str:
        """Book a seat."""
        return f"{flight} with {await interrupt('meal', {'flight': flight})}"

    booking = tool(book)
    booking.reenterable = True
    agent = await build_agent(
        model=ScriptedModel([calls("book", flight="LH1"), says("ok")]),
        extra_tools=[booking],
        approval=ApprovalPolicy(tools=["book"], on_decision=lambda request, decision: told.append(decision.approved)),
        runlog=MemoryRunLog(),
    )

    paused = await agent.ainvoke("go")
    again = await agent.resume(paused.run_id, True)
    assert [item.kind for item in again.pending] == ["meal"]
    result = await agent.resume(paused.run_id, "rice")

    assert tool_results(result) == [("success", "LH1 with rice")]
    assert told == [True]


async def test_a_handler_that_fails_is_no_denial_that_counts() -> None:
    shredder = Shredder(RuntimeError("down"))
    agent = await build_agent(
        model=ScriptedModel([*(calls("delete", path="/a") for _ in range(3)), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(max_retries_after_deny=1),
    )

    await agent.ainvoke("go")

    assert len(shredder.asked) == 3


async def test_a_request_that_was_decided_waits_no_longer() -> None:
    shredder = Shredder()
    agent = await build_agent(
        model=ScriptedModel([*(calls("delete", path=f"/{name}") for name in "abc"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(max_pending=1),
    )

    await agent.ainvoke("go")

    assert shredder.ran == ["/a", "/b", "/c"]


async def test_what_a_handler_does_to_its_request_does_not_reach_the_call() -> None:
    def meddle(request: ApprovalRequest) -> bool:
        request.arguments["path"] = request.raw_arguments["path"] = "/elsewhere"
        return True

    shredder = Shredder(meddle)
    agent = await build_agent(
        model=ScriptedModel([calls("delete", path="/a"), says("ok")]),
        extra_tools=[shredder.tool],
        approval=shredder.policy(redact_sensitive=False),
    )

    await agent.ainvoke("go")

    assert shredder.ran == ["/a"]


class HasItsOwnGate(BaseNode):
    """Answers a call behind a gate of its own, which lets everything through."""

    def __init__(self, delete: Any) -> None:
        super().__init__("own")
        self.delete = delete

    async def execute(self, state: Any, config: Any) -> NodeResult:
        class AllowAll:
            async def judge(self, gated: Any) -> Verdict:
                return Verdict()

        context = config["configurable"]["graphwright"]
        settings = context.tool_run(self.name, state, gate=AllowAll())
        await answer_calls([ToolCall("1", "delete", {"path": "/a"})], as_tools([self.delete]), settings)
        return NodeResult(node_name=self.name, node_type="custom", output="done")


async def test_a_node_with_a_gate_of_its_own_is_no_way_around() -> None:
    shredder = Shredder(False)
    graph = PromptGraph("outer")
    graph.add_node(HasItsOwnGate(shredder.tool))
    graph.add_node(PromptNode("tell"))
    graph.add_edge("own", "tell")
    graph.set_entry("own")
    agent = await build_agent(model=ScriptedModel([says("ok")]), agent_pattern=graph, approval=shredder.policy())

    await agent.ainvoke("go")

    assert len(shredder.asked) == 1
    assert shredder.ran == []
