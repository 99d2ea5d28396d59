import type { Fault } from "#core/endpoint/fault.ts";
import { faultOfStatus } from "../answer/faults.ts";
import { scanFinishReasons, findUsage } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";

/** What an endpoint returned that computed a prompt. */
export interface Prefilled {
  /** For the endpoint that answers (`kv_transfer_params`); undefined where there is nothing to hand on. */
  readonly transfer: unknown;
  /** Prompt tokens that it found in its cache. */
  readonly cachedTokens: number | undefined;
}

/** Its whole answer, of status 200 or from 500 on, or what it failed by. */
export function readPrefilled(status: number, body: Buffer): Prefilled | Fault {
  if (status >= 500) return faultOfStatus(status, body);
  const answer = fieldsOf(body);
  if (answer === undefined) return "garbage";
  if (scanFinishReasons(body, 0, body.length) === "abort") return "draining";
  return { transfer: answer["kv_transfer_params"] ?? undefined, cachedTokens: findUsage(body)?.cachedTokens };
}

function fieldsOf(body: Buffer): Fields | undefined {
  try {
    const answer: unknown = JSON.parse(body.toString());
    return isFields(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}
