import assert from "node:assert/strict";
import { test } from "node:test";
import { type Account, Ledger } from "#core/endpoint/ledger.ts";
import { randomFor } from "#core/base/random.ts";
import { drawnSeeds } from "../../drawn-seeds.ts";

const account = (): Account => ({
  requestsInFlight: 0,
  prefillTokensQueued: 0,
  decodeTokens: 0,
  promptTokensInFlight: 0,
});

test("prefill is owed until the first token, the whole context after it, nothing after the end", () => {
  const ledger = new Ledger();
  const a = account();
  ledger.charge("r", a, { sequences: 2, promptTokens: 100, newTokens: 36 });
  assert.deepEqual(a, { requestsInFlight: 2, prefillTokensQueued: 36, decodeTokens: 0, promptTokensInFlight: 100 });
  ledger.firstToken("r");
  ledger.firstToken("r");
  assert.deepEqual(a, { requestsInFlight: 2, prefillTokensQueued: 0, decodeTokens: 101, promptTokensInFlight: 100 });
  ledger.progress("r", 30);
  ledger.progress("r", 20);
  assert.equal(a.decodeTokens, 130, "a count that goes back is ignored");
  assert.equal(ledger.release("r"), true);
  assert.equal(ledger.release("r"), false);
  assert.deepEqual(a, account());
});

test("after any sequence of events the accounts are the sum of the open charges, and all end at zero", () => {
  for (const seed of drawnSeeds(40, 0)) {
    const random = randomFor(seed, 2);
    const ledger = new Ledger();
    const accounts = [account(), account(), account()];
    const open: string[] = [];
    for (let i = 0; i < 300; i++) {
      const id = open[random.below(Math.max(1, open.length))];
      const roll = random.below(4);
      if (roll === 0 || id === undefined) {
        open.push(`r${i}`);
        const promptTokens = 1 + random.below(5000);
        ledger.charge(`r${i}`, accounts[random.below(3)]!, {
          sequences: 1 + random.below(3),
          promptTokens,
          newTokens: 1 + random.below(promptTokens),
        });
      } else if (roll === 1) ledger.firstToken(id);
      else if (roll === 2) ledger.progress(id, random.below(500));
      else ledger.release(open.splice(open.indexOf(id), 1)[0]!);
      assert.equal(ledger.open, open.length);
      for (const owed of accounts)
        assert.ok(
          Object.values(owed).every((value) => value >= 0),
          `seed ${seed}`,
        );
    }
    for (const id of open) ledger.release(id);
    assert.deepEqual(accounts, [account(), account(), account()], `seed ${seed}`);
  }
});

test("a request is charged once", () => {
  const ledger = new Ledger();
  ledger.charge("r", account(), { sequences: 1, promptTokens: 1, newTokens: 1 });
  assert.throws(() => ledger.charge("r", account(), { sequences: 1, promptTokens: 1, newTokens: 1 }), /charged once/);
});
