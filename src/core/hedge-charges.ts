import { assert } from "./base/assert.ts";
import type { Fault } from "./endpoint/fault.ts";
import { Ledger } from "./endpoint/ledger.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import type { HedgeSettled } from "./request/hedge-input.ts";
import type { Pending } from "./pending.ts";
import type { PrefixIndex } from "./prefix/prefix-index.ts";
import type { Micros } from "./base/units.ts";

/** What requests are charged at a second endpoint, and which blocks are expected there, while two have them. */
export class HedgeCharges {
  readonly #ledger = new Ledger();
  readonly #index: PrefixIndex;
  /** Of the endpoints that answer. */
  readonly #answering: Ledger;

  constructor(index: PrefixIndex, answering: Ledger) {
    this.#index = index;
    this.#answering = answering;
  }

  get open(): number {
    return this.#ledger.open;
  }

  place(at: Micros, pending: Pending, state: EndpointState): void {
    const { id, sequences, promptTokens, blocks, promptTokensExact } = pending.request;
    const newTokens = Math.max(1, promptTokens - state.hitTokens);
    this.#ledger.charge(id, state, { sequences, promptTokens, newTokens });
    const insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    pending.hedge = { state, insertion, sentAt: at, newTokens };
    pending.tried.push(state.id);
    state.breaker.sent(at);
  }

  /** False where no second endpoint has the request. */
  settled(pending: Pending, { at, winner, fault }: HedgeSettled): boolean {
    if (pending.hedge === undefined || pending.state === undefined) return false;
    if (winner === "first") this.drop(at, pending, fault);
    else this.#takeOver(at, pending, fault);
    return true;
  }

  /** Takes back what the second endpoint was charged, if there is one. */
  drop(at: Micros, pending: Pending, fault?: Fault): void {
    const { hedge } = pending;
    if (hedge === undefined) return;
    pending.hedge = undefined;
    this.#ledger.release(pending.request.id);
    leave(at, hedge.state, hedge.sentAt, fault);
    if (hedge.insertion !== undefined) this.#index.withdraw(hedge.insertion);
  }

  /** The second endpoint answers. Of the first one nothing came, so its blocks are not expected there. */
  #takeOver(at: Micros, pending: Pending, fault: Fault | undefined): void {
    const { hedge, state, request } = pending;
    assert(hedge !== undefined && state !== undefined, "both endpoints have the request");
    leave(at, state, pending.sentAt, fault);
    if (pending.insertion !== undefined) this.#index.withdraw(pending.insertion);
    const { id, sequences, promptTokens } = request;
    this.#answering.release(id);
    this.#ledger.release(id);
    this.#answering.charge(id, hedge.state, { sequences, promptTokens, newTokens: hedge.newTokens });
    pending.state = hedge.state;
    pending.insertion = hedge.insertion;
    pending.sentAt = hedge.sentAt;
    pending.hedge = undefined;
    pending.attempts++;
  }
}

function leave(at: Micros, state: EndpointState, sentAt: Micros, fault: Fault | undefined): void {
  if (fault === undefined) state.breaker.undecided(sentAt);
  else state.attemptFailed(at, fault, sentAt);
}
