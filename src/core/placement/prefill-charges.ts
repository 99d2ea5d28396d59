import type { Micros } from "../base/units.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import type { Fault } from "../endpoint/fault.ts";
import { newTokens } from "../endpoint/gauge.ts";
import { Ledger } from "../endpoint/ledger.ts";
import type { Outcome } from "../endpoint/outcome.ts";
import type { Pending } from "../pending.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";

/** Who computes the prompt, and whether the request goes there before it goes to who answers. */
export interface PrefillPlace {
  readonly state: EndpointState;
  readonly isFirst: boolean;
}

/** What requests are charged at endpoints that compute their prompts for others, and which blocks are expected there. */
export class PrefillCharges {
  readonly #ledger = new Ledger();
  readonly #index: PrefixIndex;

  constructor(index: PrefixIndex) {
    this.#index = index;
  }

  get open(): number {
    return this.#ledger.open;
  }

  place(at: Micros, pending: Pending, { state, isFirst }: PrefillPlace): void {
    const { id, promptTokens, blocks, promptTokensExact } = pending.request;
    this.#ledger.charge(id, state, { sequences: 1, promptTokens, newTokens: newTokens(state, promptTokens) });
    const insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    pending.prefill = { state, insertion, sentAt: at, isFirst };
    state.breaker.sent(at);
  }

  /** The prompt is computed; false where no endpoint was to do so, or it is known already. */
  finished(at: Micros, pending: Pending): boolean {
    const { prefill } = pending;
    if (prefill === undefined) return false;
    const { state, sentAt } = prefill;
    state.firstToken(at, at - sentAt);
    state.breaker.succeeded(sentAt);
    this.release(at, pending, false);
    return true;
  }

  /** The endpoint failed; its charge is still to be released. */
  failed(at: Micros, { prefill }: Pending, fault: Fault): void {
    prefill?.state.attemptFailed(at, fault, prefill.sentAt);
  }

  /** The request ended while its prompt was computed; its charge is still to be released. */
  ended(at: Micros, { prefill }: Pending, outcome: Outcome): void {
    prefill?.state.requestEnded(at, outcome, {
      sentAt: prefill.sentAt,
      firstTokenAt: undefined,
      tpotMicros: undefined,
    });
  }

  /** Takes back what is left of the phase, if anything is. */
  release(at: Micros, pending: Pending, withdraw: boolean): void {
    const { prefill } = pending;
    if (prefill === undefined) return;
    pending.prefill = undefined;
    this.#ledger.release(pending.request.id);
    if (prefill.insertion === undefined) return;
    if (withdraw) this.#index.withdraw(prefill.insertion);
    else this.#index.computed?.(prefill.insertion, at);
  }
}
