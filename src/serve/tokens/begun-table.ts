import { readHuggingFaceFiles } from "#live/tokenizer/hugging-face-files.ts";
import { keptTables } from "#live/tokenizer/table/kept-tables.ts";
import { makeAside } from "#live/tokenizer/table/make-aside.ts";
import type { MadeTable, TableRequest, TableSource } from "#live/tokenizer/table/table-source.ts";
import type { Config } from "#config/schema.ts";
import { tableFolder } from "./table-folder.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Begins the table of the first tokenizer.json that the configuration names, before the gateway's own code is loaded: the
 * process that makes it runs meanwhile on another core, which is half a second of a machine's first start. One alone, since
 * each takes 400 MB. Resolves as soon as that process is there, or is not needed; what is wrong with a file is reported by
 * whoever asks for its table.
 */
export async function beginTable(config: Config, environment: Environment): Promise<TableSource> {
  const folder = tableFolder(config, environment);
  const later = keptTables(folder);
  const { models, ...fallback } = config.tokenizer;
  const first = [...Object.values(models), fallback].find(({ kind, file }) => kind === "huggingface" && file);
  const request = first?.file && (await readHuggingFaceFiles(first.file, first.chatTemplate).catch(() => undefined));
  if (!request) return later;
  const { underWay, made } = begin(folder, request);
  await underWay;
  const key = keyOf(request);
  return (asked) => (keyOf(asked) === key ? made : later(asked));
}

function begin(folder: string | undefined, request: TableRequest) {
  const started = Promise.withResolvers<void>();
  const made: Promise<MadeTable> = keptTables(folder, (order) => {
    const answer = makeAside(order);
    started.resolve();
    return answer;
  })(request);
  // Whoever asks for it gets the error.
  const over = made.then(
    () => {},
    () => {},
  );
  return { underWay: Promise.race([started.promise, over]), made };
}

function keyOf({ tokenizerPath, addedTokensDecoder }: TableRequest): string {
  return JSON.stringify([tokenizerPath, addedTokensDecoder ?? null]);
}
