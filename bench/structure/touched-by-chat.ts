import type { Profiler } from "node:inspector";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { endAll } from "../children.ts";
import { freePort } from "../free-port.ts";
import { startGateway } from "../gateway-process.ts";

const CHAT = {
  model: "llama-3.1-8b",
  stream: true,
  max_tokens: 16,
  messages: [{ role: "user", content: "Which of the files is this about? ".repeat(20) }],
};
const SETTLE_MILLIS = 500;

/** Functions of src that run in a gateway's process while it serves one streamed chat, and the files that they are in. */
export async function touchedByChat(root: string): Promise<{ readonly functions: number; readonly files: number }> {
  const inspector = await freePort();
  // Nothing but the chat: an emulated fleet is in processes of its own, and is scraped no more.
  const flags = ["--set", "scrape.intervalMillis=60000"];
  const { port } = await startGateway([], flags, 0, root, [`--inspect=127.0.0.1:${inspector}`]);
  const { post: profiler, close } = await openInspector(inspector);
  try {
    await profiler("Profiler.enable");
    await profiler("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    for (let times = 0; times < 2; times++) await chat(port);
    await sleep(SETTLE_MILLIS);
    // The counters begin anew each time that they are taken.
    await profiler("Profiler.takePreciseCoverage");
    await chat(port);
    await sleep(SETTLE_MILLIS);
    const { result } = (await profiler("Profiler.takePreciseCoverage")) as Profiler.TakePreciseCoverageReturnType;
    const source = `${pathToFileURL(root).href}/src/`;
    const ran = result
      .filter(({ url }) => url.startsWith(source))
      .map(({ functions }) =>
        functions.filter(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0),
      );
    const touched = ran.filter((functions) => functions.length > 0);
    return { functions: touched.reduce((sum, functions) => sum + functions.length, 0), files: touched.length };
  } finally {
    close();
    endAll();
  }
}

async function chat(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(CHAT),
  });
  const text = await answer.text();
  if (!text.includes("[DONE]")) throw new Error(`expected a whole stream, got ${answer.status}: ${text.slice(0, 200)}`);
}

type Post = (method: string, params?: object) => Promise<object>;

async function openInspector(port: number): Promise<{ readonly post: Post; readonly close: () => void }> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(targets[0]!.webSocketDebuggerUrl);
  const waiting = new Map<number, (result: object) => void>();
  socket.addEventListener("message", ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id?: number; result?: object };
    if (id !== undefined) waiting.get(id)?.(result ?? {});
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error(`no inspector at port ${port}`)));
  });
  let sent = 0;
  const post: Post = (method, params = {}) =>
    new Promise((resolve) => {
      waiting.set(++sent, resolve);
      socket.send(JSON.stringify({ id: sent, method, params }));
    });
  return { post, close: () => socket.close() };
}
