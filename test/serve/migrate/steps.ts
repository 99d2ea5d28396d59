import { nameHash, randomFor } from "#core/base/random.ts";

/** What is done to a router in a sample, one after the other; `chose` is the engine that got the request. */
export type Step =
  | { readonly ask: string; readonly session?: string; readonly prompt: readonly Segment[]; readonly chose: number }
  | { readonly end: string }
  /** What the engines' metrics pages state from here on: waiting, running, KV cache in use. */
  | { readonly load: readonly (readonly [waiting: number, running: number, kv: number])[] };

/** So many pieces of text of PIECE_BYTES each; the same name has the same text. */
export type Segment = readonly [name: string, pieces: number];

export type Unchosen = Step extends infer S ? (S extends { readonly chose: number } ? Omit<S, "chose"> : S) : never;

/** Of 16 tokens where a token is 4 bytes: a block of the prefix index, and of other routers' too. */
const PIECE_BYTES = 64;
const CONVERSATIONS = 12;
const PREFIXES = 4;
const IN_FLIGHT_MAX = 24;
/** Of one prompt at once, so that a router which follows prefixes meets its own bound on imbalance. */
const HOT = 44;

export function promptText(prompt: readonly Segment[]): string {
  const piece = (name: string, i: number): string => {
    const random = randomFor(1, nameHash(`${name}/${i}`));
    return String.fromCharCode(...Array.from({ length: PIECE_BYTES }, () => 97 + random.below(26)));
  };
  return prompt.flatMap(([name, pieces]) => Array.from({ length: pieces }, (_, i) => piece(name, i))).join("");
}

/**
 * Conversations of growing prompts over a few system prompts, some requests without a session, ends at random; then one
 * prompt asked for many times at once. `withLoads`: engines' gauges change before each request.
 */
export function drawSteps(seed: number, count: number, engines: number, withLoads: boolean): Unchosen[] {
  const random = randomFor(seed, 0);
  const steps: Unchosen[] = [];
  const inFlight: string[] = [];
  const turns = new Map<number, number>();
  for (let i = 0; i < count; i++) {
    while (inFlight.length > 0 && (inFlight.length >= IN_FLIGHT_MAX || random.next() < 0.45)) {
      steps.push({ end: inFlight.splice(random.below(inFlight.length), 1)[0]! });
    }
    if (withLoads) {
      const one = (): readonly [number, number, number] => [
        random.below(12),
        random.below(60),
        random.below(101) / 100,
      ];
      steps.push({ load: Array.from({ length: engines }, one) });
    }
    const conversation = random.below(CONVERSATIONS);
    const turn = (turns.get(conversation) ?? 0) + 1;
    turns.set(conversation, turn);
    const prompt: Segment[] = [
      [`p${conversation % PREFIXES}`, 5],
      [`c${conversation}`, 3 * turn],
    ];
    const session = random.next() < 0.85 ? { session: `s${conversation}` } : {};
    steps.push({ ask: `r${i}`, ...session, prompt });
    inFlight.push(`r${i}`);
  }
  for (const id of inFlight) steps.push({ end: id });
  for (let i = 0; i < (withLoads ? 0 : HOT); i++) steps.push({ ask: `h${i}`, session: "hot", prompt: [["hot", 30]] });
  for (let i = 0; i < (withLoads ? 0 : HOT); i++) steps.push({ end: `h${i}` });
  return steps;
}
