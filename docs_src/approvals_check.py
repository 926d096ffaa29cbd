import asyncio

from graphwright.approval import ApprovalRequest, SignatureChecker, signed_headers

SECRET = "shared by both ends"


async def main() -> None:
    # What `WebhookApprovalHandler(url, secret=SECRET)` sends.
    body = ApprovalRequest(tool_name="delete_file", arguments={"path": "notes.txt"}).to_bytes()
    headers = signed_headers(SECRET, body)

    # What the receiver does with it.
    checker = SignatureChecker(SECRET)
    print(repr(checker.problem(headers, body)))
    print(checker.problem(headers, body))
    print(checker.problem(headers, body.replace(b"notes", b"other")))


asyncio.run(main())
