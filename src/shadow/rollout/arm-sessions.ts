import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { figuresOf } from "../figure/figures.ts";
import { LastRun } from "../recorded/last-run.ts";

interface Session {
  /** Undefined once its requests were in several arms, or in none: how long it took is then nobody's. */
  arm: string | undefined;
  readonly begin: Micros;
  end: Micros;
  requests: number;
  /** Under way, or without a whole answer. */
  unanswered: number;
}

/**
 * Session completion times by arm in a recorded rollout: of each session that its client named, all of whose requests an arm
 * routed and that got whole answers, from its first request to its last answer, what its client did meanwhile included. The
 * last run of a trace that has a request; sessions of one request are none. Undefined for an arm without any.
 */
export async function armSessions(
  items: AsyncIterable<TraceItem>,
  rollout: string,
): Promise<ReadonlyMap<string, Distribution>> {
  const runs = new LastRun<{ readonly sessions: Map<string, Session>; readonly open: Map<string, Session> }>();
  for await (const item of items) {
    if (item.kind === "run") runs.begin({ sessions: new Map(), open: new Map() });
    else runs.take(item);
    const { now } = runs;
    if (item.kind !== "record" || now === undefined) continue;
    const { sessions, open } = now;
    const { input, decision } = item;
    if (input.kind === "request-arrived" && input.request.session !== "") {
      const { at, request } = input;
      const arm = decision?.rollout?.name === rollout ? decision.rollout.arm : undefined;
      const known = sessions.get(request.session);
      const session = known ?? { arm, begin: at, end: at, requests: 0, unanswered: 0 };
      if (known === undefined) sessions.set(request.session, session);
      if (session.arm !== arm) session.arm = undefined;
      session.requests++;
      session.unanswered++;
      open.set(request.id, session);
    } else if (input.kind === "request-finished") {
      const session = open.get(input.requestId);
      if (session === undefined) continue;
      open.delete(input.requestId);
      if (input.outcome === "ok") session.unanswered--;
      session.end = input.at;
    }
  }
  return byArm([...(runs.chosen?.sessions.values() ?? [])]);
}

function byArm(sessions: readonly Session[]): ReadonlyMap<string, Distribution> {
  const times = new Map<string, number[]>();
  for (const { arm, begin, end, requests, unanswered } of sessions) {
    if (arm === undefined || requests < 2 || unanswered > 0) continue;
    const of = times.get(arm) ?? [];
    of.push(end - begin);
    times.set(arm, of);
  }
  return new Map(
    [...times].map(([arm, of]) => {
      const figures = figuresOf(Float64Array.from(of));
      assert(figures !== undefined, "an arm that is there has a session");
      return [arm, figures];
    }),
  );
}
