import { assert } from "../base/assert.ts";
import type { Micros } from "../base/units.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import type { Fault } from "../endpoint/fault.ts";
import { newTokens } from "../endpoint/gauge.ts";
import { Ledger } from "../endpoint/ledger.ts";
import type { Pending } from "../pending.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";
import type { Settled } from "../request/stage-step.ts";

/** What requests are charged at a second endpoint, and which blocks are expected there, while two have them. */
export class StandbyCharges {
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
    const added = newTokens(state, promptTokens);
    this.#ledger.charge(id, state, { sequences, promptTokens, newTokens: added });
    const insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    pending.standby = { state, insertion, sentAt: at, newTokens: added };
    state.placed++;
    pending.tried = [...pending.tried, state.id];
    state.breaker.sent(at);
  }

  /** False where no second endpoint has the request. */
  settled(at: Micros, pending: Pending, { winner, fault }: Settled): boolean {
    if (pending.standby === undefined || pending.state === undefined) return false;
    if (winner === "first") this.drop(at, pending, fault);
    else this.#takeOver(at, pending, fault);
    return true;
  }

  /** Takes back what the second endpoint was charged, if there is one. */
  drop(at: Micros, pending: Pending, fault?: Fault): void {
    const { standby } = pending;
    if (standby === undefined) return;
    pending.standby = undefined;
    this.#ledger.release(pending.request.id);
    leave(at, standby.state, standby.sentAt, fault);
    if (standby.insertion !== undefined) this.#index.withdraw(standby.insertion);
  }

  /** The second endpoint answers. Of the first one nothing came, so its blocks are not expected there. */
  #takeOver(at: Micros, pending: Pending, fault: Fault | undefined): void {
    const { standby, state, request } = pending;
    assert(standby !== undefined && state !== undefined, "both endpoints have the request");
    leave(at, state, pending.sentAt, fault);
    if (pending.insertion !== undefined) this.#index.withdraw(pending.insertion);
    const { id, sequences, promptTokens } = request;
    this.#answering.release(id);
    this.#ledger.release(id);
    this.#answering.charge(id, standby.state, { sequences, promptTokens, newTokens: standby.newTokens });
    pending.state = standby.state;
    pending.insertion = standby.insertion;
    pending.sentAt = standby.sentAt;
    pending.standby = undefined;
    pending.attempts++;
  }
}

function leave(at: Micros, state: EndpointState, sentAt: Micros, fault: Fault | undefined): void {
  if (fault === undefined) state.breaker.undecided(sentAt);
  else state.attemptFailed(at, fault, sentAt);
}
