import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Chances } from "./chances.ts";

/** In which order a router takes endpoints that tie, learned from the ties that it decided. */
export class TieOrder {
  /** By "one other": ties of both that went to the one, less those that went to the other. */
  readonly #leads = new Map<string, number>();

  /** Those of the tied ones that none is known to come before. */
  first(chances: Chances, ids: readonly EndpointId[]): Chances {
    if (chances.kind !== "alike") return chances;
    const before = (i: number): number =>
      chances.among.reduce((sum, other) => sum + Math.sign(this.#lead(ids[i]!, ids[other]!)), 0);
    const most = Math.max(...chances.among.map(before));
    const among = chances.among.filter((i) => before(i) === most);
    return among.length === 1 ? { kind: "one", index: among[0]! } : { kind: "alike", among };
  }

  learn(chances: Chances, ids: readonly EndpointId[], chosen: number): void {
    if (chances.kind !== "alike" || !chances.among.includes(chosen)) return;
    for (const other of chances.among) {
      if (other === chosen) continue;
      const [one, two] = [ids[chosen]!, ids[other]!];
      const [key, sign] = one < two ? [`${one} ${two}`, 1] : [`${two} ${one}`, -1];
      this.#leads.set(key, (this.#leads.get(key) ?? 0) + sign);
    }
  }

  #lead(one: EndpointId, other: EndpointId): number {
    if (one === other) return 0;
    return one < other ? (this.#leads.get(`${one} ${other}`) ?? 0) : -(this.#leads.get(`${other} ${one}`) ?? 0);
  }
}
