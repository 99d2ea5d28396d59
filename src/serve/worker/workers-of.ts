import type { Config } from "#config/schema.ts";
import type { Gateway } from "#live/gateway.ts";
import type { StateSources, TokenizerCounts } from "#live/metrics/metric-state.ts";
import type { DecidingParts } from "#live/worker/worker-desk.ts";
import type { LiveWorkloads } from "../live-workloads.ts";
import type { Tokenizers } from "../tokenizers.ts";
import { WorkerPool, type WorkerPoolOptions } from "./worker-pool.ts";
import type { WorkerPolicy } from "./worker-message.ts";

/** The workers of a gateway; where the configuration has one thread do all, nothing changes. */
export interface Workers {
  /** Puts workers before a gateway that decides for them and serves what is no inference. */
  before(own: Gateway, options: WorkersOptions): Gateway;
  readonly metrics: Pick<StateSources, "workers">;
  /** Has all of them report what they counted. */
  readonly recount: () => Promise<void>;
  /** What the tokenizers of all threads counted. */
  readonly counts: () => readonly TokenizerCounts[];
}

export interface WorkersOptions
  extends Omit<WorkerPoolOptions, "policy" | "parts">, Omit<DecidingParts, "seat" | "sendsOwnHeaders"> {
  readonly policy: {
    readonly keeper: { readonly inForce: WorkerPolicy };
    readonly workloads: Pick<LiveWorkloads, "rewritten">;
  };
}

/** No worker is started before there is a gateway for it to stand before. */
export function workersOf({ listen }: Config, own: Pick<Tokenizers, "counts">): Workers {
  let pool: WorkerPool | undefined;
  const status = () => pool?.status() ?? { workers: [], restarts: 0, requestsLost: 0 };
  return {
    before: (gateway, options) => {
      if (listen.workers === 1) return gateway;
      const { seat, sendsOwnHeaders } = gateway.parts;
      pool = new WorkerPool({
        ...options,
        policy: options.policy.keeper.inForce,
        parts: { ...options, seat, sendsOwnHeaders },
      });
      follow(pool, options);
      return sharing(gateway, pool);
    },
    metrics: listen.workers === 1 ? {} : { workers: status },
    recount: async () => pool?.recount(),
    counts: () => pool?.tokenizers(own.counts()) ?? own.counts(),
  };
}

function follow(pool: WorkerPool, { tap, policy }: WorkersOptions): void {
  policy.workloads.rewritten = (rewrites) => pool.changeRewrites(rewrites);
  tap.listen({
    accepted: (input) => {
      if (input.kind === "block-size-changed") pool.resizeBlocks(input.blockTokens);
      // What is in force is known when the change is through.
      else if (input.kind === "policy-changed") queueMicrotask(() => pool.changePolicy(policy.keeper.inForce));
    },
  });
}

/** The gateway of all of them: one address, one set of counters, one end. */
function sharing(own: Gateway, pool: WorkerPool): Gateway {
  return {
    ...own,
    get counters() {
      return pool.counters(own.counters);
    },
    get limits() {
      return own.limits;
    },
    inFlight: () => own.inFlight() + pool.inFlight(),
    listen: async (host, port) => {
      await own.listenInner(pool.inner);
      return pool.listen(host, port);
    },
    close: async (graceMillis, noticeMillis = 0) => {
      const cut = await pool.drain(graceMillis, noticeMillis);
      const { requestsCut } = await own.close(0);
      await pool.close();
      return { requestsCut: cut + requestsCut };
    },
  };
}
