"""Tools that come with the package. Each says how risky it is, and reaches no further than it was built for."""

from graphwright.tools.builtin.clock import GetDateTimeTool
from graphwright.tools.builtin.files import DeleteFileTool, FindFileTool, ListDirTool, ReadFileTool, WriteFileTool
from graphwright.tools.builtin.mysql import MySQLTool
from graphwright.tools.builtin.postgres import PostgreSQLTool
from graphwright.tools.builtin.redis import RedisTool
from graphwright.tools.builtin.shell import BashSafeTool, CommandResult, CommandSandbox, RunBashTool, RunPythonTool
from graphwright.tools.builtin.smtp import EmailSMTPTool
from graphwright.tools.builtin.sqlite import SQLiteTool
from graphwright.tools.builtin.web import CallApiTool, FetchWebPageTool, SearchWebTool

__all__ = [
    "BashSafeTool",
    "CallApiTool",
    "CommandResult",
    "CommandSandbox",
    "DeleteFileTool",
    "EmailSMTPTool",
    "FetchWebPageTool",
    "FindFileTool",
    "GetDateTimeTool",
    "ListDirTool",
    "MySQLTool",
    "PostgreSQLTool",
    "ReadFileTool",
    "RedisTool",
    "RunBashTool",
    "RunPythonTool",
    "SQLiteTool",
    "SearchWebTool",
    "WriteFileTool",
]
