import type { LiveSetting } from "#config/live-settings.ts";
import type { AnyPart, Changed, Changes } from "./part.ts";

type ValueOf<One> = One extends { readonly start: (needs: never) => infer Value } ? Awaited<Value> : never;
type NeedsOf<One> = One extends { readonly start: (needs: infer Needs) => unknown } ? Needs : never;

/** What each part is, by its name. */
type Values<Parts extends readonly AnyPart[]> = { readonly [One in Parts[number] as One["name"]]: ValueOf<One> };

/** Each part as it is where everything that it needs is there, and else the names of what does not fit. */
type Fitting<Parts extends readonly AnyPart[], Known> = {
  readonly [I in keyof Parts]: Known extends NeedsOf<Parts[I]>
    ? Parts[I]
    : { readonly needs: Misfits<NeedsOf<Parts[I]>, Known> };
};
type Misfits<Needs, Known> = {
  [Name in keyof Needs]: Name extends keyof Known ? (Known[Name] extends Needs[Name] ? never : Name) : Name;
}[keyof Needs];

/** A process put together, until it is stopped. */
export interface Running<Parts> {
  readonly parts: Parts;
  /** Drains, then stops every part, the last one to start first. */
  readonly stop: () => Promise<void>;
}

export interface StartOptions {
  /** Once aborted no further part begins. */
  readonly leaving?: AbortSignal;
  /** Notified of a part that did not stop, or not in time; what is behind it is stopped all the same. */
  readonly report?: (part: string, problem: string) => void;
  /** Longest wait for one part to stop. */
  readonly stopMillisMax?: number;
}

const STOP_MILLIS_MAX = 10_000;

/** Where each setting that may change has the part that takes it over. */
type Owners = ReadonlyMap<LiveSetting, AnyPart>;

/**
 * A table of parts. They begin in the order of what they need, else as listed; one that takes long holds up those alone
 * that need it and those listed behind these. Where one fails, those that started are stopped.
 */
export class Assembly<Given extends object, All extends object> {
  /** In the order in which they begin. */
  readonly parts: readonly AnyPart[];
  readonly #owners: Owners;

  /** Throws for a name that is there twice, an unknown need, a cycle, and a live setting without exactly one owner. */
  constructor(given: readonly (keyof Given & string)[], parts: readonly AnyPart[], settings: readonly LiveSetting[]) {
    this.parts = inOrder([...given, "changed"], parts);
    this.#owners = ownersOf(parts, settings);
  }

  /** Starts these parts and all that they need; every part when left out. Rejects with what the first to fail threw. */
  async start<Name extends keyof All & string>(
    given: Given,
    { leaving, ...options }: StartOptions = {},
    names?: readonly Name[],
  ): Promise<Running<Pick<All, Name>>> {
    const wanted = names === undefined ? undefined : this.#closureOf(names);
    const life = new Life(given, this.#owners, options);
    for (const part of this.parts) {
      if (leaving?.aborted === true || life.isFailed) break;
      if (wanted === undefined || wanted.has(part.name)) await life.begin(part);
    }
    await life.started();
    return { parts: life.values as unknown as Pick<All, Name>, stop: () => life.stop() };
  }

  #closureOf(names: readonly string[]): ReadonlySet<string> {
    const wanted = new Set(names);
    for (const { name, needs } of this.parts.toReversed())
      if (wanted.has(name)) for (const need of needs) wanted.add(need);
    return wanted;
  }
}

/** The table of a process that is started with `Given`; it does not compile where a part gets what it does not take. */
export function assembly<Given extends object>() {
  return <const Parts extends readonly AnyPart[]>(
    given: readonly (keyof Given & string)[],
    parts: Parts & Fitting<Parts, Values<Parts> & Given & Changes>,
    settings: readonly LiveSetting[],
  ): Assembly<Given, Values<Parts>> => new Assembly(given, parts, settings);
}

interface Begun {
  readonly part: AnyPart;
  /** What it needs, and nothing else. */
  readonly needs: never;
  /** Never rejects. */
  readonly over: Promise<void>;
}

/** One life of the parts. */
class Life {
  /** What was given, and each part that has started. */
  readonly values: Record<string, unknown>;
  readonly #owners: Owners;
  readonly #options: Required<Omit<StartOptions, "leaving">>;
  readonly #begun: Begun[] = [];
  /** Settled with what the first part to fail threw. */
  readonly #failure = Promise.withResolvers<{ readonly thrown: unknown }>();
  #isFailed = false;
  #stopping: Promise<void> | undefined;

  constructor(given: object, owners: Owners, options: Omit<StartOptions, "leaving">) {
    const changes: Changes = { changed: (settings, to) => this.#changed(settings, to) };
    this.values = { ...given, ...changes };
    this.#owners = owners;
    this.#options = { report: () => {}, stopMillisMax: STOP_MILLIS_MAX, ...options };
  }

  get isFailed(): boolean {
    return this.#isFailed;
  }

  /** Resolves once the part is begun, which is when all that it needs has started. */
  async begin(part: AnyPart): Promise<void> {
    const needed = this.#begun.filter((before) => part.needs.includes(before.part.name));
    await Promise.race([Promise.all(needed.map(({ over }) => over)), this.#failure.promise]);
    if (this.#isFailed) return;
    const needs = Object.fromEntries(part.needs.map((name) => [name, this.values[name]])) as never;
    this.#begun.push({ part, needs, over: this.#start(part, needs) });
  }

  /** Resolves when all that was begun has started; rejects, once the rest is stopped, with what the first to fail threw. */
  async started(): Promise<void> {
    const failure = await Promise.race([Promise.all(this.#begun.map(({ over }) => over)), this.#failure.promise]);
    if (!this.#isFailed || Array.isArray(failure)) return;
    await this.#bounded("parts that were starting", Promise.all(this.#begun.map(({ over }) => over)));
    await this.stop().catch(() => {});
    throw failure.thrown;
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #start(part: AnyPart, needs: never): Promise<void> {
    try {
      const value = await part.start(needs);
      if (this.#stopping === undefined) this.values[part.name] = value;
      else await part.stop?.(value as never, needs);
    } catch (thrown) {
      this.#isFailed = true;
      this.#failure.resolve({ thrown });
    }
  }

  async #stop(): Promise<void> {
    const running = this.#begun.filter(({ part }) => this.#isRunning(part));
    const problems: unknown[] = [];
    const ended = async ({ part, needs }: Begun, end: AnyPart["stop"]): Promise<void> => {
      try {
        await end?.(this.values[part.name] as never, needs);
      } catch (error) {
        problems.push(error);
        this.#options.report(part.name, error instanceof Error ? error.message : String(error));
      }
    };
    await Promise.all(running.map((begun) => ended(begun, begun.part.drain)));
    for (const begun of running.toReversed()) await this.#bounded(begun.part.name, ended(begun, begun.part.stop));
    if (problems.length > 0) throw problems[0];
  }

  async #bounded(name: string, over: Promise<unknown>): Promise<void> {
    const { stopMillisMax, report } = this.#options;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      report(name, `not over within ${stopMillisMax} ms`);
      resolve();
    }, stopMillisMax);
    await Promise.race([over, late]);
    clearTimeout(timer);
  }

  #changed(settings: readonly LiveSetting[], to: Changed): void {
    const owners = new Set(settings.map((setting) => this.#owners.get(setting)));
    for (const { part, needs } of this.#begun) {
      if (owners.has(part) && this.#isRunning(part)) part.change?.(this.values[part.name] as never, to, needs);
    }
  }

  #isRunning({ name }: AnyPart): boolean {
    return Object.hasOwn(this.values, name);
  }
}

/** What needs nothing that is listed behind it comes first. */
function inOrder(given: readonly string[], parts: readonly AnyPart[]): AnyPart[] {
  const known = new Map<string, AnyPart | undefined>(given.map((name) => [name, undefined]));
  for (const part of parts) {
    if (known.has(part.name)) throw new Error(`part ${part.name} is there twice`);
    known.set(part.name, part);
  }
  const ordered = new Set<AnyPart>();
  const visit = (part: AnyPart, path: readonly string[]): void => {
    if (ordered.has(part)) return;
    if (path.includes(part.name)) throw new Error(`parts need each other: ${[...path, part.name].join(" needs ")}`);
    for (const need of part.needs) {
      if (!known.has(need)) throw new Error(`part ${part.name} needs ${need}, which is no part`);
      const needed = known.get(need);
      if (needed !== undefined) visit(needed, [...path, part.name]);
    }
    ordered.add(part);
  };
  for (const part of parts) visit(part, []);
  return [...ordered];
}

function ownersOf(parts: readonly AnyPart[], settings: readonly LiveSetting[]): Owners {
  const owners = new Map<LiveSetting, AnyPart>();
  for (const part of parts) {
    for (const setting of part.settings ?? []) {
      const other = owners.get(setting);
      if (other !== undefined) throw new Error(`${setting} belongs to ${other.name} and to ${part.name}`);
      owners.set(setting, part);
    }
  }
  for (const setting of settings) if (!owners.has(setting)) throw new Error(`no part takes over ${setting}`);
  return owners;
}
