import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutant, mutantAt } from "./mutant.ts";

interface Named {
  readonly name: string;
  readonly file: string;
  /** Code that is in the file once. */
  readonly code: string;
  readonly instead: string;
}

/** Changes that would break a promise of the router: each must be killed, whatever the sample. */
const NAMED: readonly Named[] = [
  {
    name: "scores beyond [0, 1] are not clamped",
    file: "src/core/profile/profile.ts",
    code: "if (score < 0 || score > 1) {",
    instead: "if (score < -Infinity) {",
  },
  {
    name: "an insertion is never withdrawn",
    file: "src/core/placement/placements.ts",
    code: "if (withdraw) this.#index.withdraw(pending.insertion);\n      else ",
    instead: "",
  },
  {
    name: "a request that died before its first token keeps its insertion",
    file: "src/core/placement/placements.ts",
    code: 'outcome !== "ok" && firstTokenAt === undefined',
    instead: "false",
  },
  {
    name: "a charge is never released",
    file: "src/core/placement/placements.ts",
    code: "this.#ledger.release(pending.request.id);\n    if (pending.prefill !== undefined)",
    instead: "if (pending.prefill !== undefined)",
  },
  {
    name: "a charge is released as often as its end is reported",
    file: "src/core/endpoint/ledger.ts",
    code: "this.#charges.take(requestId)",
    instead: "this.#charges.get(requestId)",
  },
  {
    name: "the first token does not release prefill",
    file: "src/core/endpoint/ledger.ts",
    code: "charge.account.prefillTokensQueued -= charge.amounts.newTokens;",
    instead: "",
  },
  {
    name: "the index evicts the newest",
    file: "src/core/prefix/holding-pool.ts",
    code: "return this.#oldest[slot]!;",
    instead: "return this.#newest[slot]!;",
  },
  {
    name: "a retry may go where the request was tried",
    file: "src/core/endpoint/endpoint-state.ts",
    code: "if (tried.includes(this.id)) return INELIGIBLE.tried;",
    instead: "",
  },
  {
    name: "a breaker never opens",
    file: "src/core/endpoint/breaker.ts",
    code: "this.#openUntil = at + pauseMicros;",
    instead: "this.#tripped = false;",
  },
  {
    name: "ties go to the highest id",
    file: "src/core/picker/max-score.ts",
    code: 'case "lowest-id":\n            return tied[0]!;',
    instead: 'case "lowest-id":\n            return tied.at(-1)!;',
  },
  {
    name: "a scrape of any age is fresh",
    file: "src/core/endpoint/endpoint-state.ts",
    code: "this.loadAgeMicros <= staleAfterMicros",
    instead: "true",
  },
];

/** Throws where the code that one of them changes is not in its file exactly once. */
export function namedMutants(root: string): { readonly name: string; readonly mutant: Mutant }[] {
  return NAMED.map(({ name, file, code, instead }) => {
    const text = readFileSync(join(root, file), "utf8");
    const start = text.indexOf(code);
    if (start < 0 || text.includes(code, start + 1)) {
      throw new Error(`mutant "${name}": expected once in ${file}: ${code}`);
    }
    return { name, mutant: mutantAt(file, text, start, start + code.length, instead) };
  });
}
