import type { Profiler } from "node:inspector";

/** A time within a profile, on its clock. */
export interface Span {
  readonly fromMicros: number;
  readonly toMicros: number;
}

const PLACES_MAX = 10;
/** A sample stands for no more: what is above that is time in which the thread did not run. */
const SAMPLE_MICROS_MAX = 1_000;

/**
 * Where a thread was within the spans: by the outermost function of a file below src or bench, or else by V8's own
 * name.
 */
export function heaviestIn(
  { nodes, startTime, samples = [], timeDeltas = [] }: Profiler.Profile,
  spans: readonly Span[],
): (readonly [place: string, millis: number])[] {
  const places = placeById(nodes);
  const micros = new Map<string, number>();
  let at = startTime;
  for (const [i, sample] of samples.entries()) {
    const delta = timeDeltas[i] ?? 0;
    at += delta;
    if (!spans.some(({ fromMicros, toMicros }) => at > fromMicros && at <= toMicros)) continue;
    const place = places.get(sample) ?? "?";
    micros.set(place, (micros.get(place) ?? 0) + Math.min(SAMPLE_MICROS_MAX, delta));
  }
  return [...micros]
    .map(([place, time]) => [place, time / 1e3] as const)
    .sort((a, b) => b[1] - a[1])
    .slice(0, PLACES_MAX);
}

function placeById(nodes: readonly Profiler.ProfileNode[]): ReadonlyMap<number, string> {
  const places = new Map<number, string>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const visit = (node: Profiler.ProfileNode, above: string | undefined): void => {
    const { functionName, url } = node.callFrame;
    const file = /\/(?:src|bench)\/(.*)\.ts$/.exec(url)?.[1];
    const place = above ?? (file === undefined ? undefined : `${file} ${functionName}`);
    places.set(node.id, place ?? (functionName === "" ? url : functionName));
    for (const child of node.children ?? []) visit(byId.get(child)!, place);
  };
  visit(nodes[0]!, undefined);
  return places;
}
