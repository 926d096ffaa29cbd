import asyncio

from graphwright import build_agent
from graphwright.approval import ApprovalDecision, ApprovalPolicy, ApprovalRequest
from graphwright.testing import ScriptedModel, calls, says


def delete_file(path: str, api_key: str = "") -> str:
    """Delete a file."""
    return f"deleted {path}"


async def review(request: ApprovalRequest) -> ApprovalDecision:
    print("asked:", request.tool_name, request.arguments)
    if request.arguments["path"].startswith("/scratch/"):
        return ApprovalDecision(True, reviewer_id="ann")
    return ApprovalDecision(False, reviewer_id="ann", reason="only below /scratch")


async def main() -> None:
    model = ScriptedModel(
        [
            calls("delete_file", path="/system/hosts", api_key="sk-live-0123456789abcdef"),
            calls("delete_file", path="/scratch/x"),
            says("I deleted /scratch/x and left /system/hosts alone."),
        ]
    )
    agent = await build_agent(
        model=model,
        extra_tools=[delete_file],
        approval=ApprovalPolicy(tools=["delete_*"], handler=review),
    )

    result = await agent.ainvoke("Clean up.")

    for message in result.messages:
        if message.type == "tool":
            print(f"{message.status}: {message.content}")
    print(result.text)


asyncio.run(main())
