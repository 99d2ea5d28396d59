import type { FaultEvent } from "#live/log/fault-log.ts";

/** Documents of the configuration that wait for another rollout to end. */
const WAITING_MAX = 16;

interface Waiting {
  readonly name: string;
  readonly document: unknown;
  /** What was reported of it last. */
  reported: string;
}

/** Rollouts of the configuration that have not been started yet. */
export class WaitingRollouts {
  readonly #report: (event: FaultEvent) => void;
  #waiting: readonly Waiting[] = [];

  constructor(report: (event: FaultEvent) => void) {
    this.#report = report;
  }

  follow(documents: readonly { readonly name: string }[]): void {
    const known = new Map(this.#waiting.map((one) => [one.name, one.reported]));
    this.#waiting = documents
      .slice(0, WAITING_MAX)
      .map((document) => ({ name: document.name, document, reported: known.get(document.name) ?? "" }));
  }

  /** `start` returns the name of what was started, or what is wrong, which is reported once. */
  tryEach(isOver: (name: string) => boolean, start: (document: unknown) => string | readonly string[]): void {
    for (const one of this.#waiting) {
      if (isOver(one.name)) continue;
      const problems = start(one.document);
      const text = typeof problems === "string" ? "" : problems.join("; ");
      if (text !== "" && text !== one.reported) {
        const done = "it is tried again at every look; nothing was changed";
        this.#report({ kind: "rollout-refused", detail: `rollout.start, ${one.name}: ${text}`, done });
      }
      one.reported = text;
    }
  }
}
