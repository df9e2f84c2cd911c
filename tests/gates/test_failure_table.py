"""Gate: every row of the frozen-prefix spec's table of failures has tests that name its defence, and they exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

TESTS = Path(__file__).parent.parent

DEFENCES: dict[str, tuple[str, ...]] = {
    "cache thrash": (
        "gates/test_prefix_stability_frozen.py::test_fifty_turns_share_one_of_each_prefix_hash",
        "gates/test_hash_seed_independence.py::test_shuffled_tools_scopes_and_keys_give_one_plan_in_every_process",
        "gates/test_cache_window.py::test_each_request_reads_all_that_the_one_before_wrote",
        "engine/test_never_yield.py::test_rows_out_of_their_order_or_region_are_refused",
    ),
    "label laundering": (
        "gates/test_trust_preservation_compaction.py::test_no_injection_leaves_its_envelope_or_reaches_a_summary_or_a_fact",
        "gates/test_trust_preservation_compaction.py::test_every_result_is_pointed_at_with_kind_trust_size_and_event",
    ),
    "envelope forgery": (
        "gates/test_trust_envelopes.py::test_no_attempt_closes_or_opens_an_envelope",
    ),
    "orphaned tool pair": (
        "gates/test_tool_pair_integrity.py::test_a_lost_result_is_always_caught",
        "gates/test_tool_pair_integrity.py::test_a_lost_call_is_always_caught",
        "gates/test_pairs_in_every_request.py::test_cuts_and_pointers_never_leave_half_a_pair",
    ),
    "silent context overflow": (
        "gates/test_no_silent_overflow.py::test_no_request_is_refused_as_too_long_and_none_outgrows_the_margin",
        "gates/test_budget_conformance.py::test_no_request_is_over_budget_and_the_rows_add_up",
        "engine/test_never_yield.py::test_fresh_rows_give_way_even_where_there_is_no_history",
        "engine/test_never_yield.py::test_a_build_whose_rows_are_over_what_is_usable_is_refused",
        "service/test_marker_settings.py::test_few_receipts_may_raise_a_factor_and_not_lower_it_below_one",
    ),
    "truncated system prompt": (
        "gates/test_budget_classes.py::test_a_session_that_overflows_the_class",
        "gates/test_budget_classes.py::test_every_class_of_the_table_has_a_case",
        "service/test_open_refusals.py::test_a_session_that_cannot_open_leaves_its_class_and_no_session",
    ),
    "compaction amnesia": (
        "engine/compaction/test_compaction_parts.py::test_a_merge_has_the_union_of_sources_pointers_and_constraints",
        "engine/working_state/test_working_state_rules.py::test_the_ceiling_of_the_block_evicts_by_age_and_never_a_constraint",
    ),
    "working-state drift": (
        "service/test_working_state.py::test_every_update_is_an_event_whose_texts_are_in_its_body",
        "service/test_working_state.py::test_the_state_is_read_from_a_keyframe_and_equals_the_whole_log",
    ),
    "epoch churn": (
        "gates/test_prefix_stability_frozen.py::test_a_persona_edit_makes_exactly_two_epochs_and_says_why",
        "service/test_service_epochs.py::test_nothing_changed_is_no_rotation",
        "service/test_marker_settings.py::test_the_life_of_history_is_an_operators_setting_that_rotates_nothing",
    ),
    "unstable history selection": (
        "gates/test_history_cut_determinism.py::test_both_cuts_are_the_largest_suffix_that_fits",
        "gates/test_history_cut_determinism.py::test_the_order_in_which_results_arrive_does_not_move_the_cut",
    ),
    "reasoning-item leakage": (
        "gates/test_dispensability.py::test_at_the_end_of_the_run_reasoning_leaves_and_its_requests_still_prove",
        "engine/exporters/test_exporters_formats.py::test_reasoning_is_in_no_export",
    ),
}


@pytest.mark.parametrize("failure", DEFENCES)
def test_the_defence_against_it_is_tested(failure: str) -> None:
    for named in DEFENCES[failure]:
        path, _, name = named.partition("::")
        tree = ast.parse((TESTS / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, named
