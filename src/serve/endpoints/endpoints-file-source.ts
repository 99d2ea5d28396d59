import { ConfigError } from "#config/config-error.ts";
import { parseEndpointsFile } from "#config/endpoints-file.ts";
import type { Config } from "#config/schema.ts";
import { SourceStatus } from "#live/endpoints/source-status.ts";
import { staticTargets } from "#live/discovery/static.ts";
import type { Target } from "#live/endpoints/target.ts";
import type { Environment } from "../plan/gateway-context.ts";
import { readConfiguredFile } from "../process/configured-file.ts";
import { secretOf } from "../process/secrets.ts";
import { WatchedFile } from "../process/watched-file.ts";
import { namedStepTimes } from "#config/named-step-times.ts";
import type { SourceKind, SourceTarget } from "./source-kind.ts";

/** A file that lists engines. */
export const FILE_SOURCE: SourceKind = {
  key: "discovery.file",
  isNamed: ({ file }) => file !== undefined,
  follow: (target, config, environment) =>
    new EndpointsFileSource(config.discovery.file ?? "", target, config, environment),
};

type FileTarget = Omit<SourceTarget, "policy">;

/**
 * Follows a file of engines: a rename, a ConfigMap's swapped link and a write in place are all changes. One that cannot
 * be read, or is wrong in any place, changes nothing and is reported with its path and lines.
 */
export class EndpointsFileSource {
  readonly #file: string;
  readonly #config: Config;
  readonly #environment: Environment;
  readonly #stack: FileTarget;
  readonly #status: SourceStatus;
  readonly #watched: WatchedFile;
  /** What it held last was taken. */
  #isTaken = false;

  /** Takes what it lists now. Throws ConfigError where it cannot be read or is wrong. */
  constructor(file: string, stack: FileTarget, config: Config, environment: Environment) {
    this.#file = file;
    this.#stack = stack;
    this.#config = config;
    this.#environment = environment;
    this.#status = new SourceStatus(`file ${file}`);
    const text = readConfiguredFile("discovery.file", file);
    this.#take(text);
    stack.sources.add(this.#status);
    this.#watched = new WatchedFile({
      file,
      watchMillis: config.discovery.fileWatchMillis,
      text,
      changed: (next) => this.#changed(next),
      unreadable: (reason) => this.#refuse(`${file}: ${reason}`),
      readable: () => {
        if (this.#isTaken) this.#recovers();
      },
    });
    this.#watched.start();
  }

  async stop(): Promise<void> {
    await this.#watched.stop();
  }

  #changed(text: string): void {
    this.#isTaken = false;
    try {
      this.#take(text);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#refuse(error.lines.join("; "));
    }
  }

  #take(text: string): void {
    const targets = fileTargets(this.#file, text, this.#config, this.#environment);
    this.#stack.keeper.setTargets("file", targets);
    this.#isTaken = true;
    this.#status.lists++;
    this.#status.targets = targets.length;
    this.#recovers();
  }

  #recovers(): void {
    const { source: subject } = this.#status;
    if (this.#status.succeeded()) this.#stack.report({ kind: "source-recovered", subject, detail: "" });
  }

  #refuse(detail: string): void {
    const { source: subject } = this.#status;
    this.#status.failed(detail);
    this.#stack.report({ kind: "source-failed", subject, detail: `${detail}; the endpoints of before stay` });
  }
}

function fileTargets(file: string, text: string, config: Config, environment: Environment): Target[] {
  const servers = parseEndpointsFile(file, text).map(({ apiKeyEnv, engine, ...server }) => ({
    ...server,
    stepTimes: namedStepTimes(engine),
    kvCapacityTokens: server.kvCapacityTokens ?? config.prefix.capacityTokens,
    apiKey: secretOf(apiKeyEnv, environment),
  }));
  try {
    return staticTargets(servers);
  } catch (error) {
    throw new ConfigError([`${error instanceof Error ? error.message : String(error)} (${file})`]);
  }
}
