import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import type { Routed } from "#core/input/decision.ts";
import { type BrokenPart, Continuation } from "#core/path/continuation/continuation.ts";
import type { RequestContinued } from "#core/request/continued-input.ts";
import { REROUTED } from "#core/path/path-event.ts";
import type { NextPlace, PathRouter } from "#core/path/path-router.ts";
import type { LeavingAttempt } from "#core/path/retry-policy.ts";

test("an answer goes on as often as the router lets it, and only such times count and are paid back", () => {
  const BREAKS = fc.array(
    fc.record({ fits: fc.boolean(), granted: fc.boolean(), outputTokens: fc.nat(99), token: fc.boolean() }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(BREAKS, (breaks) => {
      let [granted, broken, refunds, denials]: [boolean, BrokenPart | undefined, number, number] = [
        false,
        undefined,
        0,
        0,
      ];
      const asked: RequestContinued[] = [];
      const [timesAsked, went]: [number[], string[]] = [[], []];
      const decision = { kind: "routed", endpoint: "b" } as Routed;
      const router = {
        now: () => 7,
        sharedOf: () => ({ timesMax: 99 }),
        denial: (requestId: string, { times }: Pick<LeavingAttempt, "times">) => {
          assert.equal(requestId, "r");
          timesAsked.push(times);
        },
        afterBreak: (answer: RequestContinued): NextPlace => {
          asked.push(answer);
          return granted ? { kind: "retry", decision } : { kind: "give-up", why: "budget" };
        },
        refund: () => refunds++,
      } as unknown as PathRouter;
      const stage = new Continuation({
        router,
        routeId: "r",
        broken: () => broken,
        goOn: () => REROUTED,
        wentOn: (fault) => went.push(fault),
        denied: () => denials++,
      });
      let [times, tokens] = [0, 0];
      for (const one of breaks) {
        granted = one.granted;
        broken = one.fits ? { outputTokens: one.outputTokens } : undefined;
        const before = asked.length;
        const event = stage.goesOn("cut");
        assert.equal(asked.length - before, Number(one.fits), "the router is asked about what can go on, once");
        if (one.fits) assert.deepEqual([timesAsked.at(-1), asked.at(-1)!.requestId], [times, "r"]);
        const goesOn = one.fits && one.granted;
        assert.equal(event === REROUTED, goesOn);
        if (!goesOn) assert.deepEqual(event, { kind: "denied", why: one.fits ? "budget" : "no-endpoint" });
        times += Number(goesOn);
        if (one.token) {
          stage.firstToken();
          tokens += Number(times > 0);
        }
        assert.deepEqual([stage.times, refunds], [times, tokens]);
      }
      assert.equal(denials, breaks.filter(({ fits, granted: is }) => fits && !is).length);
    }),
  );
});
