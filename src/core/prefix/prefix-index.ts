import type { EndpointId } from "../endpoint/endpoint.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import type { Micros } from "../units.ts";

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
  /** Writes into hits[slot] the number of leading blocks of `chain` that each slot holds, 0 for none. */
  match(chain: BlockChain, hits: Int32Array): void;
  /** The endpoint is about to hold the chain: touches what it has, adds the rest, evicts the least recently used. */
  insert(slot: number, chain: BlockChain): Insertion;
  /** Takes an insertion back: what it added and nobody has touched since. Does nothing when the endpoint has left. */
  withdraw(insertion: Insertion): void;
  /** An engine reported blocks (chain hashes, parent first); only an index that is fed by events has it. */
  stored?(slot: number, hashes: Int32Array, at: Micros): void;
  removed?(slot: number, hashes: Int32Array, at: Micros): void;
  /** Time has come this far: to be called before match and insert; only an index whose insertions expire has it. */
  advance?(at: Micros): void;
  /** Blocks held by the endpoint. */
  size(slot: number): number;
}

/** Receipt for one insert, to withdraw it by. Opaque to callers. */
export interface Insertion {
  readonly slot: number;
}
