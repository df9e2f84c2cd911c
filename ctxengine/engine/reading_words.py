"""The words a lexical reading goes by, in several languages (capacity spec 7; design 7.11).

They tell what kind of thing is asked for and which capability it needs; none of them is a topic, a product or a place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ACT_WORDS: Mapping[str, frozenset[str]] = {
    "converse": _words(
        "hi hello hey thanks thank ok okay bye hallo danke tschüss bonjour merci salut hola gracias ciao grazie "
        "olá obrigado"
    ),
    "analyse": _words(
        "analyse analyze compare evaluate assess summarise summarize review explain analysiere vergleiche bewerte "
        "erkläre analysez comparez résumez expliquez analiza compara resume explica analizza confronta riassumi"
    ),
    "locate": _words(
        "find search locate look lookup fetch retrieve check get finde suche hole prüfe cherche trouve trouvez "
        "busca encuentra cerca trova procura"
    ),
    "change": _words(
        "refactor fix change edit update rename replace remove delete move rewrite improve repair ändere ersetze "
        "behebe lösche verschiebe modifie corrige remplace supprime cambia corrige reemplaza elimina modifica"
    ),
    "make": _words(
        "write create make build implement add generate draft design schreibe erstelle baue schreib écris crée "
        "construis escribe crea construye scrivi"
    ),
    "operate": _words(
        "run execute start stop deploy install send schedule open close restart starte führe sende öffne lance "
        "exécute envoie ejecuta envía abre esegui"
    ),
    "answer": _words(
        "tell show give list report say zeig zeige sag nenne gib dis montre donne dime muestra dame dimmi mostra"
    ),
}
"""By what a directive begins with, or else holds; earlier rows win."""

QUESTION_WORDS = re.compile(
    r"(?i)\b(what|what's|whats|who|where|when|why|which|how|is|are|does|do|did|was|were|can|could|"
    r"was|wer|wo|wann|warum|welche[rs]?|wie|wieviel|quel(?:le)?s?|qui|où|quand|pourquoi|comment|combien|"
    r"qué|quién|dónde|cuándo|cuál|cómo|cuánto|quanto|quale|come|dove|qual|quem)\b"
    r"|什么|多少|哪|谁|怎么|几|吗|何|いくら|誰|どこ|どう|얼마|무엇|누구|어디"
)

DOMAIN_WORDS: Mapping[str, frozenset[str]] = {
    "filesystem": _words(
        "file files folder folders directory directories path repo repository branch commit module datei dateien "
        "ordner verzeichnis fichier fichiers dossier archivo archivos carpeta"
    ),
    "shell": _words(
        "command commands shell terminal script process build compile install befehl commande comando"
    ),
    "web": _words("web website url page online internet webseite seite site sitio"),
    "memory": _words(
        "remember recall earlier previously before yesterday erinnere früher vorhin rappelle avant recuerda antes"
    ),
    "data": _words(
        "table chart csv dataset column rows average sum total plot tabelle diagramm tableau graphique tabla "
        "gráfico"
    ),
}

LIVE_WORDS = re.compile(
    r"(?i)\b(?:current(?:ly)?|right now|at the moment|at present|as of (?:now|today)|up[- ]to[- ]date|real[- ]time|latest|"
    r"newest|"
    r"today(?:'s|’s)?|tonight|now|this (?:morning|afternoon|evening)|"
    r"aktuell(?:e[nrms]?)?|jetzt|gerade|heute|heutige[nrms]?|momentan|derzeit(?:ige[nrms]?)?|zurzeit|neueste[nrms]?|"
    r"actuel(?:le)?s?|actuellement|maintenant|aujourd['’]hui|en ce moment|en temps réel|"
    r"actual(?:es|mente)?|ahora(?: mismo)?|hoy|en este momento|en tiempo real|"
    r"attual[ei]|attualmente|adesso|oggi|in questo momento|atual(?:mente)?|agora|hoje|neste momento|"
    r"сейчас|сегодня|текущ\w*|актуальн\w*|obecnie|teraz|dziś|dzisiaj|nu|vandaag|huidige|idag|şu an|bugün|güncel)\b"
    r"|现在|現在|今天|今日|目前|当前|當前|最新|实时|即時|いま|リアルタイム|지금|오늘|현재|최신|실시간|الآن|اليوم|حاليا|الحالي|अभी|आज|वर्तमान"
)
"""Words of now."""

LEADING_NOW = re.compile(
    r"(?i)^\W*(?:(?:ok(?:ay)?|so|and|thanks|well|gut|also)\W+)*(?:now|jetzt|maintenant|ahora|adesso|ora|agora|nu|teraz|сейчас)\b"
)
"""At the head of a message such a word only says that the talk goes on."""

LIVE_ADJECTIVE = re.compile(
    r"(?i)(?:^|\b(?:the|a|any|get|show|give|me|this|with|for|check|see|of)\s+)live\s+"
    r"(?!in\b|at\b|with\b|on\b|near\b|there\b|here\b|by\b|alone\b|together\b)\w+"
)
"""`live` as what a value is, never as where somebody resides."""

TIME_ASKED = re.compile(
    r"(?i)\bwhat(?:'s| is)? (?:the )?(?:current |local )?(?:time|date|day|month|year)\b|"
    r"\b(?:current|local) (?:time|date|day|year)\b|"
    r"\bwhat time\b|\bwhich day\b|\bwie spät\b|\bwieviel uhr\b|\bwelche[rs]? (?:tag|datum)\b|\bquelle heure\b|\bqué hora\b|"
    r"\bche ore\b|\bque horas\b|几点|幾點|何時|몇 시"
)
"""The clock is known to the platform."""

OWN_STATE = re.compile(
    r"(?i)\b(?:are|were|did|have) you\b|\bdo you (?:have|hold|see|remember|keep|plan)\b|\byou (?:are|have|hold|remember)\b|"
    r"\byour (?:\w+ )?(?:state|status|plan|task|tools?|memory|context|instructions?|goal|name|model)\b|\bhast du\b|\bbist du\b|"
    r"\bdein[enr]*\b|\bas-tu\b|\bes-tu\b|\btienes\b|\beres\b|\bour (?:conversation|session|chat)\b"
)
"""The agent itself is asked about."""

LOCAL_WORDS = _words(
    "file files folder directory directories path repo repository branch commit code function class method "
    "variable module package parser script test tests build config configuration setting settings document "
    "page paragraph section draft line cursor selection window tab conversation session chat message task "
    "todo plan project workspace diff pull request ticket datei ordner verzeichnis zweig funktion klasse "
    "datensatz gespräch sitzung aufgabe projekt fichier dossier répertoire branche fonction classe tâche "
    "projet archivo carpeta directorio rama función clase tarea proyecto sesión cartella progetto"
)
"""Beside one of these a word of now is about something at hand, not about the world."""
