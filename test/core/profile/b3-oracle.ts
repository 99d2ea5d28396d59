/**
 * B3's pick functions and AIBrix's prefix_cache_routing as their authors write them, line by line, over plain
 * objects. Nothing of this project is imported here, so that it can be an oracle.
 */
export interface Instance {
  readonly num_requests: number;
  readonly pending_prefill_tokens: number;
  /** estimate_cache_hit of the request at hand, in tokens. */
  readonly cache_hit: number;
}

const argmin = (values: readonly number[]): number => values.indexOf(Math.min(...values));

function score(inst: Instance, input_length: number): number {
  const new_prefill = Math.max(0, input_length - inst.cache_hit);
  const p_tokens = inst.pending_prefill_tokens + new_prefill;
  return p_tokens * inst.num_requests;
}

export function pick_lmetric(instances: readonly Instance[], input_length: number): number {
  let best = -1;
  let best_score = Infinity;
  instances.forEach((inst, index) => {
    if (score(inst, input_length) < best_score) {
      best = index;
      best_score = score(inst, input_length);
    }
  });
  return best;
}

export function pick_load_only(instances: readonly Instance[]): number {
  return argmin(instances.map((inst) => inst.num_requests));
}

export function pick_sticky(instances: readonly Instance[], session_id: string, affinity: Map<string, number>): number {
  const bound = affinity.get(session_id);
  if (bound !== undefined) return bound;
  const chosen = pick_load_only(instances);
  affinity.set(session_id, chosen);
  return chosen;
}

export interface Unified {
  readonly affinity: Map<string, number>;
  rr_counter: number;
}

export function pick_unified(
  instances: readonly Instance[],
  input_length: number,
  session_id: string,
  state: Unified,
  OVERLOAD_FACTOR = 2,
): number {
  const mean = instances.reduce((sum, inst) => sum + inst.num_requests, 0) / instances.length;
  const avg_reqs = Math.max(mean, 1);
  const bound = state.affinity.get(session_id);
  if (bound !== undefined) {
    const a = instances[bound]!;
    const a_hit_ratio = a.cache_hit / Math.max(input_length, 1);
    if (a_hit_ratio > 0.5 && a.num_requests <= avg_reqs * OVERLOAD_FACTOR) return bound;
  }
  const keys = instances.map((inst): [number, number, number, number] => [
    score(inst, input_length),
    Math.max(0, input_length - inst.cache_hit),
    inst.num_requests,
    instances.indexOf(inst),
  ]);
  const first = keys.toSorted((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])[0]!;
  const tied = keys.filter((key) => key[0] === first[0] && key[1] === first[1] && key[2] === first[2]);
  let winner = tied[0]!;
  if (tied.length > 1) {
    winner = tied[state.rr_counter % tied.length]!;
    state.rr_counter += 1;
  }
  state.affinity.set(session_id, winner[3]);
  return winner[3];
}

export interface Pod {
  readonly running_request: number;
  /** Leading blocks of the prompt that the pod holds. */
  readonly matched: number;
}

/** AIBrix's Routing Algorithms with the values of its Configuration section: 16, factor 2, `<=`. */
export function prefix_cache_routing(ready_pods: readonly Pod[], hashes: number, ABS = 16, load_factor = 2): number {
  const counts = ready_pods.map((pod) => pod.running_request);
  const select_pod_with_least_running_requests = () => argmin(counts);
  if (Math.max(...counts) - Math.min(...counts) > ABS) return select_pod_with_least_running_requests();
  const match_pods = ready_pods
    .map((pod, index) => ({
      index,
      running_request: pod.running_request,
      percent: Math.floor((pod.matched * 100) / hashes),
    }))
    .filter(({ index }) => ready_pods[index]!.matched > 0)
    .toSorted((a, b) => b.percent - a.percent || a.running_request - b.running_request);
  const mean = counts.reduce((a, b) => a + b, 0) / counts.length;
  const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / (counts.length - 1);
  const std_dev = counts.length > 1 ? Math.sqrt(variance) : 0;
  for (const pod of match_pods) {
    if (pod.running_request <= mean + load_factor * std_dev) return pod.index;
  }
  return select_pod_with_least_running_requests();
}
