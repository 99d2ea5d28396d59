const TURN_MILLIS = 200;
const LIMIT_MILLIS = 120_000;

/** Waits until something is so; an error of asking is a no. */
export async function until<T>(what: string, ask: () => T | Promise<T>): Promise<NonNullable<Exclude<T, false>>> {
  const from = performance.now();
  for (;;) {
    let last: unknown;
    try {
      const found = await ask();
      if (found !== undefined && found !== null && found !== false) return found as NonNullable<Exclude<T, false>>;
    } catch (error) {
      last = error;
    }
    if (performance.now() - from > LIMIT_MILLIS) throw new Error(`waited too long for ${what}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, TURN_MILLIS));
  }
}
