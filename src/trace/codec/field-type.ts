import type { BlockChain } from "#core/prompt/block-chain.ts";
import { expected } from "./format-error.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { type ByteReader, WireError } from "./byte-reader.ts";
import type { ByteWriter } from "./byte-writer.ts";

/** Where a record stands in a line; undefined for the line itself. */
export interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
}

/** What is beside a record: its prompts' blocks, and how much of a decision is written. */
export interface Beside {
  /** Candidates of a decision that are written, at most. */
  readonly candidatesMax: number;
  /** The next prompt of the record that is read. */
  chain(): BlockChain;
  packChain(chain: BlockChain, to: ByteWriter): void;
  unpackChain(from: ByteReader): BlockChain;
}

/** Of records without a prompt. */
export const NOTHING_BESIDE: Beside = {
  candidatesMax: Infinity,
  chain: nothing,
  packChain: nothing,
  unpackChain: nothing,
};

function nothing(): never {
  throw new RangeError("there is no prompt beside this record");
}

/**
 * How the values of a field are written as JSON and as bytes, and read back. Reading checks: it throws TraceFormatError
 * with the path, or WireError. Whatever travels as JSON alone has no bytes.
 */
export interface FieldType<T> {
  write(this: void, value: T, to: JsonBytes, beside: Beside): void;
  /** What is left out, and read as `undefined`, beside `undefined` itself. */
  omits?(this: void, value: T): boolean;
  read(value: unknown, parent: Place | undefined, key: string | number, beside: Beside): T;
  pack?(this: void, value: T, to: ByteWriter, beside: Beside): void;
  unpack?(this: void, from: ByteReader, beside: Beside): T;
  /** Its name in JSON, where that is another one than the record's. */
  readonly as?: string;
}

/** A field that a record may lack; what is read as undefined is as if it were left out. */
export interface Optional<T> {
  readonly optional: FieldType<T> | (Omit<FieldType<T>, "read"> & Pick<FieldType<T | undefined>, "read">);
}

type OptionalKeys<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? K : never }[keyof T];

/** A type for every field of a record, in the order in which they travel. */
export type Table<T> = {
  readonly [K in keyof T]-?: K extends OptionalKeys<T> ? Optional<Exclude<T[K], undefined>> : FieldType<T[K]>;
};

/** `a.b[2].c` */
export function pathOf(parent: Place | undefined, key: string | number): string {
  const before = parent === undefined ? "" : pathOf(parent.parent, parent.key);
  if (typeof key === "number") return `${before}[${key}]`;
  return before === "" ? key : `${before}.${key}`;
}

export function optional<T>(type: FieldType<T>): Optional<T> {
  return { optional: type };
}

/** The same under another name in JSON. */
export function as<T>(name: string, type: FieldType<T>): FieldType<T> {
  return { ...type, as: name };
}

/** Left out where it is the usual value. */
export function usually<T extends string | number | boolean>(usual: T, type: FieldType<T>): FieldType<T> {
  return {
    ...type,
    omits: (value) => value === usual,
    read: (value, parent, key, beside) => (value === undefined ? usual : type.read(value, parent, key, beside)),
  };
}

/** Left out where it is not known. */
export function maybe<T>(type: FieldType<T>): FieldType<T | undefined> {
  const { pack, unpack } = type;
  return {
    ...type,
    write: (value, to, beside) => type.write(value!, to, beside),
    read: (value, parent, key, beside) => (value === undefined ? undefined : type.read(value, parent, key, beside)),
    ...(pack !== undefined &&
      unpack !== undefined && {
        pack: (value: T | undefined, to: ByteWriter, beside: Beside) => {
          to.byte(value === undefined ? 0 : 1);
          if (value !== undefined) pack(value, to, beside);
        },
        unpack: (from: ByteReader, beside: Beside) => (bit(from) ? unpack(from, beside) : undefined),
      }),
  };
}

/** 0 or 1. */
function bit(from: ByteReader): boolean {
  const byte = from.byte();
  if (byte > 1) throw new WireError("a mark is neither 0 nor 1");
  return byte === 1;
}

export const text: FieldType<string> = {
  write: (value, to) => to.text(value),
  read(value, parent, key) {
    if (typeof value !== "string") throw expected(pathOf(parent, key), "a string", value);
    return value;
  },
  pack: (value, to) => to.text(value),
  unpack: (from) => from.text(),
};

export const bool: FieldType<boolean> = {
  write: (value, to) => to.ascii(value ? "true" : "false"),
  read(value, parent, key) {
    if (typeof value !== "boolean") throw expected(pathOf(parent, key), "true or false", value);
    return value;
  },
  pack: (value, to) => to.byte(value ? 1 : 0),
  unpack: bit,
};

/** True, or left out. */
export const flag: Optional<true> = {
  optional: {
    write: (_value, to) => to.ascii("true"),
    read: (value, parent, key, beside) => (bool.read(value, parent, key, beside) ? true : undefined),
    pack: () => {},
    unpack: () => true,
  },
};

/** Any finite number; as bytes a whole one of at least `least`, the nearest. */
export function numberOf(least = 0): FieldType<number> {
  return {
    write: (value, to) => to.number(value),
    read(value, parent, key) {
      if (typeof value !== "number") throw expected(pathOf(parent, key), "a number", value);
      return value;
    },
    pack: (value, to) => to.whole(Math.min(WHOLE_MAX, Math.max(least, Math.round(value)))),
    unpack: (from) => whole(from, least),
  };
}

/** Engines report what they like. */
const WHOLE_MAX = 2 ** 52;

export const number: FieldType<number> = numberOf();

/** A safe integer of at least `min`, and of at most `max`. */
export function integer(min: number, max = Infinity): FieldType<number> {
  return {
    write: (value, to) => to.number(value),
    read(value, parent, key) {
      if (!Number.isSafeInteger(value) || (value as number) < min)
        throw expected(pathOf(parent, key), `an integer of at least ${min}`, value);
      if ((value as number) > max) throw expected(pathOf(parent, key), `an integer of at most ${max}`, value);
      return value as number;
    },
    pack: (value, to) => to.whole(value),
    unpack: (from) => whole(from, min),
  };
}

function whole(from: ByteReader, least: number): number {
  const value = from.whole();
  if (value < least) throw new WireError(`a number is below ${least}`);
  return value;
}

/** One of these words; as bytes its place among them. */
export function oneOf<const T extends string>(accepted: readonly T[]): FieldType<T> {
  return {
    write: (value, to) => to.text(value),
    read(value, parent, key) {
      const found = accepted.find((word) => word === value);
      if (found === undefined) throw expected(pathOf(parent, key), `one of ${accepted.join(", ")}`, value);
      return found;
    },
    pack: (value, to) => to.byte(accepted.indexOf(value)),
    unpack(from) {
      const word = accepted[from.byte()];
      if (word === undefined) throw new WireError(`expected one of ${accepted.join(", ")}`);
      return word;
    },
  };
}

/** Whatever JSON has, as long as it is a list or an object; who uses it checks it. */
export function unchecked<T extends object>(what: "a list" | "an object"): FieldType<T> {
  return {
    write: (value, to) => to.json(JSON.stringify(value)),
    read(value, parent, key) {
      if (value === null || typeof value !== "object" || Array.isArray(value) !== (what === "a list"))
        throw expected(pathOf(parent, key), what, value);
      return value as T;
    },
  };
}

/** At most `max` of them as bytes. */
export function listOf<T>(type: FieldType<T>, max = 1_000_000): FieldType<readonly T[]> {
  const { pack, unpack } = type;
  return {
    write(values, to, beside) {
      const start = to.length;
      for (const value of values) {
        to.comma();
        type.write(value, to, beside);
      }
      to.list(start);
    },
    read(value, parent, key, beside) {
      if (!Array.isArray(value)) throw expected(pathOf(parent, key), "a list", value);
      const place = { parent, key };
      return (value as unknown[]).map((one, i) => type.read(one, place, i, beside));
    },
    ...(pack !== undefined &&
      unpack !== undefined && {
        pack: (values: readonly T[], to: ByteWriter, beside: Beside) => {
          to.whole(values.length);
          for (const value of values) pack(value, to, beside);
        },
        unpack: (from: ByteReader, beside: Beside) => {
          const count = from.whole();
          if (count > max) throw new WireError(`a list has more than ${max} entries`);
          return Array.from({ length: count }, () => unpack(from, beside));
        },
      }),
  };
}

/** Values by name. */
export function mapOf<T>(type: FieldType<T>): FieldType<Readonly<Record<string, T>>> {
  return {
    write(values, to, beside) {
      const start = to.length;
      for (const [name, value] of Object.entries(values)) {
        to.json(`,${JSON.stringify(name)}:`);
        type.write(value, to, beside);
      }
      to.object(start);
    },
    read(value, parent, key, beside) {
      const place = { parent, key };
      const entries = Object.entries(objectOf(value, parent, key));
      return Object.fromEntries(entries.map(([name, one]) => [name, type.read(one, place, name, beside)]));
    },
  };
}

export type JsonFields = Readonly<Record<string, unknown>>;

export function objectOf(value: unknown, parent: Place | undefined, key: string | number): JsonFields {
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw expected(pathOf(parent, key), "an object", value);
  return value as JsonFields;
}
