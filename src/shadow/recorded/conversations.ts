import type { RouteRequest } from "#core/request/request.ts";
import { SessionInference } from "#core/session/session-inference.ts";
import type { Micros } from "#core/base/units.ts";

/**
 * Which requests wait for others. `inferred`: turns of conversations that clients named, and of those whose prompts
 * continue one another, as people's and agents' do. `named`: the former alone; whatever has no name comes when it came,
 * as from a load generator that waits for nothing.
 */
export const CONVERSATIONS = ["inferred", "named"] as const;
export type Conversations = (typeof CONVERSATIONS)[number];

interface Turn {
  readonly route: RouteRequest;
  readonly at: Micros;
  readonly endAt: Micros;
}

/**
 * Conversations of requests by arrival, in order of their first turn, their turns in order. A turn that came before its
 * predecessor's end cannot wait for it: it starts a conversation of its own, at its recorded time.
 */
export function conversationsOf<T extends Turn>(ended: readonly T[], kind: Conversations): T[][] {
  const inferred = new SessionInference();
  const current = new Map<string, T[]>();
  const conversations: T[][] = [];
  for (const one of ended) {
    const session = kind === "inferred" ? inferred.sessionOf(one.route) : one.route.session;
    const turns = session === "" ? undefined : current.get(session);
    const last = turns?.at(-1);
    if (turns !== undefined && last !== undefined && last.endAt <= one.at) {
      turns.push(one);
      continue;
    }
    const begun = [one];
    conversations.push(begun);
    if (turns === undefined) current.set(session, begun);
  }
  return conversations;
}
