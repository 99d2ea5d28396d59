import { type ByteReader, WireError } from "./byte-reader.ts";
import type { ByteWriter } from "./byte-writer.ts";
import { type Beside, type FieldType, type Optional, type Place, type Table, objectOf, pathOf } from "./field-type.ts";
import { expected, TraceFormatError } from "./format-error.ts";
import type { JsonBytes } from "./json-bytes.ts";

/** A record as its table has it: as an object of JSON, as the fields of one, and as bytes. */
export interface RecordType<T> extends FieldType<T> {
  /** `,"name":value` for each field that is written. */
  fields(value: T, to: JsonBytes, beside: Beside): void;
  /** Reads its fields of an object, which may have others. */
  readFields(value: Readonly<Record<string, unknown>>, place: Place | undefined, beside: Beside): T;
  pack(this: void, value: T, to: ByteWriter, beside: Beside): void;
  unpack(this: void, from: ByteReader, beside: Beside): T;
}

interface Field {
  readonly property: string;
  readonly name: string;
  /** Of its name in JSON. */
  readonly head: Uint8Array;
  readonly type: FieldType<unknown>;
  /** Of the type, without a look into it for each value. */
  readonly write: FieldType<unknown>["write"];
  readonly omits: FieldType<unknown>["omits"];
  readonly isOptional: boolean;
}

type Values = Record<string, unknown>;

function fieldsOf(table: object): Field[] {
  return Object.entries(table as Record<string, FieldType<unknown> | Optional<unknown>>).map(([property, entry]) => {
    const isOptional = "optional" in entry;
    const type = isOptional ? entry.optional : entry;
    const name = type.as ?? property;
    return {
      property,
      name,
      head: Buffer.from(`,${JSON.stringify(name)}:`),
      type,
      write: type.write,
      omits: type.omits,
      isOptional,
    };
  });
}

/** `check` throws what is wrong between fields. */
export function record<T extends object>(
  table: Table<T>,
  check?: (value: T, place: Place | undefined) => void,
): RecordType<T> {
  const all = fieldsOf(table);
  const readFields: RecordType<T>["readFields"] = (values, place, beside) => {
    const made: Values = {};
    for (const { property, name, type, isOptional } of all) {
      const given = values[name];
      if (isOptional && given === undefined) continue;
      const value = type.read(given, place, name, beside);
      if (!isOptional || value !== undefined) made[property] = value;
    }
    check?.(made as T, place);
    return made as T;
  };
  const fields: RecordType<T>["fields"] = (value, to, beside) => {
    for (const { property, head, write, omits } of all) {
      const own = (value as Values)[property];
      if (own === undefined || omits?.(own) === true) continue;
      to.bytes(head);
      write(own, to, beside);
    }
  };
  return {
    fields,
    readFields,
    write(value, to, beside) {
      const start = to.length;
      fields(value, to, beside);
      to.object(start);
    },
    read: (value, parent, key, beside) => readFields(objectOf(value, parent, key), { parent, key }, beside),
    pack(value, to, beside) {
      for (const { property, type, isOptional } of all) {
        const own = (value as Values)[property];
        if (isOptional) to.byte(own === undefined ? 0 : 1);
        if (!isOptional || own !== undefined) type.pack!(own, to, beside);
      }
    },
    unpack(from, beside) {
      const made: Values = {};
      for (const { property, type, isOptional } of all) {
        if (isOptional) {
          const mark = from.byte();
          if (mark > 1) throw new WireError("a mark is neither 0 nor 1");
          if (mark === 0) continue;
        }
        made[property] = type.unpack!(from, beside);
      }
      return made as T;
    },
  };
}

/** Records of several kinds by the word that names their kind; `T` without that word is what each table describes. */
export type TablesByKind<T, Tag extends keyof T> = T[Tag] extends string
  ? { readonly [K in T[Tag]]: RecordType<Omit<Extract<T, Readonly<Record<Tag, K>>>, Tag>> }
  : never;

/** As bytes, a kind is its place among them, so that new ones go behind the others. */
export function tagged<T extends object, Tag extends keyof T & string>(
  tag: Tag,
  tables: TablesByKind<T, Tag>,
  isOpen = false,
): FieldType<T> {
  const byKind = tables as Readonly<Record<string, RecordType<object>>>;
  const kinds = Object.keys(byKind);
  return {
    write(value, to, beside) {
      const kind = value[tag] as string;
      const start = to.length;
      to.ascii(`,"${tag}":"${kind}"`);
      byKind[kind]!.fields(value, to, beside);
      to.object(start);
    },
    read(value, parent, key, beside) {
      const given = objectOf(value, parent, key);
      const place = { parent, key };
      const kind = given[tag];
      if (typeof kind !== "string" || !Object.hasOwn(byKind, kind)) {
        const path = pathOf(place, tag);
        if (!isOpen) throw expected(path, `one of ${kinds.join(", ")}`, kind);
        throw new TraceFormatError(
          "unknown-kind",
          `${path}: expected a kind of version 1, got ${JSON.stringify(kind)}`,
        );
      }
      return { [tag]: kind, ...byKind[kind]!.readFields(given, place, beside) } as T;
    },
    pack(value, to, beside) {
      const kind = value[tag] as string;
      to.byte(kinds.indexOf(kind));
      byKind[kind]!.pack(value, to, beside);
    },
    unpack(from, beside) {
      const kind = kinds[from.byte()];
      if (kind === undefined) throw new WireError("a record of an unknown kind");
      return { [tag]: kind, ...byKind[kind]!.unpack(from, beside) } as T;
    },
  };
}
