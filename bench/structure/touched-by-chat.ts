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
/** Chats of one window: what runs in each of them runs as often at least. */
const CHATS = 8;
const WARM_UP_CHATS = 2;
const WINDOW_MILLIS = 3_000;
/** Of the same length, without a chat: what runs in them is no part of one. */
const IDLE_WINDOWS = 2;

/** How often each function of each file of src ran: path, name and place, count. */
type Calls = ReadonlyMap<string, ReadonlyMap<string, number>>;

/**
 * Functions of src that run in a gateway's process for one streamed chat, by the files that they are in: those that ran in
 * a window with `CHATS` chats at least so many times more than in any window of the same length without one. So what
 * ticks by itself, such as a rollout's keeper or the sweep of what is silent, is no part of a chat, unless the chat calls
 * it too.
 */
export async function touchedByChat(root: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const inspector = await freePort();
  // An emulated fleet is in processes of its own, and is scraped no more.
  const flags = ["--set", "scrape.intervalMillis=60000"];
  const { port } = await startGateway([], flags, 0, root, [`--inspect=127.0.0.1:${inspector}`]);
  const { post: profiler, close } = await openInspector(inspector);
  const source = `${pathToFileURL(root).href}/src/`;
  const window = async (chats: number): Promise<Calls> => {
    // The counters begin anew each time that they are taken.
    await profiler("Profiler.takePreciseCoverage");
    const over = sleep(WINDOW_MILLIS);
    for (let times = 0; times < chats; times++) await chat(port);
    await over;
    const { result } = (await profiler("Profiler.takePreciseCoverage")) as Profiler.TakePreciseCoverageReturnType;
    return new Map(
      result
        .filter(({ url }) => url.startsWith(source))
        .map(({ url, functions }) => [url.slice(source.length - "src/".length), countsOf(functions)]),
    );
  };
  try {
    await profiler("Profiler.enable");
    await profiler("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    for (let times = 0; times < WARM_UP_CHATS; times++) await chat(port);
    const idle: Calls[] = [];
    // What is still done of the chats before is no idleness.
    await window(0);
    for (let times = 0; times < IDLE_WINDOWS; times++) idle.push(await window(0));
    // What is done once in a while falls into one of them at most.
    const [one, other] = [beyond(await window(CHATS), idle), beyond(await window(CHATS), idle)];
    const both = [...one].map(([path, functions]) => {
      const again = new Set(other.get(path));
      return [path, functions.filter((name) => again.has(name))] as const;
    });
    return new Map(both.filter(([, functions]) => functions.length > 0));
  } finally {
    close();
    endAll();
  }
}

function countsOf(functions: readonly Profiler.FunctionCoverage[]): ReadonlyMap<string, number> {
  return new Map(
    functions
      .filter(({ functionName }) => functionName !== "")
      .map(({ functionName, ranges: [whole] }) => [`${functionName} ${whole?.startOffset ?? 0}`, whole?.count ?? 0]),
  );
}

function beyond(calls: Calls, idle: readonly Calls[]): ReadonlyMap<string, readonly string[]> {
  const touched = [...calls].map(([path, counts]) => {
    const besides = (name: string) => Math.max(...idle.map((window) => window.get(path)?.get(name) ?? 0));
    const ran = [...counts].filter(([name, count]) => count - besides(name) >= CHATS);
    return [path, ran.map(([name]) => name.slice(0, name.lastIndexOf(" ")))] as const;
  });
  return new Map(touched.filter(([, functions]) => functions.length > 0));
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
