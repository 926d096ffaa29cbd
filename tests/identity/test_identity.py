"""Who an agent is: its name, and credentials that are had in time, once, and never shown."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError, IdentityError
from graphwright.identity import AgentIdentity, CallableSource, Credential, OIDCSource


async def oidc(issuer: Any, agent_id: str | None = None, **options: Any) -> AgentIdentity:
    given = {"client_id": "robot 1", "client_secret": "s:cret/", **options}
    return AgentIdentity.oidc(issuer.url, agent_id, **given)


async def test_a_plain_id_names_the_agent_and_proves_nothing() -> None:
    identity = AgentIdentity("billing", name="Billing", owner="finance", labels={"tier": "1"})

    assert (await identity.resolve_identifier(), identity.has_credential, identity.subject) == ("billing", False, None)
    assert repr(identity) == "AgentIdentity('billing', name='Billing', owner='finance')"
    with pytest.raises(IdentityError, match="'billing' has no credential"):
        await identity.auth_header()


@pytest.mark.parametrize("options", [{}, {"agent_id": " "}, {"agent_id": 3}, {"credential": 3}])
def test_what_is_no_identity_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        AgentIdentity(**options)


@pytest.mark.parametrize("how", ["basic", "post"])
async def test_a_provider_is_asked_once_an_audience(issuer: Any, how: str) -> None:
    identity = await oidc(issuer, scope="tools", authenticate_by=how)

    headers = [await identity.auth_header("a"), await identity.auth_header("a"), await identity.auth_header("b")]

    first, second = (f"Bearer {token}" for token in issuer.given)
    assert headers == [{"Authorization": first}, {"Authorization": first}, {"Authorization": second}]
    who = {"client_id": "robot 1", "client_secret": "s:cret/", "grant_type": "client_credentials", "scope": "tools"}
    assert issuer.asked == [{**who, "audience": "a"}, {**who, "audience": "b"}]
    assert (await identity.claims("b"))["aud"] == "b"
    assert await identity.resolve_identifier() == "agent-7"


async def test_a_provider_may_want_the_audience_under_another_name(issuer: Any) -> None:
    await (await oidc(issuer, audience_parameter="resource")).token("https://tools")

    assert issuer.asked[0]["resource"] == "https://tools"
    assert "audience" not in issuer.asked[0]


async def test_many_who_ask_at_once_wait_for_one_answer_and_leaving_takes_it_from_nobody(issuer: Any) -> None:
    identity = await oidc(issuer)
    asking = [asyncio.ensure_future(identity.token("a")) for _ in range(20)]
    await asyncio.sleep(0)
    asking[0].cancel()

    tokens = await asyncio.gather(*asking[1:])

    assert (set(tokens), len(issuer.asked)) == ({issuer.given[0]}, 1)
    assert asking[0].cancelled()


async def test_a_credential_is_renewed_before_it_ends(issuer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = await oidc(issuer)
    begin = time.time()
    first = await identity.token("a")

    monkeypatch.setattr(time, "time", lambda: begin + 235)
    still = await identity.token("a")
    monkeypatch.setattr(time, "time", lambda: begin + 245)
    renewed = await identity.token("a")

    assert (still, renewed) == (first, issuer.given[1])


async def test_while_the_provider_is_down_a_credential_is_used_to_its_end(
    issuer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = await oidc(issuer)
    begin = time.time()
    first = await identity.token("a")
    issuer.status = 503

    monkeypatch.setattr(time, "time", lambda: begin + 250)
    assert await identity.token("a") == first
    with pytest.raises(IdentityError, match="status 503"):
        await identity.token("a", refresh=True)
    monkeypatch.setattr(time, "time", lambda: begin + 301)
    with pytest.raises(IdentityError, match="status 503"):
        await identity.token("a")


async def test_refreshing_brings_another_one(issuer: Any) -> None:
    identity = await oidc(issuer)
    first = await identity.token("a")

    assert await identity.token("a", refresh=True) == issuer.given[1] != first
    assert await identity.token("a") == issuer.given[1]


async def test_an_error_names_the_issuer_and_no_secret(issuer: Any) -> None:
    identity = await oidc(issuer, client_secret="wrong-secret")
    with pytest.raises(IdentityError) as caught:
        await identity.token("a")

    assert str(caught.value) == f"the issuer {issuer.url!r} gave no token: status 401 ('invalid_client')"
    assert "wrong-secret" not in repr(identity) + repr(vars(identity).keys())


async def test_an_issuer_that_says_it_is_somebody_else_gets_no_secret(issuer: Any) -> None:
    issuer.says_it_is = "https://evil.example"
    with pytest.raises(IdentityError, match=r"says that it is 'https://evil\.example'; nothing was sent"):
        await (await oidc(issuer)).token("a")

    assert issuer.asked == []


@pytest.mark.parametrize("url", ["http://idp.example", "ftp://127.0.0.1", "idp.example", ""])
def test_a_secret_goes_only_over_https_or_within_this_machine(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no https URL"):
        OIDCSource(url, client_id="a", client_secret="b")


async def test_an_opaque_token_is_kept_as_long_as_the_provider_says(
    issuer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.opaque, issuer.lives = True, 100
    identity = await oidc(issuer)
    credential = await identity.get_credential("a")

    assert credential.value == "opaque-0"
    assert credential.expires_at == pytest.approx(time.time() + 100, abs=5)
    assert await identity.claims("a") == {}
    assert await identity.resolve_identifier() == "robot 1"


async def test_a_token_in_a_file_is_read_again_each_time(tmp_path: Path, token: Any) -> None:
    path = tmp_path / "token"
    path.write_text(token(sub="pod-1") + "\n", encoding="utf-8")
    identity = AgentIdentity.from_file(path)
    assert await identity.resolve_identifier() == "pod-1"
    renewed = token(sub="pod-1", again=True)
    path.write_text(renewed, encoding="utf-8")

    assert await identity.token("any") == renewed

    path.write_text(token(lives=-5), encoding="utf-8")
    with pytest.raises(IdentityError, match=r"expired [456] s ago"):
        await identity.token("other")
    path.write_text("two words", encoding="utf-8")
    with pytest.raises(IdentityError, match="a str that is no token"):
        await identity.token("third")
    path.unlink()
    with pytest.raises(IdentityError, match="cannot be read: No such file"):
        await identity.token("fourth")


async def test_a_token_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = AgentIdentity.from_env("ROBOT_TOKEN", "robot")
    with pytest.raises(IdentityError, match="'ROBOT_TOKEN' holds no token; set it"):
        await identity.token()
    monkeypatch.setenv("ROBOT_TOKEN", "abc")

    assert await identity.auth_header() == {"Authorization": "Bearer abc"}


async def test_a_function_of_yours_may_be_sync_or_async_and_its_errors_are_not_shown() -> None:
    asked: list[Any] = []

    def give(audience: str | None) -> str:
        asked.append(audience)
        return f"for-{audience}"

    async def give_later(audience: str | None) -> Credential:
        return Credential("later", time.time() + 1000)

    def fail(audience: str | None) -> str:
        raise RuntimeError("password is swordfish")

    sync = AgentIdentity("a", credential=give)
    assert [await sync.token("x"), await sync.token("x"), asked] == ["for-x", "for-x", ["x"]]
    assert (await AgentIdentity("a", credential=CallableSource(give_later)).get_credential()).value == "later"
    assert await AgentIdentity("a", credential="fixed").token() == "fixed"
    with pytest.raises(IdentityError) as caught:
        await AgentIdentity("a", credential=fail).token()
    assert "swordfish" not in str(caught.value)
    assert "later" not in repr(Credential("later"))


async def test_a_credential_without_a_subject_names_nobody() -> None:
    with pytest.raises(IdentityError, match="give AgentIdentity an agent_id"):
        await AgentIdentity(credential=lambda audience: "opaque").resolve_identifier()


def test_one_identity_serves_several_loops(tmp_path: Path) -> None:
    identity = AgentIdentity("a", credential=lambda audience: f"t-{audience}")

    assert [asyncio.run(identity.token(name)) for name in ("x", "y", "x")] == ["t-x", "t-y", "t-x"]
