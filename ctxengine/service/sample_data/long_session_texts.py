"""Sentences, code and log messages that the long sample session is put together from."""

from __future__ import annotations

SYSTEM = (
    "You look after the sorting software of a parcel depot. Say what you found before you change anything, keep "
    "changes small, and never stop a belt between 05:00 and 07:00. Restarting a unit needs a reason in the log."
)

HOSTS = ("sort-a", "sort-b", "gate-1", "gate-2", "scan-3", "scan-4", "label-2", "weigh-1")

MODULES = ("router", "scanner", "labels", "weigher", "belts", "manifest", "handover", "alerts")

QUESTIONS = (
    "Why does {module} on {host} send so many parcels to the manual desk since this morning?",
    "Please look at {host}: the screen of the night shift says that {module} is slow again.",
    "What would happen to {module} if {host} went down at nine in the evening?",
    "The carrier complains about labels without a route. Can you see anything in {module}?",
    "Raise the retry time of {module} on {host} a little, and tell me what you changed.",
    "How many parcels were misrouted by {module} yesterday, and were they from one belt?",
    "Write me two sentences on the state of {host} for the shift book.",
    "Compare {module} on {host} with what the handbook says about it.",
    "Someone restarted {module} at four. Who, and did it help?",
    "Check that the change from Tuesday to {module} has really reached {host}.",
)

REMARKS = (
    "I look at the log of {host} first.",
    "Now the figures behind it.",
    "The handbook should say what is normal here.",
    "That does not explain the peak; one step further.",
    "Before I touch anything, let me see the code.",
    "Both look alike, so I compare them directly.",
    "The clock on {host} is fine, so the order of events holds.",
)

CLOSINGS = (
    "Found it: {module} on {host} waits for a scale that answers late, and each wait blocks the next parcel.",
    "{host} is healthy. The peak came from a lorry that was unloaded onto one belt only.",
    "I changed one number in {module}; nothing was restarted, and the queue on {host} is shrinking.",
    "No fault in {module}. The labels without a route were printed before the new table was loaded on {host}.",
    "The comparison is done: {module} does what the handbook says, except for belts above number twelve.",
    "There is not enough evidence to say more than this about {module} on {host}.",
)

PROSE = (
    "A parcel that is weighed twice keeps the second weight.",
    "The manual desk takes over as soon as two scanners disagree about a barcode.",
    "Belts one to six serve the northern gate, the others the southern one.",
    "Every handover is written to the manifest before the lorry may leave.",
    "A retry shorter than the slowest scale only makes the queue longer.",
    "The night shift prefers a late parcel to a wrong one, and the settings follow that.",
    "When a label is printed again, the old one must be covered, not removed.",
    "Figures from before the move to the new hall cannot be compared with later ones.",
    "Above eighty per cent of use a belt needs a person beside it.",
    "The router reads its table every ten minutes, and at once when told to.",
    "Misroutes come in groups, since one wrong entry concerns a whole street.",
    "Nobody has looked at this alarm for a month, which says something about the alarm.",
)

SCRIPTS = (
    "配送センターの第3ベルトは、夜間に重量計が遅れて応答します。",
    "분류기 재시작 후에도 라벨이 두 번 인쇄됩니다. 확인 부탁드립니다.",
    "Лента номер семь остановилась в 04:12, причина в журнале не указана.",
    "الطرد معلق عند البوابة الثانية منذ الصباح.",
    "Noc na směně byla klidná, jen váha 1 čekala déle než obvykle 📦⚖️",
    "第十二号传送带的路由表没有更新，请先核对。",
)

LOG_MESSAGES = (
    "parcel {parcel} routed in {n} us",
    "parcel {parcel} held: no route for its code",
    "queue length {n}",
    "scale answered after {n} ms",
    "route table loaded, {n} entries",
    "label {parcel} printed again",
    "scanner disagreement on {parcel}, sent to the manual desk",
    "retry {n} for {parcel}",
    "handover of {n} parcels confirmed",
    "Traceback (most recent call last): ScaleTimeout: no answer within {n} ms",
)

CODE = (
    '''def route(parcel: Parcel, table: RouteTable) -> Belt:
    """Belt of a parcel; the manual desk when the table has no entry."""
    entry = table.find(parcel.postcode)
    if entry is None:
        return MANUAL_DESK
    return entry.belt''',
    '''class MODULESettings:
    """Settings of MODULE, read once at start."""

    retry_after_s: float = 12.0
    belts: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    def belt_for(self, gate: int) -> int:
        return self.belts[gate % len(self.belts)]''',
    """async def weigh(scale: Scale, parcel: Parcel, *, timeout_s: float) -> int:
    try:
        async with timeout(timeout_s):
            return await scale.read_grams(parcel.id)
    except TimeoutError:
        log.warning("scale %s late for %s", scale.name, parcel.id)
        raise ScaleTimeout(scale.name, timeout_s) from None""",
    """for row in cursor.execute("select id, belt from parcel where state = 'held'"):
    queue.put(Held(row.id, row.belt))
    if queue.full():
        break""",
    """def test_MODULE_prefers_the_manual_desk_to_a_guess() -> None:
    table = RouteTable(entries=[])
    assert route(Parcel("PX00000001", postcode="24103"), table) is MANUAL_DESK""",
)
