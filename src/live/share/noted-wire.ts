import type { Noted } from "#core/noted.ts";
import type { ByteReader } from "./byte-reader.ts";
import type { ByteWriter } from "./byte-writer.ts";
import { BOUND, COLD, FRESH, LOAD, TURN, WARM } from "./wire.ts";

/** Of requests or tokens at one endpoint; engines report what they like. */
const COUNT_MAX = 2 ** 40;

/** What plugins noted of a decision: a byte, and what its bits say is there. */
export function encodeNoted(to: ByteWriter, { boundTo, warm, turn, load }: Noted): void {
  const held = warm === undefined ? 0 : warm ? WARM : COLD;
  const facts = (boundTo === undefined ? 0 : BOUND) + held + (turn === true ? TURN : 0);
  to.byte(facts + (load === undefined ? 0 : LOAD) + (load?.fresh === true ? FRESH : 0));
  if (boundTo !== undefined) to.text(boundTo);
  if (load === undefined) return;
  for (const count of [load.effectiveLoad, load.requestsInFlight, load.prefillTokensQueued]) {
    to.whole(Math.min(COUNT_MAX, Math.max(0, Math.round(count))));
  }
}

export function decodeNoted(from: ByteReader): Noted {
  const bits = from.byte();
  const boundTo = (bits & BOUND) === 0 ? undefined : from.text();
  const hasLoad = (bits & LOAD) !== 0;
  return {
    ...(boundTo !== undefined && { boundTo }),
    ...((bits & (WARM | COLD)) !== 0 && { warm: (bits & WARM) !== 0 }),
    ...((bits & TURN) !== 0 && { turn: true }),
    ...(hasLoad && {
      load: {
        effectiveLoad: from.whole(),
        requestsInFlight: from.whole(),
        prefillTokensQueued: from.whole(),
        fresh: (bits & FRESH) !== 0,
      },
    }),
  };
}
