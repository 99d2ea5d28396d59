import type { WaitingRequest } from "./waiting-request.ts";

/** Requests of one class for one model, a line for each tenant in order of arrival. */
export class TenantLines {
  readonly #lines = new Map<string, WaitingRequest[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  tenants(): IterableIterator<string> {
    return this.#lines.keys();
  }

  lengthOf(tenant: string): number {
    return this.#lines.get(tenant)?.length ?? 0;
  }

  first(tenant: string): WaitingRequest {
    return this.#lines.get(tenant)![0]!;
  }

  last(tenant: string): WaitingRequest {
    return this.#lines.get(tenant)!.at(-1)!;
  }

  add(waiting: WaitingRequest): void {
    const { tenant } = waiting.request;
    const line = this.#lines.get(tenant);
    if (line === undefined) this.#lines.set(tenant, [waiting]);
    else line.push(waiting);
    this.#size++;
  }

  /** Takes out one that is there. */
  remove(waiting: WaitingRequest): void {
    const { tenant } = waiting.request;
    const line = this.#lines.get(tenant)!;
    if (line.length === 1) this.#lines.delete(tenant);
    else line.splice(line.indexOf(waiting), 1);
    this.#size--;
  }
}
