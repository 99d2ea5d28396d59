import type { KeeperEvent } from "../endpoints/keeper-event.ts";

/** An object of the cluster that endpoints are taken from: reports once that it is missing, and once that it is back. */
export class MissingObject {
  readonly #report: (event: KeeperEvent) => void;
  readonly #subject: string;
  readonly #detail: string;
  #missing = false;

  constructor(report: (event: KeeperEvent) => void, subject: string, detail: string) {
    this.#report = report;
    this.#subject = subject;
    this.#detail = detail;
  }

  set(missing: boolean): void {
    if (missing === this.#missing) return;
    this.#missing = missing;
    const subject = this.#subject;
    if (missing) this.#report({ kind: "source-missing", subject, detail: this.#detail });
    else this.#report({ kind: "source-recovered", subject, detail: "" });
  }
}
