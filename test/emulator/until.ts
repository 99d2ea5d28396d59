/** Resolves once the condition holds. Rejects after as long as no healthy run takes. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > giveUpAt) throw new Error(`not within 60 s: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 2);
    });
  }
}
