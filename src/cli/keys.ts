import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { stringify } from "yaml";
import { ConfigError } from "#config/config-error.ts";
import { type KeyEntry, parseKeysFile, readKeysFile } from "#config/keys-file.ts";
import { names } from "./flag/list-flag.ts";

interface EntryFlags {
  readonly name: string;
  readonly tenant?: string;
  readonly class?: string;
  readonly classes?: readonly string[];
  readonly expires?: string;
}

const STDIN = 0;
const KEY_BYTES = 32;
/** A shorter key could be found by trying. */
const KEY_CHARS_MIN = 20;

/** Makes entries for the file of clients' keys, which holds digests alone. */
export function keysCommand(): Command {
  const command = new Command("keys").description(
    "Make and check entries of clients.keysFile: API keys as SHA-256 digests, bound to tenants.",
  );
  for (const part of [newCommand(), hashCommand(), checkCommand()]) command.addCommand(part);
  return command;
}

function newCommand(): Command {
  return entryOptions(new Command("new"))
    .description("Make a key; prints the key once on standard error and its entry on standard output.")
    .action((flags: EntryFlags) => {
      const key = `gk-${randomBytes(KEY_BYTES).toString("base64url")}`;
      const text = entryText(key, flags);
      process.stderr.write(`${key}\n`);
      process.stdout.write(text);
    });
}

function hashCommand(): Command {
  return entryOptions(new Command("hash"))
    .description("Read a key from standard input and print its entry.")
    .action((flags: EntryFlags) => {
      const key = readFileSync(STDIN, "utf8").trim();
      if (key.length < KEY_CHARS_MIN || /\s/.test(key)) {
        const expected = `a key of at least ${KEY_CHARS_MIN} characters without spaces`;
        throw new ConfigError([`standard input: expected ${expected}, got ${key.length} characters`]);
      }
      process.stdout.write(entryText(key, flags));
    });
}

function checkCommand(): Command {
  return new Command("check")
    .description("Check a file of keys and list whose keys they are.")
    .argument("<file>", "YAML file, as clients.keysFile names it")
    .action((file: string) => {
      for (const { name, tenant, class: sloClass, expires } of readKeysFile(file)) {
        const parts = [name, tenant ?? name, sloClass === "" ? "-" : sloClass, expires ?? "-"];
        process.stdout.write(`${parts.join("\t")}\n`);
      }
    });
}

function entryOptions(command: Command): Command {
  return command
    .requiredOption("--name <name>", "name of the key, for whoever maintains the file")
    .option("--tenant <name>", "tenant of its requests (default: the key's name)")
    .option("--class <class>", "service class of its requests")
    .option("--classes <class>", "another service class that its requests may name; repeat for more", names)
    .option("--expires <time>", "when it expires, ISO 8601 with an offset");
}

/** Checked as the gateway checks it. */
function entryText(key: string, { name, tenant, class: sloClass, classes, expires }: EntryFlags): string {
  const entry: Partial<KeyEntry> = {
    name,
    sha256: createHash("sha256").update(key).digest("hex"),
    ...(tenant !== undefined && { tenant }),
    ...(sloClass !== undefined && { class: sloClass }),
    ...(classes !== undefined && { classes: [...classes] }),
    ...(expires !== undefined && { expires }),
  };
  const text = stringify({ keys: [entry] });
  parseKeysFile("the entry", text);
  return text.replace(/^keys:\n/, "");
}
