import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";

export interface BodyRules {
  /** Bodies held at once, those that are still arriving among them. */
  readonly bytesMax: number;
  /** Of that, what bodies may hold while they arrive. */
  readonly arrivingMax: number;
  /** The same of bodies from one network. */
  readonly networkMax: number;
  /** A body that comes slower than this, in bytes a second, for `SLOW_MICROS_MAX` is cut; 0 cuts none. */
  readonly bytesPerSecondMin: number;
  /** A body that comes slower than this gives way where there is no room. */
  readonly bytesPerSecondKept: number;
}

/** slow: below the least rate; gave-way: others needed its room. */
export type BodyCut = "slow" | "gave-way";

/** A body that was still on its way when it was looked at, or that comes in several pieces. */
export interface ArrivingBody {
  readonly network: string;
  /** Ends its request, and gives back what it holds before it returns. */
  readonly cut: (why: BodyCut) => void;
  bytes: number;
  /** From here on its rate is measured. */
  markAt: Micros;
  markBytes: number;
  /** Bytes a second up to the last mark; Infinity before the first. */
  rate: number;
  /** Since when it is below the least rate; Infinity where it is not. */
  slowSince: Micros;
}

const MARK_MICROS = MICROS_PER_SECOND;
/**
 * As long as nginx waits between two reads of a body: a client whose packets are lost, or whose machine is paused, sends
 * nothing for 10 or 20 s. Where room is short, slow ones give way at once.
 */
export const SLOW_MICROS_MAX = 60 * MICROS_PER_SECOND;

/**
 * The room that requests' bodies have. Whoever holds his body back, or sends it drop by drop, keeps others out only as long
 * as there is room for all: where there is none, the oldest body that comes slowly gives way, then the oldest of the
 * network that holds most, if that is more than the newcomer's would. Bodies that are whole are being served and never give
 * way. No clock: what depends on time gets it.
 */
export class BodyRoom {
  /** Those in force. */
  rules: BodyRules;
  /** Those that were here first come first. */
  readonly #arriving = new Set<ArrivingBody>();
  /** Bytes of those that arrive. */
  readonly #networks = new Map<string, number>();
  #bytes = 0;
  #arrivingBytes = 0;

  constructor(rules: BodyRules) {
    this.rules = rules;
  }

  /** Of all bodies, whole and arriving. */
  get bytes(): number {
    return this.#bytes;
  }

  get arriving(): number {
    return this.#arriving.size;
  }

  /** Counts so many bytes more, of a body that arrives or of one that may be whole with them; false: no room for them. */
  take(bytes: number, client: { readonly network: string }, body?: ArrivingBody): boolean {
    const { bytesMax, arrivingMax, networkMax } = this.rules;
    if (body !== undefined) {
      const isRival = (one: ArrivingBody): boolean => one !== body && one.network === body.network;
      while (this.#of(body.network) + bytes > networkMax) if (!this.#slowGivesWay(isRival)) return false;
    }
    const isFull = (): boolean =>
      this.#bytes + bytes > bytesMax || (body !== undefined && this.#arrivingBytes + bytes > arrivingMax);
    while (isFull()) {
      const gaveWay = this.#slowGivesWay((one) => one !== body) || this.#heaviestGivesWay(client.network, bytes);
      if (!gaveWay) return false;
    }
    this.#bytes += bytes;
    if (body !== undefined) this.#grow(body, bytes);
    return true;
  }

  /** Gives back what was taken. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** A body is not whole yet, of which so many bytes were taken. */
  watch(network: string, bytes: number, at: Micros, cut: (why: BodyCut) => void): ArrivingBody {
    const marks = { markAt: at, markBytes: bytes, rate: Infinity, slowSince: Infinity };
    const body: ArrivingBody = { network, cut, bytes: 0, ...marks };
    this.#arriving.add(body);
    this.#grow(body, bytes);
    return body;
  }

  /** It is whole, or nobody waits for it any more. What it holds stays counted until it is given back. */
  leave(body: ArrivingBody): void {
    if (this.#arriving.delete(body)) this.#grow(body, -body.bytes);
  }

  /**
   * Measures how fast it comes; to be called several times a second. What was not read since this program stood still, up
   * to `stoodStillUntil`, speaks against no client.
   */
  look(body: ArrivingBody, at: Micros, stoodStillUntil: Micros): void {
    const { arrivingMax, networkMax, bytesPerSecondMin, bytesPerSecondKept } = this.rules;
    if (body.markAt < stoodStillUntil) {
      body.markAt = at;
      body.markBytes = body.bytes;
      body.slowSince = Infinity;
      return;
    }
    const micros = at - body.markAt;
    if (micros < MARK_MICROS) return;
    body.rate = ((body.bytes - body.markBytes) / micros) * MICROS_PER_SECOND;
    body.slowSince = body.rate < bytesPerSecondMin ? Math.min(body.slowSince, body.markAt) : Infinity;
    body.markAt = at;
    body.markBytes = body.bytes;
    // First pieces are taken before it is known that more will come.
    const isOver = this.#of(body.network) > networkMax || this.#arrivingBytes > arrivingMax;
    if (at - body.slowSince >= SLOW_MICROS_MAX) body.cut("slow");
    else if (isOver && body.rate < bytesPerSecondKept) body.cut("gave-way");
  }

  /** Has one that comes slowly give way, since there is no place for another request; false where none does. */
  makeWay(): boolean {
    return this.#slowGivesWay(() => true);
  }

  #slowGivesWay(may: (body: ArrivingBody) => boolean): boolean {
    const { bytesPerSecondKept } = this.rules;
    return this.#firstGivesWay((body) => body.rate < bytesPerSecondKept && may(body));
  }

  #heaviestGivesWay(network: string, bytes: number): boolean {
    let most = this.#of(network) + bytes;
    let heaviest: string | undefined;
    for (const [other, held] of this.#networks) {
      if (held <= most) continue;
      most = held;
      heaviest = other;
    }
    return heaviest !== undefined && this.#firstGivesWay((body) => body.network === heaviest && body.bytes > 0);
  }

  #firstGivesWay(is: (body: ArrivingBody) => boolean): boolean {
    for (const body of this.#arriving) {
      if (!is(body)) continue;
      body.cut("gave-way");
      this.leave(body);
      return true;
    }
    return false;
  }

  #of(network: string): number {
    return this.#networks.get(network) ?? 0;
  }

  #grow(body: ArrivingBody, bytes: number): void {
    body.bytes += bytes;
    this.#arrivingBytes += bytes;
    const held = this.#of(body.network) + bytes;
    if (held > 0) this.#networks.set(body.network, held);
    else this.#networks.delete(body.network);
  }
}
