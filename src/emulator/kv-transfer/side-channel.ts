import { Agent, request } from "../http/node-http.ts";

/** What one engine asks another about blocks that it holds. */
export type SideChannelAsk = "renew" | "take";

/** Route of an emulated engine on which others ask; a real one has a port of its own for it. */
export const SIDE_CHANNEL_PATH = "/emulator/kv-blocks";

const AGENT = new Agent({ keepAlive: true, maxSockets: 64 });
/** Far longer than any answer takes: an engine that is there answers, however busy its machine is. */
const ANSWER_MS_MAX = 20_000;

/** Whether the engine there holds the blocks of a request; false as well where nobody answers. */
export function askProducer(
  { host, port }: { readonly host: string; readonly port: number },
  engineId: string,
  requestId: string,
  ask: SideChannelAsk,
): Promise<boolean> {
  const body = JSON.stringify({ engineId, requestId, ask });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const options = {
    host,
    port,
    path: SIDE_CHANNEL_PATH,
    method: "POST",
    headers,
    agent: AGENT,
    timeout: ANSWER_MS_MAX,
  };
  return new Promise((resolve) => {
    const asked = request(options, (answer) => {
      answer.resume();
      answer.once("close", () => resolve(answer.statusCode === 200));
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
    asked.end(body);
  });
}
