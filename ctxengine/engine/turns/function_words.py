"""Words of no subject: they join others and say nothing of what a directive is about (capacity spec 4)."""

from __future__ import annotations

_TEXT = """
a about after again all also am an and another any are as ask asked asking asks at back be became because become
becomes been before being between both but by came can come comes coming could did do does doing done each either else
even every few first for from gave get getting give given gives go goes going gone got had happen happened happens has
have having he her here him his how i if in into is it its itself just keep keeps kept knew know known knows last let
like look made make makes making many may maybe me might mine more most much must my need never new no nor not now of
off ok okay on once one only or other our out over own part please put right said same saw say saying says second see
seem seems seen shall she should show showed shown shows since so some somebody someone something still such sure take
taken takes taking tell telling tells than thank thanks that the their them then there these they thing things think
thinking thinks this those though thought through to today together told too took tried tries try trying two under
until up us use used very want wanted wants was way we well went were what when where whether which while who whom
whose why will with without wonder wondering would yes yet you your aber alle als also am an auch auf aus bei bin bis
bitte da das dass dein dem den der des die dies diese dieser doch du durch ein eine einem einen einer eines er es euch
für gibt haben hat hier ich ihr im in ist ja jetzt kann kein keine können mal man mehr mein mich mir mit muss nach
nicht noch nun nur ob oder ohne schon sehr sein sich sie sind so soll über um und uns unter vom von vor war warum was
weil wenn wer werden wie wieder wir wird wo zu zum zur alors au aussi aux avec ce ces cette comme dans de des donc du
elle elles en encore est et eux fait il ils je la le les leur lui ma mais me mes moi mon ne nos notre nous on ou où
par pas plus pour pourquoi quand que quel quelle qui sa sans se ses si son sont sur ta te tes toi ton tu un une vos
votre vous al algo ante como con contra cual cuando de del desde donde el ella ellos en entre era es esa ese eso esta
este esto estos fue ha hasta hay la las le lo los más me mi mis muy no nos o para pero por porque qué que quien se ser
si sin sobre son su sus también te tiene todo tu un una uno y ya yo
"""

FUNCTION_WORDS = frozenset(_TEXT.split())
"""Of the languages seen most, in plain text and lower case."""
