"""Attempts to give a model other orders: by how they are worded, in five languages and however they are disguised."""

from __future__ import annotations

import re
from functools import partial

from graphwright.guardrails.base import Classifier, Seam
from graphwright.guardrails.detectors.base import Detector, Match, in_thread_if_long
from graphwright.guardrails.report import GuardrailAction
from graphwright.guardrails.views import View, all_views

__all__ = ["InjectionDetector"]

_OVERRIDE = (
    r"(?:ignor\w*|disregard\w*|forget|override|bypass|neglect|discard|drop|skip|do not (?:follow|obey)|stop following"
    r"|vergiss|ignorier\w*|missachte\w*|umgehe|uberschreibe|oublie[zr]?|ignore[zr]?|contourne[zr]?|neglige[zr]?"
    r"|olvid\w+|ignor\w+|omit\w+|descart\w+|salta\w*|esquec\w+|esqueca|desconsider\w+|pass\w* por cima)"
)
_ALL = (
    r"(?:(?:all|any|every|each|of|the|your|my|these|those|this|that|previous(?:ly)?|prior|above|earlier"
    r"|preceding|former"
    r"|initial|original|given|system|existing|current|safety|security|everything|and|or|alle[nrs]?|deine[nr]?|ihre[nr]?"
    r"|die|vorherige[nr]?|bisherige[nr]?|obige[nr]?|vorigen?|fruheren?|toutes?|tous|les|tes|vos|ces|mes|precedentes?"
    r"|todas?|todos?|las|los|tus|sus|as|os|suas|seus|tuas|anteriores|previas|previos|des|de)\W+){0,7}"
)
_RULES = (
    r"(?:instructions?|rules?|prompts?|directives?|guidelines?|orders?|commands?|policies|restrictions"
    r"|safeguards|guardrails"
    r"|programming|messages? (?:above|before)|told (?:you )?before|anweisung(?:en)?|regeln?|vorgaben|befehle?"
    r"|richtlinien"
    r"|consignes|regles|directives|ordres|instrucciones|reglas|ordenes|directrices|indicaciones|instrucoes"
    r"|regras|ordens"
    r"|diretrizes|orientacoes)"
)
_SECRET = (
    r"(?:system\W?prompt|hidden (?:prompt|instructions?)|initial (?:prompt|instructions?)|your (?:instructions"
    r"|prompt|rules)"
    r"|the (?:text|words|instructions) above|systemprompt|deine anweisungen|deinen prompt|system-?anweisung(?:en)?"
    r"|(?:prompt|message|instructions) (?:du )?systeme|tes instructions|vos instructions|prompt (?:del |de "
    r"|do )?sistema"
    r"|tus instrucciones|instrucciones (?:ocultas|del sistema)|suas instrucoes|instrucoes (?:ocultas|do sistema))"
)
_TELL = (
    r"(?:reveal|show|print|repeat|output|display|tell me|give me|leak|dump|write out|disclose|recite|zeig\w*"
    r"|verrat\w*|gib"
    r"|wiederhol\w*|nenn\w*|montr\w+|affich\w+|revel\w+|repet\w+|donne\w*|muestra\w*|ensena\w*|imprim\w+"
    r"|mostr\w+|exib\w+"
    r"|dime|diga|me diga)"
)
_FREE = (
    r"(?:unrestricted|unfiltered|uncensored|jailbroken|without (?:any )?(?:rules|restrictions|limits|filters)"
    r"|no (?:rules|"
    r"restrictions|limits|filters)|\bDAN\b|do anything now|ohne (?:regeln"
    r"|einschrankungen|filter)"
    r"|uneingeschrankt|sans (?:regles|restrictions|limites|filtre)|sin (?:reglas|restricciones|limites|filtros)"
    r"|sem (?:regras|restricoes|limites|filtros))"
)
_NOW_YOU = (
    r"(?:you(?: are|'re|r)?(?: now| must now| will now)|from now on|act as|pretend (?:to be|you are)"
    r"|du bist (?:jetzt|nun)"
    r"|ab (?:jetzt|sofort)|tu es (?:maintenant|desormais)|desormais|vous etes maintenant|a partir de (?:ahora|agora)"
    r"|ahora eres|eres ahora|agora voce e|voce agora e|finja)"
)
_SENDS = (
    r"(?:send|forward|e?-?mail|post|upload|exfiltrate|transmit|schick\w*|sende\w*|envoi\w+|envoye\w*|envia\w*|mand\w+)"
)
_ASSETS = (
    r"(?:passwords?|api keys?|credentials|secrets|tokens?|private keys?|(?:entire |whole |full )?conversation"
    r"|chat history"
    r"|passwort\w*|zugangsdaten|schlussel|mots? de passe|identifiants|contrasenas?|claves?|credenciales|senhas?"
    r"|credenciais)"
)
_MODELS = (
    r"(?:ai|assistant|(?:large\W+)?language\W+model|llm|model|chatbot|bot|agent|claude|chatgpt|gpt|copilot|gemini|ki|ia"
    r"|assistente|asistente|modell|modele|modelo|sprachmodell)"
)

_PATTERNS = {
    "override": (1.0, rf"\b{_OVERRIDE}\W+{_ALL}{_RULES}\b"),
    "override_context": (
        1.0,
        r"\b(?:ignore|disregard|forget)\W+(?:about\W+)?(?:everything|all|anything|what)\W+(?:that\W+)?"
        r"(?:you\W+(?:were|have been)\W+told|i\W+said|(?:was\W+)?(?:said|written)|above|before)\b",
    ),
    "prompt_leak": (1.0, rf"\b{_TELL}\W+(?:\w+\W+){{0,4}}?{_SECRET}"),
    "role_change": (1.0, rf"\b{_NOW_YOU}\b[^.!?\n]{{0,80}}?{_FREE}"),
    "mode_switch": (
        0.6,
        r"\b(?:enable|enter|activate|switch (?:to|into)|aktivier\w*|activ\w+|ativ\w+)\W+(?:the\W+|el\W+|le\W+"
        r"|den\W+|o\W+)?"
        r"(?:developer|debug|dan|jailbreak|god|admin|root|unrestricted|entwickler|desarrollador|developpeur"
        r"|desenvolvedor"
        r"|modo\W+(?:desarrollador|desenvolvedor|dios)|mode\W+(?:developpeur|admin))[\W_]*(?:mode|modus)?\b",
    ),
    "new_orders": (
        1.0,
        r"\b(?:new|updated|revised|real|actual|neue|nouvelles?|nuevas?|novas?)\W+(?:system\W+)?(?:instructions?|orders"
        r"|directives?|anweisung(?:en)?|consignes|instrucciones|instrucoes)\W*(?:for\W+(?:the\W+)?"
        + _MODELS
        + r"\W*)?:",
    ),
    "fake_role": (
        1.0,
        r"<\|(?:im_start|system|start_header_id|endoftext)\|?>|\[/?INST\]|<</?SYS>>|</?system(?:[-_ ](?:prompt"
        r"|message))?>"
        r"|(?:^|\n)\W{0,4}(?:system|developer)\W{0,3}(?:message|prompt|override|note)?\W{0,3}:\W*(?:you|ignore"
        r"|new|override"
        r"|the (?:user|assistant))\b",
    ),
    "addressed_to_model": (
        1.0,
        rf"\b(?:attention|note|important|instruction|message|hinweis|achtung|nota|atencion|atencao|attention)\W+"
        rf"(?:to|for|an|a|al|ao|para|pour)\W+(?:(?:the|any|all|every|el|los|o|os|a|as|die|den|das|alle|l|la|le"
        rf"|les|tous)\W+){{0,3}}{_MODELS}\w*\b",
    ),
    "rules_void": (
        1.0,
        r"\b(?:guidance|instructions?|rules?|policy|policies|guidelines?|prompt|restrictions|orders|befehle|regeln|vorgaben"
        r"|anweisungen|consignes|regles|instrucciones|reglas|instrucoes|regras)\b[^.!?\n]{0,40}?"
        r"(?:no longer (?:appl|valid|count|matter)|(?:is|are) (?:now )?(?:outdated|void|obsolete|revoked|suspended"
        r"|cancelled)|(?:ist|sind) (?:nun |jetzt )?(?:ungultig|aufgehoben|hinfallig)|gelten (?:ab jetzt )?nicht mehr"
        r"|ne (?:s'appliqu\w+|val\w+|compt\w+) plus|ya no (?:sirv|val|aplic)|nao (?:val|se aplic)\w* mais)"
    ),
    "obey_me": (
        0.6,
        r"\b(?:(?:obey|listen to) (?:only )?(?:me|this)|only (?:to )?me\b|(?:hor|hore) (?:nur )?(?:noch )?auf mich"
        r"|obeis\w* (?:seulement )?a moi"
        r"|solo (?:lo que|a lo que) yo|so o que eu mandar)"
    ),
    "told_before": (
        0.6,
        r"\b(?:what (?:you were|they) told|ce qu'on t'a dit|lo que te dijeron|o que (?:te )?disseram)\W+(?:you\W+)?"
        r"(?:before|earlier|auparavant|avant|antes)"
    ),
    "exfiltration": (1.0, rf"\b{_SENDS}\b[^.!?\n]{{0,60}}?\b{_ASSETS}\b[^.!?\n]{{0,60}}?(?:\b(?:to|an|a|para"
    rf"|naar)\b\W+\S*[@/]|https?:)"),
    "picture_leak": (1.0, r"!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}[?&][\w-]{1,30}=(?:\{|<|\[|\$|%7b)"),
    "unfiltered_answers": (
        0.4,
        r"\b(?:answer|respond|reply|explain|beantworte|antworte|reponds|repondre|contesta|responde|responda)\w*\W+"
        r"(?:to\W+|a\W+)?(?:everything|anything|alles|tout|todo|tudo|without)\b",
    ),
    "secrecy": (
        0.6,
        r"\b(?:do not|don't|never)\W+(?:tell|inform|mention|notify|alert)\W+(?:this\W+to\W+)?(?:the\W+)?(?:user"
        r"|human|anyone)"
        r"|\b(?:sag\w*|erwahne)\W+(?:es\W+)?(?:dem\W+)?(?:nutzer|benutzer)\W+nicht|ne\W+(?:le\W+)?dis\W+(?:pas|rien)"
        r"|no\W+(?:se\W+)?lo\W+digas|nao\W+(?:conte|diga|informe)",
    ),
    "free_persona": (0.6, rf"\b{_FREE}"),
    "call_a_tool": (0.6, r"\b(?:you must|immediately|now|first)\W+(?:call|invoke|execute|run"
    r"|use)\W+(?:the\W+)?\w+\W+(?:tool|function)\b"),
    "roleplay": (0.4, rf"\b{_NOW_YOU}\b"),
    "urgency": (0.4, r"\b(?:this is (?:an order|critical)|mandatory|system override"
    r"|admin(?:istrator)? (?:override|access)|maintenance mode)\b"),
}  # fmt: skip
"""Kind -> how much it weighs, and how it is worded; the views have no accents."""

_WORDINGS = [(name, weight, re.compile(pattern, re.IGNORECASE)) for name, (weight, pattern) in _PATTERNS.items()]
_ENOUGH = 1.0
_LOOSE_OVERRIDE = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|of|these|previous|prior|above|earlier"
    r"|safety|system)*"
    r"(?:instructions?|rules|prompts?|guidelines|orders)|(?:reveal|show|print|repeat)(?:me|your"
    r"|the)*(?:systemprompt|hidden"
    r"(?:prompt|instructions)|instructions)",
    re.IGNORECASE,
)
"""What is left of the patterns where the spaces between words are gone."""


class InjectionDetector(Detector):
    """Finds attempts by their wording, and with a classifier also by what that makes of the text."""

    name = "injection"
    seams: frozenset[Seam] = frozenset(("input", "tool_result", "memory_write"))

    def __init__(
        self,
        action: GuardrailAction | str = GuardrailAction.BLOCK,
        *,
        classifier: Classifier | None = None,
        label: str = "injection",
        threshold: float = 0.85,
    ) -> None:
        """A text counts as an attempt from a score of `threshold` under `label` on."""
        self.action = GuardrailAction(action)
        self._classifier, self._label, self._threshold = classifier, label.lower(), threshold

    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return the attempts."""
        found = await in_thread_if_long(_attempts, text)
        if not found and before:
            found = await in_thread_if_long(partial(_split_attempts, before), text)
        if not found and self._classifier is not None:
            scores = {name.lower(): score for name, score in (await self._classifier.classify(text)).items()}
            score = scores.get(self._label, 0.0)
            if score >= self._threshold:
                found = [Match("classified", score=score)]
        return found

    async def warmup(self) -> None:
        """Load the classifier."""
        load = getattr(self._classifier, "warmup", None)
        if load is not None:
            await load()


def _split_attempts(before: str, text: str) -> list[Match]:
    """Return attempts that only both together make, in either order: results may end in any."""
    if _attempts(before):
        return []
    found = _attempts(f"{before} {text}") or _attempts(f"{text} {before}")
    return [Match(match.category, score=match.score) for match in found]


def _attempts(text: str) -> list[Match]:
    for view in all_views(text):
        found = _in_view(view)
        if found:
            return found
    return []


def _in_view(view: View) -> list[Match]:
    if view.loose:
        merged = [Match("override", *view.place_of(*match.span())) for match in _LOOSE_OVERRIDE.finditer(view.text)]
        if merged:
            return merged
    hits = [
        (weight, Match(name, *view.place_of(*match.span()), weight))
        for name, weight, pattern in _WORDINGS
        if (match := pattern.search(view.text)) is not None
    ]
    total = sum(weight for weight, _ in hits)
    return [match for _, match in hits] if total >= _ENOUGH else []
