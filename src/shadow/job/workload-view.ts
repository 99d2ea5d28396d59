import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";

/** Some of a workload's requests in its order, numbered anew. */
export class WorkloadView implements WorkloadRequests {
  readonly #of: WorkloadRequests;
  readonly #rows: ArrayLike<number>;

  constructor(of: WorkloadRequests, rows: ArrayLike<number>) {
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
