import asyncio

from graphwright.sandbox import SandboxManager


async def main() -> None:
    async with SandboxManager({"memory": "256M", "disk": "16M"}) as manager:
        session = await manager.open()
        await session.write_file("a.txt", "mango")
        result = await session.run(["python3", "-c", "print(open('a.txt').read().upper())"], timeout=5)
        print(result.exit_code, result.stdout.strip(), await session.list_files())

        endless = await session.execute(["python3", "-c", "while True: pass"], timeout=0.5)
        print(endless.exit_code, endless.stopped)


asyncio.run(main())
