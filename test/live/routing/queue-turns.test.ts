import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision, Placed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { QueueTurns } from "#live/routing/request-router.ts";
import type { Intake, IntakeListener } from "#live/base/intake.ts";

/** An intake whose router lets requests go on by a list of answers; whoever listens is notified of each input first. */
class FakeIntake {
  readonly released: string[] = [];
  listener: IntakeListener | undefined;
  /** Whose turn it is. */
  turn: string | undefined;
  readonly router = { admission: { due: () => this.turn, nextAt: Infinity } };
  readonly #answers: Decision[];

  constructor(answers: readonly Partial<Decision>[]) {
    this.#answers = answers as Decision[];
  }

  listen(listener: IntakeListener): void {
    this.listener = listener;
  }

  accept(input: Input & { readonly requestId: string }): Decision {
    this.released.push(input.requestId);
    const decision = this.#answers.shift()!;
    this.turn = undefined;
    this.happens(input, decision);
    return decision;
  }

  happens(input: Input, decision?: Decision): void {
    this.listener!.accepted(input, decision, 0);
  }
}

const turnsOf = (intake: FakeIntake) => new QueueTurns(intake as unknown as Intake, () => 5);
const settled = () => new Promise((resolve) => void setImmediate(resolve));

test("a request that was to go on and could not waits for the next input, and then goes on once", async () => {
  const intake = new FakeIntake([{ kind: "queued" }, { kind: "routed", endpoint: "a" }]);
  const turns = turnsOf(intake);
  const taken: Placed[] = [];
  intake.turn = "r";
  turns.wait("r", (decision) => void taken.push(decision));
  await settled();
  assert.deepEqual([intake.released, taken, turns.size], [["r"], [], 1]);
  intake.turn = "r";
  intake.happens({ kind: "first-token", at: 6, requestId: "other" });
  await settled();
  assert.deepEqual([intake.released.length, taken.map(({ kind }) => kind), turns.size], [2, ["routed"], 0]);
});

test("a request that ends while it waits is forgotten, and no other one", async () => {
  const intake = new FakeIntake([]);
  const turns = turnsOf(intake);
  turns.wait("r", () => assert.fail("it has ended"));
  turns.wait("s", () => assert.fail("it is not its turn"));
  intake.happens({ kind: "progress", at: 6, requestId: "s", outputTokens: 1 });
  intake.happens({ kind: "request-finished", at: 6, requestId: "r", outcome: "aborted" } as Input);
  assert.equal(turns.size, 1);
  await settled();
  assert.deepEqual(intake.released, []);
});
