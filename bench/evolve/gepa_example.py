"""
Evolves a routing policy with the gepa package from PyPI, without any language model: a stub proposes the next policy by the
numbers alone, as a model would by the reflection that gnomon writes beside each score.

    python3 -m venv /tmp/evolve && /tmp/evolve/bin/pip install gepa
    /tmp/evolve/bin/python bench/evolve/gepa_example.py <trace> [--calls 12] [further options of gnomon gepa-evaluate]

Each call evaluates one policy on one part of the trace (its first 400, 800 and 1200 requests), in a process of its own whose
evaluation is isolated and ends in time. A candidate is a text of dotted parameters.
"""

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import gepa
from gepa.core.adapter import EvaluationBatch

ROOT = Path(__file__).resolve().parents[2]
SEED = {
    "policy": json.dumps(
        {
            "routing.cache_affinity_weight": 0.7,
            "routing.load_balance_weight": 0.2,
            "routing.queue_depth_weight": 0.1,
        }
    )
}
PARTS = [{"limit": 400}, {"limit": 800}, {"limit": 1200}]


class GnomonAdapter:
    """What gepa asks of a system that it evolves."""

    propose_new_texts = None

    def __init__(self, trace: str, options: Sequence[str]) -> None:
        self.trace = trace
        self.options = list(options)
        self.calls = 0

    def evaluate(self, batch, candidate, capture_traces=False):
        answers = [self._ask(part, candidate["policy"]) for part in batch]
        outputs = [answer["outputs"][0] for answer in answers]
        return EvaluationBatch(
            outputs=outputs,
            scores=[answer["scores"][0] for answer in answers],
            trajectories=[{"feedback": answer["feedback"][0]} for answer in answers] if capture_traces else None,
        )

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        rows = [
            {"Inputs": candidate["policy"], "Generated Outputs": output["sim_metrics"], "Feedback": one["feedback"]}
            for output, one in zip(eval_batch.outputs, eval_batch.trajectories, strict=True)
        ]
        return {name: rows for name in components_to_update}

    def _ask(self, part, policy: str):
        self.calls += 1
        command = [
            "node", "bin/gnomon.js", "gepa-evaluate", self.trace,
            "--limit", str(part["limit"]), "--timeout", "60", *self.options,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, input=policy, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def stub(seed: int):
    """Changes one weight, at random: stands where a model would read the feedback."""
    draws = random.Random(seed)

    def propose(candidate: dict[str, str], reflective_dataset: Mapping, components_to_update: list[str]):
        for rows in reflective_dataset.values():
            assert all("gains" in row["Feedback"] for row in rows), "every score comes with a reflection"
        weights = json.loads(candidate["policy"])
        name = draws.choice(sorted(weights))
        weights[name] = round(weights[name] * draws.choice([0.25, 0.5, 2, 4]), 3)
        return {name: json.dumps(weights) for name in components_to_update}

    return propose


def main() -> None:
    trace, *options = sys.argv[1:]
    calls = 12
    if "--calls" in options:
        at = options.index("--calls")
        calls = int(options[at + 1])
        del options[at : at + 2]
    adapter = GnomonAdapter(str(Path(trace).resolve()), options)
    result = gepa.optimize(
        seed_candidate=SEED,
        trainset=PARTS,
        valset=PARTS,
        adapter=adapter,
        custom_candidate_proposer=stub(1),
        reflection_minibatch_size=1,
        skip_perfect_score=False,
        max_metric_calls=calls,
        seed=1,
    )
    first, best = result.val_aggregate_scores[0], max(result.val_aggregate_scores)
    print(f"{adapter.calls} evaluations, {len(result.candidates)} policies kept")
    print(f"score {first:.4f} -> {best:.4f} (1 is as good as the profile in force)")
    print(f"best: {result.best_candidate['policy']}")


main()
