import { assert } from "../base/assert.ts";
import { RequestTable } from "../base/request-table.ts";

/** What one endpoint owes: our own requests in flight there. Every counter is 0 when nothing is in flight. */
export interface Account {
  /** Engine requests in flight. */
  requestsInFlight: number;
  /** Prompt tokens expected to be computed, of requests whose first token has not been seen. */
  prefillTokensQueued: number;
  /** Prompt and output tokens of requests past their first token. */
  decodeTokens: number;
  /** Prompt tokens of all requests in flight. */
  promptTokensInFlight: number;
}

export interface ChargeAmounts {
  readonly sequences: number;
  readonly promptTokens: number;
  /** Prompt tokens less expected hits, at least 1. */
  readonly newTokens: number;
}

/** One request's share of an account, held from the decision to the end of the attempt. */
class Charge {
  readonly account: Account;
  readonly amounts: ChargeAmounts;
  pastFirstToken = false;
  outputTokens = 0;

  constructor(account: Account, amounts: ChargeAmounts) {
    this.account = account;
    this.amounts = amounts;
  }
}

/**
 * Counts what this router dispatched and has not seen finish (the shared per-instance state of B3's policies). Charged
 * at the decision; prefill is released at the first token; everything is released exactly once, on every path.
 */
export class Ledger {
  readonly #charges = new RequestTable<Charge>();

  get open(): number {
    return this.#charges.size;
  }

  charge(requestId: string, account: Account, amounts: ChargeAmounts): void {
    assert(this.#charges.add(requestId, new Charge(account, amounts)), "a request is charged once");
    account.requestsInFlight += amounts.sequences;
    account.prefillTokensQueued += amounts.newTokens;
    account.promptTokensInFlight += amounts.promptTokens;
  }

  firstToken(requestId: string): void {
    const charge = this.#charges.get(requestId);
    if (charge === undefined || charge.pastFirstToken) return;
    charge.pastFirstToken = true;
    charge.outputTokens = 1;
    charge.account.prefillTokensQueued -= charge.amounts.newTokens;
    charge.account.decodeTokens += charge.amounts.promptTokens + 1;
  }

  /** `outputTokens` is the count so far; a count that goes back is ignored. */
  progress(requestId: string, outputTokens: number): void {
    const charge = this.#charges.get(requestId);
    if (charge === undefined || !charge.pastFirstToken || outputTokens <= charge.outputTokens) return;
    charge.account.decodeTokens += outputTokens - charge.outputTokens;
    charge.outputTokens = outputTokens;
  }

  /** Returns false when nothing was charged, as for a request that was refused. */
  release(requestId: string): boolean {
    const charge = this.#charges.take(requestId);
    if (charge === undefined) return false;
    const { account, amounts } = charge;
    account.requestsInFlight -= amounts.sequences;
    account.promptTokensInFlight -= amounts.promptTokens;
    if (charge.pastFirstToken) account.decodeTokens -= amounts.promptTokens + charge.outputTokens;
    else account.prefillTokensQueued -= amounts.newTokens;
    assert(account.requestsInFlight >= 0, "requests in flight are never negative");
    assert(account.prefillTokensQueued >= 0, "queued prefill tokens are never negative");
    assert(account.decodeTokens >= 0, "decode tokens are never negative");
    assert(account.promptTokensInFlight >= 0, "prompt tokens in flight are never negative");
    return true;
  }
}
