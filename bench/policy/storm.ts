import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { PolicyHistory, PolicyView } from "#live/admin/policy-admin.ts";
import { Replay, type ReplayResult } from "#shadow/recorded/replay.ts";
import { TraceReader } from "#trace/reader.ts";

/** A folder as Kubernetes mounts a ConfigMap: the file is a link into a folder that is swapped whole. */
export class ConfigMap {
  readonly file: string;
  readonly #directory: string;
  #swaps = 0;

  constructor(directory: string, config: object) {
    this.#directory = directory;
    this.file = join(directory, "config.yaml");
    this.write(config);
    symlinkSync(join("..data", "config.yaml"), this.file);
  }

  /** `config` as YAML, or a text as it is. */
  write(config: object | string): void {
    const name = `..data_${++this.#swaps}`;
    mkdirSync(join(this.#directory, name));
    const text = typeof config === "string" ? config : stringify(config);
    writeFileSync(join(this.#directory, name, "config.yaml"), text);
    symlinkSync(name, join(this.#directory, "..data_new"));
    renameSync(join(this.#directory, "..data_new"), join(this.#directory, "..data"));
  }
}

/** A gateway whose policy is to be changed. */
export interface StormOptions {
  readonly url: string;
  readonly adminUrl: string;
  readonly token: string;
  readonly configMap: ConfigMap;
  /** Its file, but for routing and limits. */
  readonly fixed: object;
  readonly changes: number;
  /** Changes that must be refused; each of the ways there are, again and again. */
  readonly invalid: number;
  /** Requests under way at once. */
  readonly clients: number;
}

export interface StormResult {
  readonly requests: number;
  /** Why, for the first few requests that failed. */
  readonly failures: readonly string[];
  readonly failed: number;
  /** Changes that came into force, by source. */
  readonly applied: Readonly<Record<string, number>>;
  /** Of the change, from the call to its answer, for those of the admin API. */
  readonly adminMillis: readonly number[];
  /** From the swap of the file until it is in force. */
  readonly fileMillis: readonly number[];
  readonly refused: readonly string[];
  /** Invalid changes that were not refused, or changed something. */
  readonly slipped: readonly string[];
  /** Versions that answers named. */
  readonly versions: ReadonlySet<number>;
  readonly versionInForce: number;
}

const PROFILES = ["round-robin", "gnomon", "least-loaded", "llm-d", "lmetric", "sticky"] as const;
const WAIT_MILLIS_MAX = 20_000;
const FAILURES_KEPT = 5;

/** Changes a gateway's policy again and again, by its file and its admin API in turn, while clients ask it. */
export async function policyStorm(options: StormOptions): Promise<StormResult> {
  const load = new Load(options.url, options.clients);
  const admin = new Admin(options);
  const adminMillis: number[] = [];
  const fileMillis: number[] = [];
  const refused: string[] = [];
  const slipped: string[] = [];
  const every = options.invalid === 0 ? Infinity : Math.max(1, Math.floor(options.changes / options.invalid));
  for (let i = 0; i < options.changes; i++) {
    const since = performance.now();
    if (i % 2 === 0) {
      await admin.change(i);
      adminMillis.push(performance.now() - since);
    } else {
      await admin.swapFile(i);
      fileMillis.push(performance.now() - since);
    }
    if ((i + 1) % every === 0 && refused.length + slipped.length < options.invalid) {
      const before = await admin.state();
      const refusal = await admin.wrong(refused.length + slipped.length);
      const after = await admin.state();
      if (refusal === undefined || before !== after) slipped.push(`${refusal}: ${before} became ${after}`);
      else refused.push(refusal);
    }
  }
  await load.stop();
  const { versions } = await admin.history();
  const applied: Record<string, number> = {};
  for (const { source } of versions) applied[source] = (applied[source] ?? 0) + 1;
  const { requests, failed, failures } = load;
  const figures = { adminMillis, fileMillis, refused, slipped, applied, versions: load.versions };
  return { requests, failed, failures, ...figures, versionInForce: versions[0]!.version };
}

/** Clients that ask one request after another, every other one as a stream. */
class Load {
  requests = 0;
  failed = 0;
  readonly failures: string[] = [];
  readonly versions = new Set<number>();
  readonly #url: string;
  readonly #clients: Promise<void>[];
  #stopped = false;

  constructor(url: string, clients: number) {
    this.#url = url;
    this.#clients = Array.from({ length: clients }, (_, client) => this.#client(client));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }

  async #client(client: number): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      this.requests++;
      const why = await this.#ask(client, turn).catch(String);
      if (why === "") continue;
      this.failed++;
      if (this.failures.length < FAILURES_KEPT) this.failures.push(why);
    }
  }

  /** "" where all was well. */
  async #ask(client: number, turn: number): Promise<string> {
    const stream = turn % 2 === 1;
    const content = `client ${client % 3} asks about the same long document. `.repeat(20) + String(turn);
    const body = JSON.stringify({
      model: "llama-3.1-8b",
      messages: [{ role: "user", content }],
      max_tokens: 8,
      stream,
    });
    const headers = { "content-type": "application/json", "x-session-id": `s${client}` };
    const answer = await fetch(`${this.#url}/v1/chat/completions`, { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.status !== 200) return `${answer.status} ${text}`;
    if (stream && !text.endsWith("data: [DONE]\n\n")) return `cut: ${text.slice(-100)}`;
    const [, version] = /; version=(\d+)$/.exec(answer.headers.get("x-gnomon-profile") ?? "") ?? [];
    if (version === undefined) return `no version in ${answer.headers.get("x-gnomon-profile")}`;
    this.versions.add(Number(version));
    return "";
  }
}

class Admin {
  readonly #options: StormOptions;

  constructor(options: StormOptions) {
    this.#options = options;
  }

  async state(): Promise<string> {
    const { version, document } = await this.#get<PolicyView>("");
    return `version ${version}, ${JSON.stringify(document)}`;
  }

  history(): Promise<PolicyHistory> {
    return this.#get<PolicyHistory>("/history");
  }

  /** Another default profile, other weights, or other limits; whole or as a patch. */
  async change(i: number): Promise<void> {
    const profile = PROFILES[i % PROFILES.length]!;
    const weights = { extends: "llm-d", scorers: [{ plugin: "queue-depth", weight: 1 + i }] };
    const document =
      i % 4 === 0
        ? { routing: { profile, profilesAllowed: ["round-robin"] }, limits: { attemptsMax: 2 + (i % 5) } }
        : { routing: { profile: "mine" }, profiles: { mine: weights } };
    const answer = await this.#send(i % 4 === 0 ? "PUT" : "POST", "", document);
    if (answer.status !== 200) throw new Error(`change ${i}: ${await answer.text()}`);
    const { outcome } = (await answer.json()) as { outcome: string };
    if (outcome !== "applied") throw new Error(`change ${i}: ${outcome}`);
  }

  async swapFile(i: number): Promise<void> {
    const { version } = await this.#get<PolicyView>("");
    const routing = { profile: PROFILES[i % PROFILES.length] };
    const limits = { totalMillisMax: 60_000 + i, attemptsMax: 2 + (i % 7) };
    this.#options.configMap.write({ ...this.#options.fixed, routing, limits });
    await until(`change ${i} by file`, async () => (await this.#get<PolicyView>("")).version > version);
  }

  /** Asks for something that must be refused; why it was, undefined where it was not. */
  async wrong(i: number): Promise<string | undefined> {
    const [document, path] = WRONG[i % WRONG.length]!;
    if (i % 4 === 3) return this.#wrongFile(i, document, path);
    const answer = await this.#send(i % 2 === 0 ? "PUT" : "POST", "", document);
    const text = await answer.text();
    return answer.status === 400 && text.includes(path) ? `admin: ${path}` : undefined;
  }

  async #wrongFile(i: number, document: object, path: string): Promise<string | undefined> {
    const { fixed, configMap } = this.#options;
    const before = (await this.history()).refused[0]?.at;
    // Otherwise the same as an earlier one would be the same text, and no change at all.
    configMap.write(`# ${i}\n${stringify({ ...fixed, ...document })}`);
    await until(`refusal ${i} by file`, async () => (await this.history()).refused[0]?.at !== before);
    const [last] = (await this.history()).refused;
    return last?.source === "file" && last.problems.join().includes(path) ? `file: ${path}` : undefined;
  }

  async #get<T>(below: string): Promise<T> {
    const answer = await fetch(`${this.#options.adminUrl}/gnomon/admin/policy${below}`, { headers: this.#headers });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  #send(method: string, below: string, body: object): Promise<Response> {
    const url = `${this.#options.adminUrl}/gnomon/admin/policy${below}`;
    return fetch(url, { method, headers: this.#headers, body: JSON.stringify(body) });
  }

  get #headers() {
    return { authorization: `Bearer ${this.#options.token}` };
  }
}

/** Each with the path that the answer must name. */
const WRONG: readonly (readonly [document: object, path: string])[] = [
  [{ routing: { profile: "nobody" } }, "routing.profile"],
  [{ limits: { attemptsMax: 0 } }, "limits.attemptsMax"],
  [{ listen: { port: 1 } }, "listen.port"],
  [{ limits: { sweepMillis: 99 } }, "limits.sweepMillis"],
  [{ profiles: { mine: { extends: "llm-d", scorers: [{ plugin: "queue-depth", weight: -1 }] } } }, "weight"],
  [{ profiles: { mine: { picker: { plugin: "dice" } } } }, "profiles.mine.picker.plugin"],
  [{ routing: { profle: "gnomon" } }, "routing.profle"],
  [{ tokenizer: { kind: "character" } }, "tokenizer.kind"],
  [{ prefix: { blockHash: "fast" } }, "prefix.blockHash"],
  [{ routing: { models: { a: "nobody" } } }, "routing.models.a"],
];

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const since = performance.now();
  while (!(await condition())) {
    if (performance.now() - since > WAIT_MILLIS_MAX) throw new Error(`${what}: waited in vain`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What the trace of a storm shows. */
export interface StormTrace {
  readonly replay: ReplayResult;
  readonly decisions: number;
  /** Decisions that name no version, or another one than was in force at their time. */
  readonly unnamed: number;
  /** Versions that came into force. */
  readonly changes: number;
}

export async function traceOfStorm(directory: string): Promise<StormTrace> {
  const replay = new Replay();
  let [decisions, unnamed, changes, version] = [0, 0, 0, 0];
  for await (const item of new TraceReader(directory, { strict: true }).items()) {
    replay.take(item);
    if (item.kind === "run") version = item.header.router.policyVersion ?? 0;
    if (item.kind !== "record") continue;
    if (item.input.kind === "policy-changed") {
      changes++;
      version = item.input.version;
    }
    if (item.decision === undefined) continue;
    decisions++;
    if (item.decision.policyVersion !== version) unnamed++;
  }
  return { replay: replay.result(), decisions, unnamed, changes };
}
