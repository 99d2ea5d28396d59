import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FaultLog } from "#live/log/fault-log.ts";
import { refusedBySystem } from "../process/system-error.ts";
import { ConversationJournal } from "./conversation-journal.ts";
import { KeptFile } from "./kept-file.ts";
import { KeptOrders } from "./kept-orders.ts";
import { journalPaths, journalsFrom, KeptJournal, type KeptJournalOptions } from "./kept-journal.ts";

const SECRET_BYTES = 32;
const NAME_DIGITS = 16;

/** What a gateway keeps across restarts, in a folder of its own. */
export class StateFolder {
  readonly path: string;
  readonly policy: KeptFile;
  readonly rollouts: KeptFile;
  readonly conversations: ConversationJournal;
  /** Both files above, which are written again and again until they are. */
  readonly orders: KeptOrders;
  readonly #judges = new Map<string, KeptJournal>();

  /** Throws CommandFailure where the folder cannot be had. */
  constructor(path: string, report: FaultLog["report"] = () => {}) {
    this.path = path;
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      // What was being written when a process was killed.
      for (const name of readdirSync(path)) if (/\.json\.[0-9a-f]{8}$/.test(name)) rmSync(join(path, name));
      this.conversations = new ConversationJournal(join(path, "conversations"));
    } catch (error) {
      throw refusedBySystem(`policy.directory ${path}`, error);
    }
    this.policy = new KeptFile(join(path, POLICY));
    this.rollouts = new KeptFile(join(path, ROLLOUTS));
    // A promotion changes both: that of the policy is known first.
    this.orders = new KeptOrders([this.policy, this.rollouts], { path, report });
  }

  /** What a rollout's judge has seen; made with `options` at the first call. */
  judge(rollout: string, options: Omit<KeptJournalOptions, "path">): KeptJournal {
    let file = this.#judges.get(rollout);
    if (file === undefined) {
      file = new KeptJournal({ ...options, path: join(this.path, judgeName(rollout)) });
      this.#judges.set(rollout, file);
    }
    return file;
  }

  forgetJudge(rollout: string): void {
    this.#judges.delete(rollout);
    const path = join(this.path, judgeName(rollout));
    for (const one of [path, ...journalPaths(path)]) rmSync(one, { force: true });
  }

  readPolicy(): unknown {
    return this.#read(POLICY);
  }

  readRollouts(): unknown {
    return this.#read(ROLLOUTS);
  }

  readJudge(rollout: string): unknown {
    return this.#read(judgeName(rollout));
  }

  /** Lines of what a rollout's judge has seen since it was written whole, of the journals from that number on. */
  judgeJournals(rollout: string, number: number): string[] {
    return journalsFrom(join(this.path, judgeName(rollout)), number);
  }

  /** Keys block hashes, sessions and tenants where no variable does: made once, readable by its owner alone. */
  secret(): Uint8Array {
    const path = join(this.path, "key");
    try {
      return readFileSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw refusedBySystem(`policy.directory ${path}`, error);
    }
    const made = randomBytes(SECRET_BYTES);
    writeFileSync(path, made, { mode: 0o600, flush: true });
    return made;
  }

  /** Undefined where there is none; throws SyntaxError for one that is damaged. */
  #read(name: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.path, name), "utf8")) as unknown;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }
}

const POLICY = "policy.json";
const ROLLOUTS = "rollouts.json";

/** A rollout's name may hold what a file's must not. */
function judgeName(rollout: string): string {
  return `judge-${createHash("sha256").update(rollout).digest("hex").slice(0, NAME_DIGITS)}.json`;
}
