"""How an answer says that it lacks current data, by language (capacity spec 7).

What is lacking is named right behind the word that says so: between them stand only words that lead from one to the other.
"""

from __future__ import annotations

import re

_LIVE = r"(?:live|current|real[- ]?time|up[- ]to[- ]date|latest|fresh)"
_HELD = (
    r"(?:data|values?|access|sources?|figures?|numbers?|feeds?|information|info|prices?|rates?|quotes?|readings?|results?|"
    r"conditions|reports?)"
)
_LACK = r"\b(?:no|without|lack(?:s|ing)?|(?:(?:do|does|did)(?: not|n't)|not) have)"
_TO = (
    r"(?: (?:any|a|an|the|this|that|you|up|direct|reliable|of|to|for|on|access|source|sources|way|get|look|see|"
    r"retrieve|find))*"
)
_ENGLISH = (
    rf"{_LACK}{_TO} {_LIVE}(?:,? (?:and |or )?{_LIVE})*(?: [\w-]+){{0,3}}? {_HELD}\b",
    rf"{_LACK}(?: any| direct| a| an)*"
    rf" (?:access to|sources? (?:of|for)|way to (?:access|get|look up|see|retrieve|find|check)){_TO} {_LIVE}\b",
    rf"{_LACK}(?: any| a)? {_HELD} (?:that (?:is|are)|in|of|from) {_LIVE}\b",
    r"\b(?:can(?:not|'t| not)|could(?: not|n't)|(?:am |was )?unable to|not able to|failed to)"
    rf" (?:access|retrieve|get|look up|find|fetch|obtain|check){_TO} {_LIVE} [\w-]+",
    rf"\b{_LIVE}(?: [\w-]+){{0,2}}? {_HELD} (?:is|are|was|were)(?: currently)? (?:not available|unavailable|missing)\b",
)

_LIVE_DE = r"(?:aktuelle[nrsm]?|live|echtzeit)"
_HELD_DE = (
    r"(?:daten|werte?s?|zugriff|zugang|quellen?|zahl(?:en)?|angaben?|informationen|kurs(?:e|es|daten)?|preis(?:e|es|daten)?|"
    r"stand)"
)
_GERMAN = (
    r"\b(?:keine?[nr]?|ohne)(?: (?:zugriff|zugang) (?:auf|zu)| quellen? (?:für|mit))?(?: (?:die|den|das|der))?"
    rf" {_LIVE_DE}[- ]?(?:[\w-]+ ){{0,2}}?[\w-]*{_HELD_DE}\b",
    rf"\bkann\b(?: [\w-]+){{0,3}}? {_LIVE_DE}(?: [\w-]+){{1,3}}? nicht"
    r" (?:abrufen|abfragen|finden|ermitteln|nachsehen|einsehen)",
)

_LIVE_FR = r"(?:en direct|en temps réel|actuel(?:le)?s?|à jour)"
_HELD_FR = r"(?:données?|valeurs?|accès|sources?|chiffres?|cours|prix|cotations?|informations?)"
_FRENCH = (
    r"\b(?:pas|aucune?|sans)(?: (?:de|accès (?:à|aux)|des|les|d'accès (?:à|aux)))*[ '](?:d')?"
    rf"(?:{_HELD_FR} (?:aux? |à )?(?:des |les )?)+{_LIVE_FR}",
    r"\bne (?:peux|puis) pas (?:accéder (?:à|aux)|obtenir|consulter|récupérer|trouver)"
    rf"(?: [\w'-]+){{1,4}}? {_LIVE_FR}",
)

_LIVE_ES = r"(?:en vivo|en tiempo real|actual(?:es)?|actualizad[oa]s?)"
_HELD_ES = (
    r"(?:datos?|valor(?:es)?|acceso|fuentes?|cifras?|precios?|cotizaci(?:ón|ones)|información)"
)
_SPANISH = (
    r"\b(?:no (?:tengo|dispongo de|cuento con|hay)|sin)(?: (?:acceso a|los|las|el|la|ningún|ninguna|un|una))*"
    rf" {_HELD_ES}(?: a)?(?: (?:los|las|el|la) {_HELD_ES})? {_LIVE_ES}\b",
    rf"\bno puedo (?:acceder a|obtener|consultar|encontrar)(?: [\w-]+){{1,4}}? {_LIVE_ES}\b",
)

_CHINESE = (
    r"(?:没有|沒有|無|无|(?:无法|無法|不能)(?:获取|取得|访问|查询|提供))(?:任何|可靠的|访问|获取|權限|权限)*"
    r"(?:实时|即时|即時|最新|当前|當前|目前)的?(?:数据|數據|资料|資料|数值|值|来源|來源|信息|資訊|价格|價格|行情)",
)
_JAPANESE = (
    r"(?:最新|リアルタイム|現在)の?(?:データ|値|情報|価格|数値|情報源)(?:へのアクセス)?(?:は|が|を|に|には)?"
    r"(?:ありません|持っていません|取得できません|アクセスできません|入手できません)",
)

ADMISSION = re.compile(
    "|".join((*_ENGLISH, *_GERMAN, *_FRENCH, *_SPANISH, *_CHINESE, *_JAPANESE)), re.IGNORECASE
)
"""Finds an admission in one sentence, its blanks single and its apostrophes straight."""
