"""Conversations: what was said in a session, who owns it, and stores that lose nothing of it."""

from graphwright.conversations.base import (
    ANY_OWNER,
    AppendingStore,
    ConversationStore,
    Message,
    SessionInfo,
    generate_session_id,
)
from graphwright.conversations.convert import from_stored, to_stored
from graphwright.conversations.fallback import CarefulStore, as_appending
from graphwright.conversations.memory import InMemoryConversationStore
from graphwright.conversations.postgres import PostgresConversationStore
from graphwright.conversations.redis import RedisConversationStore
from graphwright.conversations.sqlite import SQLiteConversationStore
from graphwright.exceptions import ConversationConflict, SessionAccessDenied

__all__ = [
    "ANY_OWNER",
    "AppendingStore",
    "CarefulStore",
    "ConversationConflict",
    "ConversationStore",
    "InMemoryConversationStore",
    "Message",
    "PostgresConversationStore",
    "RedisConversationStore",
    "SQLiteConversationStore",
    "SessionAccessDenied",
    "SessionInfo",
    "as_appending",
    "from_stored",
    "generate_session_id",
    "to_stored",
]
