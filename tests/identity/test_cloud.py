"""Identities that a platform gives, asked for by the vendors' own libraries from loopback stand-ins."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from graphwright._internal.optional import is_installed
from graphwright.exceptions import IdentityError, MissingExtraError
from graphwright.identity import AgentIdentity, AWSSource, EntraSource, GCPSource, OIDCSource, SpiffeSource, cloud

VARIABLES = sorted({name for names, _ in cloud._LOOKED_FOR for name in names})


@pytest.fixture(autouse=True)
def _no_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


async def test_aws_gives_a_token_for_an_audience(listen: Any, token: Any) -> None:
    boto3 = pytest.importorskip("boto3", reason="install it with: pip install 'graphwright[aws]'")
    asked: list[dict[str, str]] = []
    given = token(sub="arn:aws:iam::1:role/agent")

    async def sts(request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        asked.append(form)
        ends = datetime.fromtimestamp(time.time() + 300, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        inner = f"<WebIdentityToken>{given}</WebIdentityToken><Expiration>{ends}</Expiration>"
        body = (
            '<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetWebIdentityTokenResult>'
            f"{inner}</GetWebIdentityTokenResult></GetWebIdentityTokenResponse>"
        )
        return web.Response(text=body, content_type="text/xml")

    app = web.Application()
    app.router.add_post("/", sts)
    async with listen(app) as url:
        client = boto3.client(
            "sts", endpoint_url=url, region_name="eu-west-1", aws_access_key_id="k", aws_secret_access_key="s"
        )
        identity = AgentIdentity.from_aws(audience="tools", client=client)
        assert await identity.token() == given
        assert await identity.resolve_identifier() == "arn:aws:iam::1:role/agent"

    assert [(form["Action"], form["Audience.member.1"]) for form in asked] == [("GetWebIdentityToken", "tools")]


async def test_google_gives_a_token_for_an_audience(listen: Any, token: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.oauth2.id_token", reason="install it with: pip install 'graphwright[gcp]'")
    given = token(sub="1234", email="agent@project.example")

    async def metadata(request: web.Request) -> web.Response:
        headers = {"Metadata-Flavor": "Google"}
        if request.path.endswith("/identity"):
            assert request.query["audience"] == "https://tools"
            return web.Response(text=given, headers=headers)
        account = {"email": "agent@project.example", "scopes": [], "aliases": ["default"]}
        return web.json_response(account, headers=headers)

    app = web.Application()
    app.router.add_get("/{rest:.*}", metadata)
    async with listen(app) as url:
        host = url.removeprefix("http://")
        for name in ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"):
            monkeypatch.setenv(name, host)
        monkeypatch.setenv("GCE_METADATA_MTLS_MODE", "none")
        for module in [name for name in sys.modules if name.startswith("google.auth.compute_engine")]:
            # Where the server is, is read when the module is loaded.
            monkeypatch.delitem(sys.modules, module)
        assert await AgentIdentity.from_gcp("agent").token("https://tools") == given


async def test_entra_gives_a_token_for_a_resource(listen: Any, token: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("azure.identity", reason="install it with: pip install 'graphwright[entra]'")
    given = token(sub="object-id")
    asked: list[str] = []

    async def endpoint(request: web.Request) -> web.Response:
        assert request.headers["X-IDENTITY-HEADER"] == "h"
        asked.append(request.query["resource"])
        body = {"access_token": given, "expires_on": str(int(time.time()) + 300), "token_type": "Bearer"}
        return web.Response(text=json.dumps(body), content_type="application/json")

    app = web.Application()
    app.router.add_get("/msi", endpoint)
    from azure.identity import ManagedIdentityCredential

    async with listen(app) as url:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        with ManagedIdentityCredential() as credential:
            identity = AgentIdentity.from_entra(credential=credential, audience="api://tools")
            assert await identity.token() == given

    assert asked == ["api://tools"]


async def test_spiffe_gives_a_token_for_an_audience(tmp_path: Any) -> None:
    pytest.importorskip("spiffe", reason="install it with: pip install 'graphwright[spiffe]'")
    grpc = pytest.importorskip("grpc")
    import jwt
    from spiffe._proto import workload_pb2, workload_pb2_grpc

    asked: list[Any] = []
    given = ""

    class WorkloadAPI(workload_pb2_grpc.SpiffeWorkloadAPIServicer):
        def FetchJWTSVID(self, request: Any, context: Any) -> Any:
            asked.append((list(request.audience), dict(context.invocation_metadata())["workload.spiffe.io"]))
            svid = workload_pb2.JWTSVID(spiffe_id="spiffe://example.org/agent", svid=given)
            return workload_pb2.JWTSVIDResponse(svids=[svid])

    from cryptography.hazmat.primitives.asymmetric import ec

    claims = {"sub": "spiffe://example.org/agent", "aud": ["tools"], "exp": int(time.time()) + 300}
    given = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": "1"})
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    workload_pb2_grpc.add_SpiffeWorkloadAPIServicer_to_server(WorkloadAPI(), server)
    # The path of a socket may have no more than about a hundred signs.
    with tempfile.TemporaryDirectory() as folder:
        socket = f"unix://{folder}/agent.sock"
        server.add_insecure_port(f"unix:{folder}/agent.sock")
        server.start()
        try:
            identity = AgentIdentity.from_spiffe(socket=socket, audience="tools")
            assert await identity.token() == given
            assert await identity.resolve_identifier() == "spiffe://example.org/agent"
        finally:
            server.stop(None).wait()

    assert asked == [(["tools"], "true")]


async def test_spiffe_that_cannot_be_asked_says_so_without_waiting(tmp_path: Any) -> None:
    pytest.importorskip("spiffe", reason="install it with: pip install 'graphwright[spiffe]'")
    identity = AgentIdentity.from_spiffe("agent", socket=f"unix://{tmp_path}/nobody.sock")

    with pytest.raises(IdentityError, match="a SPIFFE identity gave no credential for 'tools'"):
        await identity.token("tools")


async def test_an_audience_that_nobody_named_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud, "is_installed", lambda module: True)

    with pytest.raises(IdentityError, match="a Google identity needs an audience"):
        await AgentIdentity.from_gcp().resolve_identifier()


@pytest.mark.parametrize(
    ("make", "extra"), [(AWSSource, "aws"), (EntraSource, "entra"), (GCPSource, "gcp"), (SpiffeSource, "spiffe")]
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    make: Any, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "is_installed", lambda module: False)

    with pytest.raises(MissingExtraError, match=rf"graphwright\[{extra}\]"):
        make()


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        ({"SPIFFE_ENDPOINT_SOCKET": "unix:///run/s.sock", "K_SERVICE": "x"}, SpiffeSource),
        ({"OIDC_ISSUER": "https://idp", "OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET": "b"}, OIDCSource),
        ({"AZURE_FEDERATED_TOKEN_FILE": "t"}, EntraSource),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "t"}, AWSSource),
        ({"K_SERVICE": "svc"}, GCPSource),
    ],
)
def test_the_environment_says_which_platform_it_is(
    variables: dict[str, str], kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "is_installed", lambda module: True)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert type(AgentIdentity.auto("agent")._source) is kind


def test_an_environment_that_says_nothing_is_no_identity() -> None:
    with pytest.raises(IdentityError, match="looked for SPIFFE_ENDPOINT_SOCKET; OIDC_ISSUER and OIDC_CLIENT_ID"):
        AgentIdentity.auto()
    assert is_installed("json")
