"""`isolet.rlm.REPL` keeps what rlm expects of its local environment."""

from __future__ import annotations

import os

import failing
import pytest

pytest.importorskip("rlm", reason="rlms is not installed")

import rlm.core.rlm
from rlm import RLM
from rlm.clients.base_lm import BaseLM
from rlm.core.types import ModelUsageSummary, UsageSummary
from rlm.environments.base_env import SupportsCustomTools, SupportsPersistence
from rlm.utils.parsing import format_execution_result

import isolet.rlm


@pytest.fixture
def repl():
    with isolet.rlm.REPL(context_payload="abc") as repl:
        yield repl


class Scripted(BaseLM):
    """A model that answers with prepared texts, and keeps what it was asked."""

    def __init__(self, *answers):
        super().__init__(model_name="scripted")
        self.answers = iter(answers)
        self.asked = []

    def completion(self, prompt):
        self.asked.append(str(prompt))
        return next(self.answers)

    async def acompletion(self, prompt):
        return self.completion(prompt)

    def get_usage_summary(self):
        return UsageSummary({"scripted": self.get_last_usage()})

    def get_last_usage(self):
        return ModelUsageSummary(1, 1, 1)


def test_it_has_the_protocols_of_rlm(repl):
    assert isinstance(repl, SupportsPersistence)
    assert isinstance(repl, SupportsCustomTools)


def test_exceptions_of_tools_keep_what_they_are():
    with isolet.rlm.REPL(custom_tools={"fail": failing.fail}) as repl:
        found = repl.execute_code(f"{failing.CODE}print(seen)")
    assert found.stdout == f"{failing.SEEN}\n"


def test_output_errors_state_and_locals(repl):
    found = repl.execute_code("x = len(context)\nprint(x)")
    assert (found.stdout, found.stderr, found.final_answer) == ("3\n", "", None)
    assert {"x", "context", "context_0", "answer"} <= set(found.locals)
    assert "llm_query" not in found.locals
    assert (found.locals["x"], found.locals["context"]) == (3, "abc")
    repl.execute_code("import re\np = re.compile('a')\nwords = ['a']\ndel x")
    assert repl.locals["words"] == ["a"]
    assert repl.locals["context"] == "abc"
    assert repr(repl.locals["p"]) == "re.compile('a')"
    assert "x" not in repl.locals
    assert {"p", "words"} <= {*repl.locals}
    assert repl.locals.get("none") is None
    assert callable(repl.globals["llm_query"])
    repl.locals["x"] = 3
    shown = format_execution_result(repl.execute_code("q = p"))
    assert "'words'" in shown
    assert "'p'" not in shown
    found = repl.execute_code("print(x)\n1 / 0")
    assert found.stdout == "3\n"
    assert found.stderr.endswith("\nZeroDivisionError: division by zero")


def test_the_answer_ends_the_run(repl):
    assert repl.execute_code("answer['content'] = 5").final_answer is None
    assert repl.execute_code("answer['ready'] = True").final_answer == "5"
    assert repl.execute_code("x = 1").final_answer is None
    code = "answer = {'content': 'c', 'ready': True}\n1 / 0"
    assert repl.execute_code(code).final_answer == "c"
    repl.execute_code("answer = 3")
    assert repl.execute_code("print(answer)").stdout == "{'content': '', 'ready': False}\n"


def test_names_of_rlm_cannot_be_rebound_for_longer_than_a_block(repl):
    repl.execute_code("context = 'x'\nllm_query = None\nSHOW_VARS = 1")
    found = repl.execute_code("print(context, callable(llm_query), 'context_0' in SHOW_VARS())")
    assert found.stdout == "abc True True\n"


def test_contexts_and_histories_are_numbered(repl):
    assert repl.add_context({"a": [1]}) == 1
    assert repl.add_history([{"role": "user", "content": "h"}]) == 0
    found = repl.execute_code("print(context, context_1, history == history_0, len(history))")
    assert found.stdout == "abc {'a': [1]} True 1\n"
    assert (repl.get_context_count(), repl.get_history_count()) == (2, 1)


def test_compaction_entries_are_the_history():
    with isolet.rlm.REPL(compaction=True) as repl:
        repl.append_compaction_entry({"type": "summary", "content": "s"})
        assert repl.execute_code("print(history)").stdout == (
            "[{'type': 'summary', 'content': 's'}]\n"
        )


def test_custom_tools_run_on_the_host():
    tools = {"double": {"tool": lambda x: 2 * x, "description": "Doubles."}, "LIMIT": 7}
    with isolet.rlm.REPL(custom_tools=tools) as repl:
        assert repl.execute_code("print(double(LIMIT))").stdout == "14\n"


def test_a_program_is_not_reached(repl):
    assert repl.execute_code("import os; print(os.getpid())").stdout != f"{os.getpid()}\n"


def test_an_rlm_completes_in_the_sandbox(monkeypatch):
    lm = Scripted(
        "```repl\nparts = context.split('|')\nprint(len(parts))\n```",
        "```repl\nsaid = llm_query('what is ' + parts[1])\n```",
        "a fish",
        "```repl\nanswer['content'] = said\nanswer['ready'] = True\n```",
    )
    monkeypatch.setattr(rlm.core.rlm, "get_client", lambda *_, **__: lm)
    uninstall = isolet.rlm.install()
    try:
        made = RLM(backend="openai", backend_kwargs={"model_name": "scripted"}, max_iterations=5)
        assert made.completion("a|trout").response == "a fish"
    finally:
        uninstall()
    assert "what is trout" in lm.asked[2]
    assert rlm.core.rlm.get_environment.__module__ != "isolet.rlm"
