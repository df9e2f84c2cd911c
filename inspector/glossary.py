"""The words of the console: one table, from which the glossary page and every pop-up are made."""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """One word with its meaning."""

    word: str
    meaning: str
    group: str


_LEDGER, _REQUEST, _CACHE, _TRUST, _FIGURES = (
    "The ledger", "A request", "Plan and cache", "Trust", "Figures",
)  # fmt: skip

TERMS: dict[str, Term] = {
    "ledger": Term(
        "ledger",
        "The append-only events of a session, each with a hash over the one before. Everything else is "
        "derived from it.",
        _LEDGER,
    ),
    "event": Term(
        "event",
        "One message as it arrived, or one act. Never changed, never removed; its content can be erased, its "
        "hash stays.",
        _LEDGER,
    ),
    "item": Term(
        "item",
        "One message, call or result inside an event, named by sequence and place: 12.0.",
        _LEDGER,
    ),
    "unit": Term(
        "unit",
        "The smallest thing that is left out or shortened: a message, or an assistant's answer with the results of its calls.",
        _LEDGER,
    ),
    "session": Term(
        "session",
        "One agent at work for one person, from open to end, with its own log.",
        _LEDGER,
    ),
    "run": Term(
        "run",
        "What a session does for one message of its user, up to the answer that ends it.",
        _LEDGER,
    ),
    "step": Term(
        "step",
        "One request of a run. 14.6 is step 6 of run 14.",
        _LEDGER,
    ),
    "chain": Term(
        "hash chain",
        "Each event's hash covers the hash before it, so that nothing can be altered unseen.",
        _LEDGER,
    ),
    "erased": Term(
        "erased",
        "The bytes are gone; length, digest and the place in the chain stay.",
        _LEDGER,
    ),
    "request": Term(
        "request",
        "What was handed out for the model: fifteen rows, built anew for every step, never stored as bytes.",
        _REQUEST,
    ),
    "row": Term(
        "row",
        "One of the fifteen places in a request, always in the same order.",
        _REQUEST,
    ),
    "region": Term(
        "region",
        "A: rows 1 to 8, frozen for an epoch. B: rows 9 to 15, built for each request.",
        _REQUEST,
    ),
    "manifest": Term(
        "manifest",
        "What a request holds and why, item by item, written when it was built.",
        _REQUEST,
    ),
    "form": Term(
        "form",
        "How an item stands in a request: whole, as a window, digest, excerpt, card, packet or pointer, or "
        "out.",
        _REQUEST,
    ),
    "pointer": Term(
        "pointer",
        "A line in place of a stored result: what it is, how large, and how to recall it.",
        _REQUEST,
    ),
    "digest": Term(
        "digest",
        "A short form of a stored result, made by rules for its kind of content.",
        _REQUEST,
    ),
    "evidence": Term(
        "evidence",
        "A tool result stored whole; whatever form a request shows, recall reaches the rest.",
        _REQUEST,
    ),
    "cut": Term(
        "history cut",
        "The event from which closed history is kept. Everything before stands behind a summary or a notice.",
        _REQUEST,
    ),
    "cut_floor": Term(
        "cut floor",
        "A cut stands: later requests of the session do not reach back behind this event, so that their bytes stay cached.",
        _REQUEST,
    ),
    "pointer_floor": Term(
        "pointer floor",
        "Results from before this event stand as pointers, in later requests too, so that their bytes stay cached.",
        _REQUEST,
    ),
    "yield": Term(
        "yield",
        "One class gives up tokens because the request would not fit. The order is fixed, and each yield is "
        "recorded.",
        _REQUEST,
    ),
    "pressure": Term(
        "pressure",
        "What wanted to be in a request is more than the room it has.",
        _REQUEST,
    ),
    "compaction": Term(
        "compaction",
        "A range of history is replaced by a summary. It can be undone.",
        _REQUEST,
    ),
    "depth": Term(
        "depth",
        "1: a summary of turns. 2: a summary of summaries; rising depth means that work belongs into child "
        "runs.",
        _REQUEST,
    ),
    "card": Term(
        "card",
        "The small record of a closed turn: asked, did, answered, outcome.",
        _REQUEST,
    ),
    "packet": Term(
        "packet",
        "A summary of an exact range of turns, kept and used again as it is.",
        _REQUEST,
    ),
    "engine": Term(
        "engine",
        "Who decides what requests show of the past: `suffix`, `working_set` or `boundary`. Fixed for a session.",
        _REQUEST,
    ),
    "working_state": Term(
        "working state",
        "What a session must not forget: objective, constraints, tasks, facts. It never yields.",
        _REQUEST,
    ),
    "plan": Term(
        "plan",
        "The pinned rows 1 to 8 of a session: policy, instructions, persona, tools, snapshot.",
        _CACHE,
    ),
    "epoch": Term(
        "epoch",
        "The version of the plan. A new one re-caches the whole prefix, so each has a reason and a price.",
        _CACHE,
    ),
    "recached": Term(
        "re-cached",
        "Prefix tokens that are written to the provider's cache anew, because a new epoch changed their bytes. History behind "
        "them is written again too; what that came to stands with the epoch's first request.",
        _CACHE,
    ),
    "prefix": Term(
        "prefix",
        "The bytes that every request of an epoch begins with; its hash must never differ inside one.",
        _CACHE,
    ),
    "marker": Term(
        "marker",
        "A place at which the provider is asked to keep what came before.",
        _CACHE,
    ),
    "cached": Term(
        "cached",
        "Prompt tokens that the provider read from its cache, as it reports them.",
        _CACHE,
    ),
    "fresh": Term(
        "fresh, read, write",
        "Disjoint parts of the billed prompt: not cached, read from the cache, written to it. They add up to "
        "the bill.",
        _CACHE,
    ),
    "predicted": Term(
        "against prediction",
        "Reported cache reads minus what the provider's rules let us expect.",
        _CACHE,
    ),
    "ttl": Term(
        "life",
        "How long a provider keeps an entry after its last use: 5 minutes or an hour.",
        _CACHE,
    ),
    "trust": Term(
        "trust",
        "Whose word something is, from platform down to external. What is derived takes the lowest of its "
        "sources.",
        _TRUST,
    ),
    "envelope": Term(
        "envelope",
        "Delimiters around untrusted content, with an unguessable mark: text inside cannot close it.",
        _TRUST,
    ),
    "canary": Term(
        "look-alike",
        "Text that imitates a delimiter. It is escaped for the model and marked here.",
        _TRUST,
    ),
    "masked": Term(
        "masked",
        "A secret that was recognised is replaced by its kind in views, summaries and exports.",
        _TRUST,
    ),
    "tokens": Term(
        "tokens",
        "Counted with the model's tokenizer where it is known; ≈ marks an estimate.",
        _FIGURES,
    ),
    "usable": Term(
        "usable",
        "The window less the answer's reserve and the margin, divided by the model's factor.",
        _FIGURES,
    ),
    "peak": Term(
        "peak",
        "The largest request of a session. Never a sum over requests.",
        _FIGURES,
    ),
    "factor": Term(
        "factor",
        "How far our counts were off for a model, learnt from its bills. It divides the budget.",
        _FIGURES,
    ),
    "unattributed": Term(
        "unattributed",
        "Billed tokens that no row explains. Always shown, never hidden.",
        _FIGURES,
    ),
    "horizon": Term(
        "horizon",
        "How much of its window a model was measured to use well.",
        _FIGURES,
    ),
    "proof": Term(
        "proof",
        "The request is made again out of what the ledger holds; it must hash to the same value as when it was recorded.",
        _FIGURES,
    ),
    "reconstructed": Term(
        "reconstructed",
        "Built from an imported transcript, never sent by us; it feeds no estimate.",
        _FIGURES,
    ),
}


def grouped() -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """The table as the glossary page shows it."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for key, term in TERMS.items():
        groups.setdefault(term.group, []).append((key, term.word, term.meaning))
    return tuple((title, tuple(terms)) for title, terms in groups.items())
