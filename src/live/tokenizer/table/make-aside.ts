import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { TableFolder } from "./table-folder.ts";
import type { MadeTable, TableRequest } from "./table-source.ts";

const WORKER = fileURLToPath(new URL("./make-table.worker.ts", import.meta.url));

/** What the process is to make, and where it may leave it. */
export interface AsideOrder extends TableRequest {
  readonly folder: string | undefined;
  readonly key: string;
  /** Of the file that the key is of. */
  readonly digest: string;
}

/** Its answer: a table that lies in the folder now, the table itself and why it could not be kept, or none and why. */
export type AsideAnswer =
  | { readonly kind: "kept" }
  | { readonly kind: "made"; readonly bytes: Uint8Array; readonly notKept: string }
  | { readonly kind: "none"; readonly reason: string }
  | { readonly kind: "failed"; readonly message: string };

/**
 * Has a table made by another process. Undefined where that did not answer. Throws an error that states what is wrong
 * with the file.
 */
export async function makeAside(order: AsideOrder): Promise<MadeTable | undefined> {
  const { folder, key } = order;
  const answer = await ask(order);
  switch (answer?.kind) {
    case undefined:
      return undefined;
    case "failed":
      throw new Error(answer.message);
    case "none":
      return { reason: answer.reason };
    case "kept": {
      const table = folder === undefined ? undefined : new TableFolder(folder).read(key);
      return table && { table, from: "made and kept in the folder of tables" };
    }
    case "made": {
      const table = new SharedArrayBuffer(answer.bytes.byteLength);
      new Uint8Array(table).set(answer.bytes);
      return { table, from: `made and not kept: ${answer.notKept}` };
    }
  }
}

function ask(order: AsideOrder): Promise<AsideAnswer | undefined> {
  return new Promise((resolve) => {
    const child = fork(WORKER, {
      // Flags of this process, as a profiler or a test runner has them, are not for it.
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child.once("message", (answer: AsideAnswer) => resolve(answer));
    child.once("error", () => resolve(undefined));
    child.once("exit", () => resolve(undefined));
    child.send(order, (error) => {
      if (error !== null) resolve(undefined);
    });
  });
}
