interface Event {
  readonly type: string;
  readonly delta?: { readonly stop_reason?: string | null };
  readonly usage?: { readonly output_tokens?: number };
}

/** A streamed answer of Anthropic's messages: why it is not whole, "" where it is, with the arrivals of its pieces. */
export async function askMessages(
  port: number,
  number: number,
  tokens: number,
): Promise<{ readonly flaw: string; readonly arrivals: readonly number[] }> {
  const content = `Message ${number}: which of the ${number} ships came back?`;
  const asked = { model: "tiny", messages: [{ role: "user", content }], max_tokens: tokens, temperature: 0 };
  const arrivals: number[] = [];
  const events: Event[] = [];
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...asked, stream: true, ignore_eos: true }),
    });
    if (answer.status !== 200) return { flaw: `messages: status ${answer.status}`, arrivals };
    let rest = "";
    for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
      arrivals.push(performance.now());
      const lines = (rest + piece).split("\n");
      rest = lines.pop()!;
      for (const line of lines)
        if (line.startsWith("data: {")) events.push(JSON.parse(line.slice("data: ".length)) as Event);
    }
  } catch (error) {
    return { flaw: `messages: ${String(error)}`, arrivals };
  }
  const end = events.findLast(({ type }) => type === "message_delta");
  const [reason, counted] = [end?.delta?.stop_reason ?? "nothing", end?.usage?.output_tokens];
  if (events.at(-1)?.type !== "message_stop") return { flaw: "messages: no mark of completion", arrivals };
  if (reason !== "max_tokens") return { flaw: `messages: ended by ${reason}`, arrivals };
  return { flaw: counted === tokens ? "" : `messages: counts ${counted} tokens`, arrivals };
}
