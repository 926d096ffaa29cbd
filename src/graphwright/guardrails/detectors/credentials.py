"""Credentials: by the forms that providers give them, by the keys they stand under, and by how random they are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from graphwright._internal.redact import is_secret_key
from graphwright.guardrails.detectors.base import Detector, Match, chosen_patterns, distinct, in_thread_if_long
from graphwright.guardrails.report import GuardrailAction
from graphwright.guardrails.views import View, plain_views

__all__ = ["CREDENTIAL_PATTERNS", "CredentialDetector"]

_FORMS = {
    "private_key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,8000}?"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    "jwt": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    "anthropic_key": r"\bsk-ant-[\w-]{20,}",
    "openai_key": r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}",
    "openrouter_key": r"\bsk-or-v1-[0-9a-f]{40,}",
    "stripe_key": r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    "stripe_webhook_secret": r"\bwhsec_[A-Za-z0-9+/=]{24,}",
    "aws_access_key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "google_api_key": r"\bAIza[\w-]{35}",
    "google_oauth_secret": r"\bGOCSPX-[\w-]{24,}",
    "google_oauth_token": r"\bya29\.[\w-]{20,}",
    "github_token": r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    "github_fine_grained_token": r"\bgithub_pat_\w{50,}",
    "gitlab_token": r"\bgl(?:pat|dt|rt|cbt|ptt|soat|imt|agent)-[\w-]{20,}",
    "bitbucket_token": r"\bATBB[A-Za-z0-9]{24,}",
    "atlassian_token": r"\bATATT3[\w-]{50,}=?",
    "slack_token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Z0-9]+-\d+-[a-f0-9]+",
    "slack_webhook": r"https://hooks\.slack\.com/(?:services|workflows)/[\w/]{20,}",
    "discord_webhook": r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,}",
    "discord_bot_token": r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}",
    "teams_webhook": r"https://[\w-]+\.webhook\.office\.com/webhookb2/[\w@/-]{40,}",
    "telegram_bot_token": r"\b\d{8,10}:AA[\w-]{33}",
    "twilio_key": r"\bSK[0-9a-f]{32}\b",
    "sendgrid_key": r"\bSG\.[\w-]{22}\.[\w-]{43}",
    "mailgun_key": r"\bkey-[0-9a-f]{32}\b",
    "mailchimp_key": r"\b[0-9a-f]{32}-us\d{1,2}\b",
    "npm_token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi_token": r"\bpypi-AgE[\w-]{50,}",
    "rubygems_token": r"\brubygems_[0-9a-f]{48}\b",
    "docker_token": r"\bdckr_(?:pat|oat)_[\w-]{20,}",
    "huggingface_token": r"\b(?:hf|api_org)_[A-Za-z]{34,}\b",
    "replicate_token": r"\br8_[A-Za-z0-9]{37,}",
    "groq_key": r"\bgsk_[A-Za-z0-9]{40,}",
    "xai_key": r"\bxai-[A-Za-z0-9]{60,}",
    "perplexity_key": r"\bpplx-[A-Za-z0-9]{40,}",
    "nvidia_key": r"\bnvapi-[\w-]{50,}",
    "langsmith_key": r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
    "digitalocean_token": r"\bdo[oprt]_v1_[0-9a-f]{64}\b",
    "heroku_key": r"\bHRKU-[\w-]{36,}",
    "cloudflare_ca_key": r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}",
    "fly_token": r"\bfm[12][ar]?_[\w+/=-]{40,}|\bfo1_[\w-]{40,}",
    "netlify_token": r"\bnf[cpbu]_[A-Za-z0-9]{36,}",
    "supabase_key": r"\bsb[ps]_(?:secret_)?[A-Za-z0-9_]{30,}",
    "planetscale_token": r"\bpscale_(?:tkn|pw|oauth)_[\w=.-]{32,}",
    "databricks_token": r"\bdapi[0-9a-f]{32}(?:-\d)?\b",
    "snowflake_token": r"\bver:\d-hint:\d+-[\w+/=-]{40,}",
    "azure_storage_key": r"AccountKey=[A-Za-z0-9+/]{80,}={0,2}",
    "azure_sas_signature": r"[?&]sig=[A-Za-z0-9%]{43,}(?:%3[dD]|=)",
    "azure_ad_secret": r"\b[\w~.-]{3}8Q~[\w~.-]{31,34}",
    "alibaba_access_key": r"\bLTAI[A-Za-z0-9]{17,21}\b",
    "tencent_secret_id": r"\bAKID[A-Za-z0-9]{32,}\b",
    "vault_token": r"\bhv[sbr]\.[\w-]{24,}",
    "terraform_token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",
    "pulumi_token": r"\bpul-[0-9a-f]{40}\b",
    "doppler_token": r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}",
    "grafana_token": r"\bgl(?:c|sa)_[\w+/=-]{32,}",
    "newrelic_key": r"\bNR(?:AK|JS|II|RA)-[A-Z0-9-]{19,}",
    "datadog_key": r"\bdd(?:api|app|pat)_[\w-]{32,}",
    "sentry_token": r"\bsntr(?:ys|yu)_[\w+/=-]{40,}",
    "dynatrace_token": r"\bdt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
    "pagerduty_key": r"\bpdus\+_[\w+-]{20,}",
    "linear_key": r"\blin_(?:api|oauth)_[A-Za-z0-9]{40,}",
    "notion_token": r"\b(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})\b",
    "airtable_token": r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b",
    "asana_token": r"\b[12]/\d{15,17}(?:/\d{15,17})?:[0-9a-f]{32}\b",
    "figma_token": r"\bfig[dou]_[\w-]{40,}",
    "dropbox_token": r"\bsl\.(?:u\.)?[\w-]{130,}",
    "shopify_token": r"\bshp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{32}\b",
    "square_token": r"\b(?:sq0(?:atp|csp|idp)-[\w-]{22,43}|EAAA[\w-]{60})",
    "braintree_token": r"\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    "facebook_token": r"\bEAA[A-Z][A-Za-z0-9]{80,}",
    "postman_key": r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b",
    "age_secret_key": r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b",
    "hubspot_token": r"\bpat-(?:na|eu)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    "url_password": r"(?<=://)[^\s/@:\"']{0,80}:[^\s/@\"']{3,200}(?=@[\w.\[-])",
    "bearer_token": r"(?i:\bBearer\s+)[A-Za-z0-9._~+/-]{20,}=*",
    "basic_auth": r"(?i:\bAuthorization[\"']?\s*[:=]\s*[\"']?Basic\s+)[A-Za-z0-9+/]{8,}={0,2}",
}

CREDENTIAL_PATTERNS: dict[str, re.Pattern[str]] = {name: re.compile(form) for name, form in _FORMS.items()}
"""Kind -> the form that its issuer gives it. Beside these, `secret_value` stands for what a key calls a secret."""

_ASSIGNED = re.compile(
    r"(?P<quote>[\"']?)(?<!\w)(?P<key>[A-Za-z_][\w.-]{1,60})(?P=quote)\s{0,3}(?P<sign>:=|=>|[=:])\s{0,3}"
    r"(?P<value>\"(?:[^\"\\\r\n]|\\.){1,400}\"|'(?:[^'\\\r\n]|\\.){1,400}'|[^\s\"'&;,(){}<>]{1,400})"
)
_HIDDEN = re.compile(
    r"^(?:[*x.•<\[{$%]|REDACTED|null$|none$|true$|false$|your[-_ ]|example|changeme|placeholder)", re.I
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+[\[(]?")
"""A value that is looked up elsewhere, as in `os.environ[...]`."""
_TOKEN = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/-]{32,200}={0,2}(?![\w/+-])")


class CredentialDetector(Detector):
    """Finds credentials in a text and in its decoded forms."""

    name = "credentials"
    action = GuardrailAction.REDACT

    def __init__(
        self,
        action: GuardrailAction | str = GuardrailAction.REDACT,
        *,
        patterns: Iterable[str] | Mapping[str, str] | None = None,
        exclude: Iterable[str] = (),
    ) -> None:
        """`patterns` are the kinds to look for, or expressions of yours by name, which come beside the known ones."""
        left_out = set(exclude)
        self.action = GuardrailAction(action)
        self._patterns = chosen_patterns(CREDENTIAL_PATTERNS, patterns, left_out, what="credential_patterns")
        everything = patterns is None or isinstance(patterns, Mapping)
        self._values = everything and "secret_value" not in left_out
        self._entropy = everything and "high_entropy" not in left_out

    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return the places of credentials."""
        return await in_thread_if_long(self._find, text)

    def _find(self, text: str) -> list[Match]:
        found: list[Match] = []
        for view in plain_views(text):
            for name, pattern in self._patterns.items():
                found += [Match(name, *view.place_of(*match.span())) for match in pattern.finditer(view.text)]
            if self._values:
                found += _assigned(view)
            if self._entropy:
                found += _random(view)
        return distinct(found)


def _assigned(view: View) -> Iterator[Match]:
    for match in _ASSIGNED.finditer(view.text):
        value = match["value"].strip("\"'")
        if not is_secret_key(match["key"]) or len(value) < 4 or _HIDDEN.search(value) or _CODE.fullmatch(value):
            continue
        certain = match["sign"] != ":" or bool(match["quote"]) or bool(re.search(r"[\d_+/=!$%^*#@-]", value))
        if certain:
            start = match.start("value") + (match["value"][0] in "\"'")
            yield Match("secret_value", *view.place_of(start, start + len(value)))


def _random(view: View) -> Iterator[Match]:
    """Yield what is as random as only keys are; digests in hex are no keys."""
    for match in _TOKEN.finditer(view.text):
        token = match.group()
        kinds = sum(bool(re.search(kind, token)) for kind in ("[a-z]", "[A-Z]", r"\d"))
        if kinds == 3 and not re.search(r"[/_-][a-z]{4,}[/_-]|[a-z]{9,}", token) and _bits_a_char(token) >= 4.3:
            yield Match("high_entropy", *view.place_of(*match.span()), score=0.7)


def _bits_a_char(token: str) -> float:
    counts = Counter(token)
    return -sum(count / len(token) * math.log2(count / len(token)) for count in counts.values())
