/** Resolves once the condition holds. Rejects after as long as no healthy run takes. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + 4_000;
  while (!holds()) {
    if (performance.now() > giveUpAt) throw new Error(`not within 4 s: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 2);
    });
  }
}
