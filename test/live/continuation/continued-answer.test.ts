import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delivery } from "#live/answer/answer.ts";
import { ContinuedAnswer } from "#live/continuation/continued-answer.ts";
import type { KeptStream } from "#live/continuation/kept-stream.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";

interface Carried {
  readonly written: string;
  readonly diverged: boolean;
}

/** A client has `had` of a stream that holds text back; another engine makes `again` from the last seam on, cut into pieces. */
function carried(had: string, again: readonly string[]): Carried {
  const kept = {
    plan: { dialect: "completions", stops: [], includesStop: false, showsIds: false, greedy: true },
    name: { id: "c", object: "o", created: 1, model: "m" },
    seam: { tokens: 0, behind: had },
    owed: undefined,
    text: undefined,
    lastText: "",
    continuedTokens: 0,
    idsAgain: 0,
    promptTokens: 1,
    goOn: () => {},
  };
  let written = "";
  let diverged = false;
  const delivery = {
    dialect: "completions",
    state: "passing",
    limits: DEFAULT_LIMITS,
    firstToken: () => {},
    progress: () => {},
    write: (piece: Buffer) => void (written += piece.toString()),
    diverged: () => {
      diverged = true;
      delivery.state = "over";
    },
    broke: () => {},
  };
  const answer = new ContinuedAnswer(delivery as unknown as Delivery, kept as unknown as KeptStream, 1);
  for (const [i, text] of again.entries()) {
    const choice = { index: 0, text, token_ids: [10 + i], finish_reason: null };
    answer.data(Buffer.from(`data: ${JSON.stringify({ id: "d", choices: [choice] })}\n\n`));
  }
  return { written: textOf(written), diverged };
}

/** Of the events that went to the client. */
function textOf(events: string): string {
  return events
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => (JSON.parse(event.slice("data: ".length)) as { choices: { text: string }[] }).choices[0]!.text)
    .join("");
}

test("law: what another engine makes again is left out where the client has it, and cut where it is another answer", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", " "), minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(text, fc.array(text, { minLength: 1, maxLength: 6 }), fc.boolean(), (had, pieces, isSame) => {
      const again = isSame ? [had, ...pieces] : pieces;
      const whole = again.join("");
      const { written, diverged } = carried(had, again);
      const both = Math.min(had.length, whole.length);
      const agrees = whole.slice(0, both) === had.slice(0, both);
      assert.equal(diverged, !agrees, `${JSON.stringify(had)}, then ${JSON.stringify(again)}`);
      // Never parts of two answers: what follows is what the second engine made behind the same text.
      if (agrees) assert.equal(whole.slice(had.length).startsWith(written), true);
      else assert.equal(written, "");
    }),
  );
});
