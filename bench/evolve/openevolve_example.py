"""
Evolves a routing policy with the openevolve package from PyPI, without any language model: a stub answers in its place, by
the program that the prompt shows it.

    python3 -m venv /tmp/evolve && /tmp/evolve/bin/pip install openevolve
    /tmp/evolve/bin/python bench/evolve/openevolve_example.py <trace> [--calls 8] [further options of gnomon openevolve-evaluate]

The program that evolves is a mapping of dotted parameters: weights of the profile, and who is let in. Each evaluation is a
process of its own, isolated and ended in time; its reflection comes back as an artifact of openevolve, so that a model
would read it in the next prompt.
"""

import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from openevolve import run_evolution
from openevolve.config import Config, LLMModelConfig
from openevolve.evaluation_result import EvaluationResult
from openevolve.llm.base import LLMInterface

ROOT = Path(__file__).resolve().parents[2]
ASKED = "EVOLVE_ASKED"
LOG = "EVOLVE_LOG"
SEED = {
    "routing.cache_affinity_weight": 0.7,
    "routing.load_balance_weight": 0.2,
    "routing.queue_depth_weight": 0.1,
    "admission.queue.enabled": True,
    "admission.queue.waitAt": 1.0,
}
PROGRAM = re.compile(r"POLICY = (\{[^}]*\})")


def program(policy: dict) -> str:
    return f"# EVOLVE-BLOCK-START\nPOLICY = {policy!r}\n# EVOLVE-BLOCK-END\n"


def policy_of(text: str) -> dict:
    """The last one that a text shows."""
    return ast.literal_eval(PROGRAM.findall(text)[-1])


def evaluate(program_path: str) -> EvaluationResult:
    """What openevolve asks of an evaluator."""
    policy = policy_of(Path(program_path).read_text())
    trace, *options = json.loads(os.environ[ASKED])
    command = ["node", "bin/gnomon.js", "openevolve-evaluate", trace, "--timeout", "60", *options]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(policy), capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    with open(os.environ[LOG], "a") as log:
        log.write(f"{answer['metrics']['combined_score']:.4f} {json.dumps(policy)}\n")
    return EvaluationResult(metrics=answer["metrics"], artifacts=answer["artifacts"])


class Stub(LLMInterface):
    """Changes one number, at random: stands where a model would read the reflection."""

    def __init__(self) -> None:
        self.model = "stub"
        self.draws = random.Random(os.getpid())

    async def generate(self, prompt: str, **kwargs) -> str:
        return await self.generate_with_context("", [{"role": "user", "content": prompt}])

    async def generate_with_context(self, system_message, messages, **kwargs) -> str:
        shown = [one["content"] for one in messages if PROGRAM.search(one["content"])]
        policy = policy_of(shown[-1])
        name = self.draws.choice([key for key, value in policy.items() if isinstance(value, float)])
        if name == "admission.queue.waitAt":
            policy[name] = round(self.draws.uniform(0.5, 1), 2)
        else:
            policy[name] = round(policy[name] * self.draws.choice([0.25, 0.5, 2, 4]), 3)
        return f"```python\n{program(policy)}```"


def stub(_config) -> Stub:
    return Stub()


def main() -> None:
    trace, *options = sys.argv[1:]
    calls = 8
    if "--calls" in options:
        at = options.index("--calls")
        calls = int(options[at + 1])
        del options[at : at + 2]
    os.environ[ASKED] = json.dumps([str(Path(trace).resolve()), *options])
    config = Config()
    config.max_iterations = calls
    config.diff_based_evolution = False
    config.random_seed = 1
    config.llm.models = [LLMModelConfig(name="stub", init_client=stub)]
    config.llm.evaluator_models = [LLMModelConfig(name="stub", init_client=stub)]
    config.evaluator.parallel_evaluations = 1
    config.evaluator.cascade_evaluation = False
    config.evaluator.timeout = 120
    config.database.num_islands = 1
    with tempfile.NamedTemporaryFile() as log:
        os.environ[LOG] = log.name
        result = run_evolution(program(SEED), str(Path(__file__).resolve()), config=config, iterations=calls)
        scores = [float(line.split(" ", 1)[0]) for line in Path(log.name).read_text().splitlines()]
    print(f"{len(scores)} evaluations")
    print(f"score {scores[0]:.4f} -> {result.best_score:.4f} (1 is as good as the profile in force)")
    print(f"best: {json.dumps(policy_of(result.best_code))}")
    if len(scores) < 2:
        sys.exit("nothing that was proposed has been evaluated")


if __name__ == "__main__":
    main()
