import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Micros } from "#core/base/units.ts";

/**
 * Something that happens to an engine behind an endpoint. The router gets to know what it would live: from requests that
 * fail, from probes, from silence.
 * - engine-killed: the process is gone, with its requests and its cache; connections break and no new one is accepted
 * - engine-vanished: its machine is gone; nothing is accepted, and open connections stay silent
 * - engine-hung: it stands still and accepts connections; engine-continued: it goes on where it stood
 * - engine-asleep: it is put to sleep, what it has is kept (vLLM's mode=keep) and what comes waits; its page shows that, and
 *   its cache is given up where it had no request; engine-awake: it goes on
 * - engine-draining: it ends what it has and turns new requests down as it leaves
 * - engine-refusing: it turns new requests down as overloaded
 * - engine-started: it serves; after engine-killed and engine-vanished as a new process with an empty cache
 * - answers-cut: all its connections break; the engine itself goes on
 */
export interface EngineEvent {
  readonly kind:
    | "engine-killed"
    | "engine-vanished"
    | "engine-hung"
    | "engine-continued"
    | "engine-asleep"
    | "engine-awake"
    | "engine-draining"
    | "engine-refusing"
    | "engine-started"
    | "answers-cut";
  readonly at: Micros;
  readonly endpoint: EndpointId;
  /** Of engine-asleep: it is only paused, and its cache stays. */
  readonly keepsCache?: true;
}

/** How an engine stands. */
export type EngineCondition = "serving" | "draining" | "refusing" | "hung" | "asleep" | "vanished" | "dead";
