import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { Workload } from "../recorded/packed-workload.ts";

/** Some of a workload's requests in its order, numbered anew. */
export class WorkloadView implements Workload {
  readonly #of: Workload;
  readonly #rows: ArrayLike<number>;

  constructor(of: Workload, rows: ArrayLike<number>) {
    this.#of = of;
    this.#rows = rows;
  }

  get length(): number {
    return this.#rows.length;
  }

  at(index: number): WorkloadRequest | undefined {
    const row = this.#rows[index];
    const request = row === undefined ? undefined : this.#of.at(row);
    return request && { ...request, index };
  }

  *[Symbol.iterator](): Generator<WorkloadRequest> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }
}
