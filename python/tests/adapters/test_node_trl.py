"""TRL's `GRPOTrainer` trains with the environments of a node, each in a session of its own."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
import requests
from node_process import SECONDS, serving

pytest.importorskip("trl", reason="TRL is not installed")

import torch
from datasets import Dataset
from openenv.core.generic_client import GenericEnvClient
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LogitsProcessorList, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

GENERATIONS = 4
"""For each prompt and step."""

# Threads of a tiny model would only wait for each other.
torch.set_num_threads(1)


class Scripted(Qwen2ForCausalLM):
    """A tiny model of random weights, which says its `turns` but chooses each digit at a `?`.

    Only what it may say is given. What TRL does with it is the same as with every other model.
    """

    turns: tuple[str, ...]
    tokenizer: PreTrainedTokenizerFast

    def generate(self, input_ids, **more):
        begin = input_ids.shape[1]
        ids_of = self.tokenizer.convert_tokens_to_ids
        choice, digits, answer = ids_of("?"), ids_of(list("0123456789")), ids_of("<tool_response>")
        scripts = [
            self.tokenizer(self.turns[(row == answer).sum()] + self.tokenizer.eos_token).input_ids
            for row in input_ids
        ]

        def only(ids, scores):
            forbidden = torch.full_like(scores, -torch.inf)
            for row, script in zip(forbidden, scripts, strict=True):
                given = (script + [self.tokenizer.pad_token_id] * len(ids[0]))[len(ids[0]) - begin]
                row[digits if given == choice else given] = 0
            return scores + forbidden

        return super().generate(input_ids, logits_processor=LogitsProcessorList([only]), **more)


def scripted(*codes: str) -> Scripted:
    """A model which runs `codes`, one after the other, and says that it is done."""
    letters = enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    made = Tokenizer(models.BPE({letter: number for number, letter in letters}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=qwen2_5_chat_template,
    )
    tokenizer.add_tokens(["<|im_start|>", "<tool_call>", "</tool_call>", "<tool_response>"])
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    model = Scripted(config)
    calls = [json.dumps({"name": "run", "arguments": {"code": code}}) for code in codes]
    model.turns = (*(f"<tool_call>\n{call}\n</tool_call>" for call in calls), "Done.")
    model.tokenizer = tokenizer
    return model


@contextlib.contextmanager
def environments(address: str, name: str = "coding"):
    """A class of environments for TRL, and all that TRL makes of it."""
    made = []

    class Environment:
        def __init__(self):
            self.client = GenericEnvClient(f"{address}/openenv/{name}").sync()
            self.episodes = []
            made.append(self)

        def reset(self, expected_answer: str | None = None, **_):
            self.found = self.client.reset(expected_answer=expected_answer)
            self.episodes.append(self.client.state().get("episode_id"))

        def run(self, code: str) -> str:
            """
            Runs Python code.

            Args:
                code: The code.
            """
            self.found = self.client.step({"code": code})
            return json.dumps(self.found.observation)

    try:
        yield Environment, made
    finally:
        # TRL has no end of environments.
        for one in made:
            one.client.close()


def train(directory, model: Scripted, reward, factory, rows=({},), **more) -> GRPOTrainer:
    prompt = [{"role": "user", "content": "Print a digit."}]
    trainer = GRPOTrainer(
        model=model,
        processing_class=model.tokenizer,
        reward_funcs=reward,
        train_dataset=Dataset.from_list([{"prompt": prompt, **row} for row in rows]),
        environment_factory=factory,
        args=GRPOConfig(
            output_dir=str(directory),
            num_generations=GENERATIONS,
            per_device_train_batch_size=GENERATIONS * len(rows),
            max_completion_length=2048,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            **more,
        ),
    )
    trainer.train()
    return trainer


def logged(trainer: GRPOTrainer, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def codes(completion: list[dict]) -> list[str]:
    """What a model has run."""
    calls = [call["function"] for message in completion for call in message.get("tool_calls", ())]
    return [call["arguments"]["code"] for call in calls]


def digit(completion: list[dict]) -> str:
    """The last digit that a model has chosen."""
    return next(letter for letter in reversed("".join(codes(completion))) if letter.isdigit())


def printed(environment) -> str:
    return environment.found.observation["stdout"].strip()


def sessions(address: str) -> set[str]:
    answer = requests.get(f"{address}/v1/sessions", timeout=SECONDS).json()
    return {session["id"] for session in answer["sessions"]}


def wait_for_no_sessions(address: str):
    end = time.monotonic() + SECONDS
    while sessions(address):
        assert time.monotonic() < end
        time.sleep(0.02)


def counted(address: str, name: str) -> int:
    lines = requests.get(f"{address}/metrics", timeout=SECONDS).text.splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


def test_a_reward_is_what_the_code_of_its_generation_printed(address, tmp_path):
    more = "n = globals().get('n', '') + '?'"

    def reward(environments, completions, **_):
        for environment, completion in zip(environments, completions, strict=True):
            # Nothing comes from other generations or from the step before.
            first, second, last = codes(completion)
            assert (first[:-2], second[:-2], last) == (more[:-2], more[:-2], "print(n)")
            assert printed(environment) == first[-2] + second[-2]
            assert json.loads(completion[-2]["content"]) == environment.found.observation
            assert completion[-1] == {"role": "assistant", "content": "Done."}
        seen.append([float(printed(environment)) for environment in environments])
        return seen[-1]

    seen: list[list[float]] = []
    with environments(address) as (factory, _):
        trainer = train(tmp_path, scripted(more, more, "print(n)"), reward, factory, max_steps=2)
    assert logged(trainer, "reward") == pytest.approx([sum(rewards) / 4 for rewards in seen])
    assert len({number for rewards in seen for number in rewards}) > 2
    assert logged(trainer, "tools/call_frequency") == [3, 3]
    assert logged(trainer, "tools/failure_frequency") == [0, 0]


def test_generations_have_a_session_each_and_steps_an_episode_each(address, tmp_path):
    def reward(environments, **_):
        assert len(set(environments)) == GENERATIONS
        seen.append(sessions(address))
        return [float(printed(environment)) for environment in environments]

    seen: list[set[str]] = []
    wait_for_no_sessions(address)
    created = counted(address, "isolet_sessions_created_total")
    closed = counted(address, 'isolet_sessions_ended_total{reason="closed"}')
    with environments(address) as (factory, made):
        train(tmp_path, scripted("print(?)"), reward, factory, max_steps=2)
        assert seen == [sessions(address)] * 2
        assert len(seen[0]) == len(made) == GENERATIONS
        assert [len(environment.episodes) for environment in made] == [2] * GENERATIONS
        assert len({name for environment in made for name in environment.episodes}) == 8
    wait_for_no_sessions(address)
    assert counted(address, "isolet_sessions_created_total") == created + GENERATIONS
    ended = counted(address, 'isolet_sessions_ended_total{reason="closed"}')
    assert ended == closed + GENERATIONS


@pytest.mark.parametrize(("code", "learns"), [("print(?)", True), ("?; print(7)", False)])
def test_a_model_learns_from_what_its_code_printed(address, tmp_path, code, learns):
    def reward(environments, **_):
        return [float(printed(environment)) for environment in environments]

    model = scripted(code)
    before = [parameter.clone() for parameter in model.parameters()]
    with environments(address) as (factory, _):
        trainer = train(tmp_path, model, reward, factory, max_steps=1)
    # Where all generations printed the same, none was better than another.
    assert (logged(trainer, "reward_std") != [0]) == learns
    after = zip(before, model.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in after) == learns


def test_code_that_ends_its_session_or_never_ends_does_not_end_training(tmp_path):
    def reward(environments, completions, **_):
        for environment, completion in zip(environments, completions, strict=True):
            ended, stopped, _ = (
                json.loads(said["content"]) for said in completion if said["role"] == "tool"
            )
            assert (ended["exit_code"], ended["stderr"].endswith("are lost.")) == (7, True)
            assert "was terminated after" in stopped["stderr"]
            assert printed(environment) == digit(completion)
        return [float(printed(environment)) for environment in environments]

    model = scripted("import os; os._exit(7)", "while True: pass", "print(?)")
    config = tmp_path / "node.toml"
    config.write_text("[policy.limits]\nrun_time = 1\ngrace = 60\n")
    with serving("--config", str(config)) as address, environments(address) as (factory, _):
        trainer = train(tmp_path, model, reward, factory, max_steps=1)
    assert logged(trainer, "tools/failure_frequency") == [0]


def test_training_goes_on_after_the_end_of_its_sessions(address, tmp_path):
    def reward(environments, completions, **_):
        assert [printed(it) for it in environments] == [digit(it) for it in completions]
        # As when their time is over between two steps.
        seen.append(sessions(address))
        for name in seen[-1]:
            requests.delete(f"{address}/v1/sessions/{name}", timeout=SECONDS).raise_for_status()
        return [float(printed(environment)) for environment in environments]

    seen: list[set[str]] = []
    with environments(address) as (factory, _):
        trainer = train(tmp_path, scripted("print(?)"), reward, factory, max_steps=2)
    assert len(logged(trainer, "reward")) == 2
    assert not seen[0] & seen[1]


def test_a_step_mixes_the_coding_and_the_repl_environment(address, tmp_path):
    def reward(environments, completions, environment, expected_answer, **_):
        asked = zip(environments, completions, environment, expected_answer, strict=True)
        for one, completion, name, expected in asked:
            answer = str(int(digit(completion[:1])) // 5)
            if name == "repl":
                assert one.found.metadata["final_answer"] == answer
                assert (one.found.reward, one.found.done) == (answer == expected, True)
            else:
                assert printed(one) == f"FINAL({answer})"
                assert (one.found.reward, one.found.done) == (0, False)
        assert sorted(environment) == ["coding"] * GENERATIONS + ["repl"] * 2 * GENERATIONS
        return [one.found.reward for one in environments]

    kinds = [("coding", "0"), ("repl", "0"), ("repl", "1")]
    rows = [{"environment": name, "expected_answer": answer} for name, answer in kinds]
    model = scripted("n = ?", "print(f'FINAL({n // 5})')")
    with environments(address) as (coding, _), environments(address, "repl") as (repl, _):
        factory = {"coding": coding, "repl": repl}
        trainer = train(tmp_path, model, reward, factory, rows, max_steps=1)
    assert logged(trainer, "tools/failure_frequency") == [0]
    assert 0 < logged(trainer, "reward")[0] < 2 / 3
