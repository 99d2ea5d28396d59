import type { TestContext } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { Intake } from "#live/base/intake.ts";
import { FleetShare, type FleetShareOptions, type ShareTimes } from "#live/share/fleet-share.ts";
import type { ShareEvent } from "#live/share/share-status.ts";
import type { ShareLink, ShareListener } from "#live/share/share-link.ts";
import { request } from "../../core/state.ts";

/** A stream in memory, which reports pass at once unless it is away. */
export class MemoryStream {
  readonly reports: Buffer[] = [];
  readonly #listeners = new Set<ShareListener>();
  #away = false;

  link(): ShareLink & { cut(): void; readonly renewed: readonly string[]; deafen(): void } {
    const renewed: string[] = [];
    let isDeaf = false;
    let own: ShareListener | undefined;
    let isCut = false;
    const isAway = () => this.#away;
    return {
      name: "memory",
      renewed,
      // As if it read elsewhere than it writes.
      deafen: () => {
        isDeaf = true;
      },
      renew: (why) => {
        renewed.push(why);
        own?.lost(why);
      },
      start: (given) => {
        const listener: ShareListener = {
          received: (report, isPast) => {
            if (!isDeaf) given.received(report, isPast);
          },
          caughtUp: () => given.caughtUp(),
          connected: () => given.connected(),
          lost: (why) => given.lost(why),
        };
        own = listener;
        for (const report of this.reports) listener.received(report, true);
        listener.caughtUp();
        this.#listeners.add(listener);
        listener.connected();
      },
      get takes() {
        return !isAway();
      },
      send: (report) => {
        if (isCut) return;
        if (this.#away) return own?.lost("it is away");
        this.pass(Buffer.from(report));
      },
      // As if its process had been killed.
      cut: () => {
        isCut = true;
      },
      stop: async () => {
        if (own !== undefined) this.#listeners.delete(own);
      },
    };
  }

  pass(report: Buffer): void {
    this.reports.push(report);
    for (const listener of this.#listeners) listener.received(report, false);
  }

  /** Nothing passes until it is back. */
  goAway(): void {
    this.#away = true;
    for (const listener of this.#listeners) listener.lost("it is away");
  }

  comeBack(): void {
    this.#away = false;
    for (const listener of this.#listeners) listener.connected();
  }
}

export interface Replica {
  readonly intake: Intake;
  readonly share: FleetShare;
  readonly events: ShareEvent[];
  /** Lets a request arrive; its endpoint, and the tokens found there. */
  arrive(id: string, more?: Parameters<typeof request>[0] extends infer R ? Partial<R> : never): string;
  hits(id: string): number;
  finish(id: string): void;
}

const TIMES: ShareTimes = { flushMillis: 1, aliveMillis: 20, leaseMillis: 1_000, snapshotMillis: 50 };
const SECRET_FINGERPRINT = 7;

export function newRouter(admission?: AdmissionSpec): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: loadProfile("gnomon").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
    admission,
  });
  for (const id of ["a", "b", "c"]) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 160_000, concurrencyMax: 64 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

/** A gateway's router and what shares it, without a gateway. */
export function replica(
  t: TestContext,
  link: ShareLink,
  name: string,
  {
    admission,
    ...more
  }: Partial<
    ShareTimes & Pick<FleetShareOptions, "fingerprint" | "epoch" | "limits"> & { readonly admission: AdmissionSpec }
  > = {},
): Replica {
  const intake = new Intake(newRouter(admission));
  const events: ShareEvent[] = [];
  const fixed = { intake, link, replica: name, epoch: 1, fingerprint: SECRET_FINGERPRINT };
  const share = new FleetShare({ ...TIMES, ...fixed, report: (event) => events.push(event), ...more });
  const hits = new Map<string, number>();
  const now = () => Math.round(performance.now() * 1000);
  t.after(() => share.stop());
  return {
    intake,
    share,
    events,
    arrive: (id, given = {}) => {
      const decision = intake.accept({ kind: "request-arrived", at: now(), request: request({ id, ...given }) });
      hits.set(id, decision.kind === "routed" ? decision.hitTokens : -1);
      return decision.kind === "routed" ? decision.endpoint : "";
    },
    hits: (id) => hits.get(id) ?? -1,
    finish: (id) => {
      const counts = { promptTokens: 20, cachedTokens: 0, outputTokens: 5 };
      intake.accept({ kind: "request-finished", at: now(), requestId: id, outcome: "ok", ...counts });
    },
  };
}

/** Waits until it holds; throws where it never does. */
export async function until(holds: () => boolean, what: string, millisMax = 60_000): Promise<void> {
  const end = performance.now() + millisMax;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
