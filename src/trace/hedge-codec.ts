import { FAULTS } from "#core/endpoint/fault.ts";
import type { HedgeSettled, HedgeWinner } from "#core/hedge-input.ts";
import type { Micros } from "#core/units.ts";
import type { Fields } from "./fields.ts";

const WINNERS: readonly HedgeWinner[] = ["first", "second"];

/** What an input about a request that two endpoints had has behind its request. */
export function encodeSettled({ winner, fault }: HedgeSettled): string {
  return `,"winner":"${winner}"${fault === undefined ? "" : `,"fault":"${fault}"`}`;
}

export function decodeSettled(at: Micros, fields: Fields): HedgeSettled {
  return {
    kind: "hedge-settled",
    at,
    requestId: fields.string("requestId"),
    winner: fields.oneOf("winner", WINNERS),
    ...(fields.has("fault") && { fault: fields.oneOf("fault", FAULTS) }),
  };
}
