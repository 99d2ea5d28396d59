import type { EndpointId } from "../endpoint/endpoint.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import type { Micros } from "../base/units.ts";
import type { RemovedBlocks, StoredBlocks } from "./block-report.ts";
import type { Knowledge, KvEventsLostReason } from "../endpoint/knowledge.ts";

/** Which endpoint is believed to hold which prefix. Endpoints are addressed by the small slot number that join gave. */
export interface PrefixIndex {
  /** Adds an endpoint with room for `capacityBlocks` blocks; returns its slot, in [0, endpoints). */
  join(endpoint: EndpointId, capacityBlocks: number): number;
  /** Forgets the endpoint and frees its slot. */
  leave(slot: number): void;
  /** Changes the room; evicts at once when it shrinks. */
  resize(slot: number, capacityBlocks: number): void;
  /** Forgets all blocks of the endpoint, which stays. */
  clear(slot: number): void;
  /**
   * Writes into hits[slot] the number of leading blocks of `chain` that each slot holds, 0 for none. `isReported`: the
   * chain is of the engines' own tokens, as their events are.
   */
  match(chain: BlockChain, hits: Int32Array, isReported?: boolean): void;
  /**
   * The endpoint is about to hold the chain: touches what it has, adds the rest, evicts the least recently used.
   * `isReported`: the endpoint's events are about to report it, where they are followed.
   */
  insert(slot: number, chain: BlockChain, isReported?: boolean): Insertion;
  /** Takes an insertion back: what it added and nobody has touched since. Does nothing when the endpoint has left. */
  withdraw(insertion: Insertion): void;
  /** The engine computed what was inserted. */
  computed?(insertion: Insertion, at: Micros): void;
  /** Time has come this far: to be called before match and insert; only an index whose insertions expire has it. */
  advance?(at: Micros): void;
  /** Blocks held by the endpoint. */
  size(slot: number): number;
}

/** An index that takes the events of engines too. Slots are those of endpoints that are here. */
export interface ReportedIndex extends PrefixIndex {
  /** Whether engines reported blocks in the memory of their hosts: else `matchHost` need not be asked. */
  readonly holdsHostBlocks: boolean;
  /**
   * Writes into held[slot] the leading blocks of the chain that each slot holds, those included that follow in its host's
   * memory where the device's `hits[slot]` end.
   */
  matchHost(chain: BlockChain, hits: Int32Array, held: Int32Array): void;
  /** Events come from now on. `isComplete`: of a cache that was empty, or with all that came before. */
  followed(slot: number, isComplete: boolean): void;
  /** They are not followed any more. */
  lost(slot: number, reason: KvEventsLostReason): void;
  /** Some are missing for good, between those before and those to come. */
  missed(slot: number): void;
  stored(slot: number, report: StoredBlocks): void;
  removed(slot: number, report: RemovedBlocks): void;
  /** It reports that its cache is empty, in order with what it stores. */
  emptied(slot: number, at: Micros): void;
  /** Where what is known of the endpoint comes from. */
  knowledge(slot: number): Knowledge;
}

/** Whether the index takes what engines report of their caches. */
export function takesReports(index: PrefixIndex): index is ReportedIndex {
  return "knowledge" in index;
}

/** Receipt for one insert, to withdraw it by. Opaque to callers. */
export interface Insertion {
  readonly slot: number;
}
