import type { SavedJudge } from "#core/rollout/judge/judge.ts";
import type { JudgeEntry } from "#core/rollout/judge/judge-entry.ts";
import { movedEntry } from "#core/rollout/judge/moved-entry.ts";
import { movedJudge } from "#core/rollout/judge/moved-judge.ts";
import type { RolloutShared, SharedRequest } from "#core/rollout/rollout-input.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { Micros } from "#core/base/units.ts";
import { Rounds } from "../state/rounds.ts";
import { LOG_START, type SharedStore } from "../state/shared-store.ts";
import { MEASURE_VERSION } from "./saved-rollout.ts";

export interface JudgeShareOptions {
  readonly store: SharedStore;
  /** Of this gateway, unlike any other's, also one of its name that ran before. */
  readonly replica: string;
  readonly rollouts: () => Rollouts;
  readonly accept: (input: RolloutShared) => void;
  /** Its judge was replaced: what was kept of it is of another one. */
  readonly replaced: (rollout: string) => void;
  readonly now: () => Micros;
  /** Wall time of the zero of that clock. */
  readonly wallStartMicros: Micros;
  readonly failed: (detail: string) => void;
  readonly recovered: () => void;
}

/** Who judges a rollout here. */
export interface JudgeScope {
  /** fleet: all replicas have one judge; own: this one sees only what it routes itself. */
  readonly of: "fleet" | "own";
  /** Replicas that send what they see, and the one that takes the judge's steps; of own none. */
  readonly replicas: number;
  readonly by: string;
  /** Why it is not the fleet's; "" where it is. */
  readonly problem: string;
}

const NEWS_KEY = "rollout-news";
const LEASE_KEY = "rollout-judge";
const JUDGES_KEY = "rollout-judges";
/** Batches that the log keeps, entries of one, and entries that wait while the store is away. */
const BATCHES_MAX = 65_536;
const BATCH_ENTRIES_MAX = 2_048;
const WAITING_MAX = 131_072;
const READ_MAX = 256;
const OPEN_MAX = 512;
const REPLICAS_MAX = 64;
/** Who takes steps is another one so long after it was last there. */
const LEASE_MICROS = 5_000_000;
/** Between two writes of judges, whole. */
const JUDGES_MICROS = 10_000_000;
const SILENT_MICROS = 15_000_000;

interface Batch {
  readonly version: number;
  readonly replica: string;
  /** Counts up from 1, so that one that was sent twice counts once. */
  readonly number: number;
  readonly rollout: string;
  /** Wall times, as all of it. */
  readonly entries: readonly JudgeEntry[];
  readonly open: readonly SharedRequest[];
}

/** A judge with all entries up to a place of the log. */
interface SharedJudge {
  readonly id: string;
  readonly judge: SavedJudge;
  /** By replica, the number of the last batch that is in it. */
  readonly numbers: Readonly<Record<string, number>>;
}

interface SharedJudges {
  readonly version: number;
  readonly rollouts: Readonly<Record<string, SharedJudge>>;
}

interface Own {
  waiting: JudgeEntry[];
  /** Sent, and not known to be there. */
  batches: Batch[];
  together: boolean;
  numbers: Record<string, number>;
}

/**
 * One judge of a rollout for all replicas: what each sees goes into one log in the store, and every replica gives its
 * judge the log's entries in the log's order, so that all have the same judge, bit for bit, and show the same. One of
 * them, by a lease, takes the steps that it calls for: the error budget is spent once. A judge is written whole now and
 * then, with its place in the log, for who starts or was away. Without the store each judges what it sees itself; what
 * it saw meanwhile reaches the others afterwards.
 */
export class JudgeShare {
  readonly #options: JudgeShareOptions;
  readonly #rounds: Rounds;
  readonly #own = new Map<string, Own>();
  /** Place in the log. */
  #read = LOG_START;
  #number = 0;
  #leader = "";
  #judgesAt = -Infinity;
  /** Replicas, and when they last sent something. */
  readonly #seenAt = new Map<string, Micros>();
  /** Entries that there was no room for. */
  lost = 0;

  constructor(options: JudgeShareOptions) {
    this.#options = options;
    const { failed, recovered } = options;
    const alone = (detail: string) => {
      this.#alone();
      failed(detail);
    };
    this.#rounds = new Rounds({ round: () => this.#once(), failed: alone, recovered });
  }

  /** Whether a step that the judge calls for is this replica's to take. */
  mayStep(rollout: string): boolean {
    return this.#own.get(rollout)?.together !== true || this.#leader === this.#options.replica;
  }

  scope(rollout: string): JudgeScope {
    if (this.#own.get(rollout)?.together !== true)
      return { of: "own", replicas: 0, by: "", problem: this.#rounds.problem };
    return { of: "fleet", replicas: Math.max(1, this.#seenAt.size), by: this.#leader, problem: "" };
  }

  /** Watches rollouts that are new, so that nothing of them is missed. */
  attach(): void {
    const rollouts = this.#options.rollouts();
    for (const { plan, phase } of rollouts.book) {
      const watch = rollouts.watch(plan.name);
      if (watch === undefined || watch.outbox !== undefined || phase === "promoted" || phase === "rolled-back")
        continue;
      const own: Own = { waiting: [], batches: [], together: false, numbers: {} };
      this.#own.set(plan.name, own);
      watch.outbox = (entry) => {
        if (own.waiting.length < WAITING_MAX) own.waiting.push(entry);
        else this.lost++;
      };
    }
    for (const name of this.#own.keys()) if (rollouts.watch(name)?.outbox === undefined) this.#own.delete(name);
  }

  sync(): Promise<string> {
    this.attach();
    return this.#rounds.sync();
  }

  async #once(): Promise<void> {
    if (this.#own.size === 0) return;
    await this.#lease();
    await this.#join();
    await this.#send();
    await this.#take();
    if (this.#leader === this.#options.replica && this.#wall() >= this.#judgesAt + JUDGES_MICROS) await this.#write();
  }

  /** Who takes steps, for a while. */
  async #lease(): Promise<void> {
    const { store, replica } = this.#options;
    const there = await store.read(LEASE_KEY);
    const held = there === undefined ? undefined : (JSON.parse(there.text) as { by: string; until: number });
    const wall = this.#wall();
    this.#leader = held !== undefined && held.until > wall ? held.by : "";
    if (this.#leader !== "" && (this.#leader !== replica || held!.until > wall + LEASE_MICROS / 2)) return;
    const text = JSON.stringify({ by: replica, until: wall + LEASE_MICROS });
    const revision = await store.replace(LEASE_KEY, there?.revision ?? 0, text);
    this.#leader = revision === undefined ? "" : replica;
  }

  /** Rollouts that are judged alone get the judge of all; where there is none, this one's is that of all. */
  async #join(): Promise<void> {
    const alone = [...this.#own].filter(([, { together }]) => !together);
    if (alone.length === 0) return;
    const judges = await this.#judges();
    // All that is together has one place in the log.
    if (alone.length === this.#own.size) this.#read = await this.#options.store.logEnd(NEWS_KEY);
    else await this.#take();
    for (const [name] of alone) {
      const shared = judges.rollouts[name];
      if (shared === undefined) continue;
      await this.#catchUp(name, shared);
    }
    const bare = alone.filter(([name]) => judges.rollouts[name] === undefined);
    if (bare.length > 0 && this.#leader === this.#options.replica) await this.#write();
  }

  async #judges(): Promise<SharedJudges & { readonly revision: number }> {
    const there = await this.#options.store.read(JUDGES_KEY);
    if (there === undefined) return { version: MEASURE_VERSION, rollouts: {}, revision: 0 };
    const { version, rollouts } = JSON.parse(there.text) as SharedJudges;
    return { version, rollouts: version === MEASURE_VERSION ? rollouts : {}, revision: there.revision };
  }

  /** Takes a judge over with what came after it, up to where this replica has read. */
  async #catchUp(name: string, shared: SharedJudge): Promise<void> {
    const { store, accept, replaced, now, wallStartMicros } = this.#options;
    const own = this.#own.get(name);
    if (own === undefined) return;
    const numbers = { ...shared.numbers };
    const later: Batch[] = [];
    for (let place = shared.id; ;) {
      const batches = await store.readLog(NEWS_KEY, place, READ_MAX);
      for (const { id, text } of batches) if (isUpTo(id, this.#read)) later.push(JSON.parse(text) as Batch);
      const last = batches.at(-1);
      if (last === undefined || !isUpTo(last.id, this.#read)) break;
      place = last.id;
    }
    const at = now();
    const judge = movedJudge(shared.judge, -wallStartMicros, { runs: true });
    own.numbers = numbers;
    own.together = true;
    accept({ kind: "rollout-shared", at, rollout: name, together: true, judge, entries: [], replica: "", open: [] });
    replaced(name);
    for (const batch of later) this.#give(batch);
  }

  /** What was seen here, in the order in which it was. */
  async #send(): Promise<void> {
    const { store, replica, rollouts, wallStartMicros } = this.#options;
    for (const [rollout, own] of this.#own) {
      if (!own.together) continue;
      this.#pack(rollout, own, rollouts().watch(rollout)?.openRequests(OPEN_MAX) ?? [], replica, wallStartMicros);
      while (own.batches.length > 0) {
        await store.append(NEWS_KEY, JSON.stringify(own.batches[0]), BATCHES_MAX);
        own.batches.shift();
      }
    }
  }

  #pack(rollout: string, own: Own, open: readonly SharedRequest[], replica: string, by: Micros): void {
    if (own.waiting.length === 0) return;
    const { waiting } = own;
    own.waiting = [];
    const moved = open.map(([arm, stretch, slice, at, ttft]) => [arm, stretch + by, slice, at + by, ttft] as const);
    for (let i = 0; i < waiting.length; i += BATCH_ENTRIES_MAX) {
      const entries = waiting.slice(i, i + BATCH_ENTRIES_MAX).map((entry) => movedEntry(entry, by));
      own.batches.push({ version: MEASURE_VERSION, replica, number: ++this.#number, rollout, entries, open: moved });
    }
  }

  /** What all have seen since. */
  async #take(): Promise<void> {
    for (;;) {
      const batches = await this.#options.store.readLog(NEWS_KEY, this.#read, READ_MAX);
      if (batches.length === 0) break;
      for (const { id, text } of batches) {
        this.#read = id;
        this.#give(JSON.parse(text) as Batch);
      }
    }
    for (const [replica, at] of this.#seenAt) if (this.#wall() > at + SILENT_MICROS) this.#seenAt.delete(replica);
  }

  #give({ version, replica, number, rollout, entries, open }: Batch): void {
    const { accept, now, wallStartMicros: by } = this.#options;
    const own = this.#own.get(rollout);
    if (version !== MEASURE_VERSION || own?.together !== true || number <= (own.numbers[replica] ?? 0)) return;
    // The latest ones stay.
    delete own.numbers[replica];
    own.numbers[replica] = number;
    this.#seenAt.set(replica, this.#wall());
    accept({
      kind: "rollout-shared",
      at: now(),
      rollout,
      together: true,
      entries: entries.map((entry) => movedEntry(entry, -by)),
      replica,
      open: open.map(([arm, stretch, slice, at, ttft]) => [arm, stretch - by, slice, at - by, ttft]),
    });
  }

  /** Judges as they are at this place of the log. Where nobody had one, this replica's is that of all from now on. */
  async #write(): Promise<void> {
    const { store, rollouts: book, wallStartMicros, accept, now } = this.#options;
    const { revision, rollouts: there } = await this.#judges();
    const rollouts: Record<string, SharedJudge> = {};
    const begun: string[] = [];
    for (const [name, own] of this.#own) {
      const watch = book().watch(name);
      if (watch === undefined) continue;
      if (!own.together && there[name] !== undefined) rollouts[name] = there[name];
      else {
        if (!own.together) begun.push(name);
        const judge = movedJudge(watch.judge.saved(), wallStartMicros, { runs: true });
        rollouts[name] = { id: this.#read, judge, numbers: latest(own.numbers) };
      }
    }
    const dropped = begun.map((name) => [name, this.#own.get(name)!.waiting.length] as const);
    const text = JSON.stringify({ version: MEASURE_VERSION, rollouts } satisfies SharedJudges);
    if ((await store.replace(JUDGES_KEY, revision, text)) === undefined) return;
    this.#judgesAt = this.#wall();
    for (const [name, count] of dropped) {
      const own = this.#own.get(name)!;
      // They are in the judge; what came since is entered here and has to leave again with the judge that was written.
      const later = own.waiting.slice(count);
      own.waiting = later;
      own.batches = [];
      own.together = true;
      const judge = movedJudge(rollouts[name]!.judge, -wallStartMicros, { runs: true });
      accept({
        kind: "rollout-shared",
        at: now(),
        rollout: name,
        together: true,
        judge,
        entries: [],
        replica: "",
        open: [],
      });
    }
  }

  /** From now on each judges what it sees itself; what was not sent yet is entered at once. */
  #alone(): void {
    const { accept, now, wallStartMicros: by, replica } = this.#options;
    for (const [rollout, own] of this.#own) {
      if (!own.together) continue;
      own.together = false;
      const sent = own.batches.flatMap(({ entries }) => entries.map((entry) => movedEntry(entry, -by)));
      const entries = [...sent, ...own.waiting];
      accept({ kind: "rollout-shared", at: now(), rollout, together: false, entries, replica, open: [] });
    }
    this.#leader = "";
    this.#seenAt.clear();
  }

  #wall(): Micros {
    return this.#options.wallStartMicros + this.#options.now();
  }
}

/** Of too many replicas those that sent something last. */
function latest(numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(numbers).slice(-REPLICAS_MAX));
}

/** Whether a place in the log is at most another one. */
function isUpTo(id: string, other: string): boolean {
  const [[millis = 0, number = 0], [otherMillis = 0, otherNumber = 0]] = [id, other].map((one) =>
    one.split("-").map(Number),
  ) as [number[], number[]];
  return millis < otherMillis || (millis === otherMillis && number <= otherNumber);
}
