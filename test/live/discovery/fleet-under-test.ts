import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { PrefixIndex } from "#core/prefix/prefix-index.ts";
import { loadProfile } from "#config/profile-file.ts";
import { Router } from "#core/router.ts";
import { FleetKeeper, type FleetKeeperOptions } from "#live/keeper/fleet-keeper.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Intake } from "#live/base/intake.ts";

const DEFAULT_PROFILE = loadProfile("gnomon").spec;

/** A keeper over a real router, with every input and event noted down. Times are short. */
export class FleetUnderTest {
  readonly inputs: Input[] = [];
  readonly events: KeeperEvent[] = [];
  readonly directory = new EndpointDirectory();
  readonly router = emptyRouter();
  readonly intake = new Intake(this.router);
  readonly keeper: FleetKeeper;

  constructor(options: Partial<FleetKeeperOptions> = {}) {
    this.intake.listen({ accepted: (input) => this.inputs.push(input) });
    const { times, ...rest } = options;
    this.keeper = new FleetKeeper({
      intake: this.intake,
      directory: this.directory,
      report: (event) => this.events.push(event),
      times: { scrapeIntervalMillis: 10, retryMillis: 5, retryMillisMax: 20, lostAfterMillis: 60, ...times },
      ...rest,
    });
  }

  /** Kinds of inputs about an endpoint, in order, loads left out. */
  story(id: EndpointId): string[] {
    return this.inputs.filter((input) => idOf(input) === id && input.kind !== "load-observed").map(({ kind }) => kind);
  }

  loads(id: EndpointId) {
    return this.inputs.flatMap((input) =>
      input.kind === "load-observed" && input.endpoint === id ? [input.load] : [],
    );
  }

  row(id: EndpointId) {
    return this.router.endpointRows(this.inputs.at(-1)?.at ?? 0).find((row) => row.id === id);
  }
}

/** Waits for something to become true; fails loudly after a bound that only a broken run reaches. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function emptyRouter(): Router {
  return new Router({
    seed: 1,
    profiles: { default: DEFAULT_PROFILE },
    defaultProfile: "default",
    index: new SlotsOnly(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
}

/** An index that holds nothing but remembers rooms and clearings. */
class SlotsOnly implements PrefixIndex {
  readonly #used = new Set<number>();

  join(): number {
    let slot = 0;
    while (this.#used.has(slot)) slot++;
    this.#used.add(slot);
    return slot;
  }

  leave(slot: number): void {
    this.#used.delete(slot);
  }

  resize(): void {}

  clear(): void {}

  match(_: unknown, hits: Int32Array): void {
    hits.fill(0);
  }

  insert(slot: number) {
    return { slot };
  }

  withdraw(): void {}

  size(): number {
    return 0;
  }
}

function idOf(input: Input): EndpointId | undefined {
  if (!("endpoint" in input)) return undefined;
  return typeof input.endpoint === "string" ? input.endpoint : input.endpoint.id;
}
