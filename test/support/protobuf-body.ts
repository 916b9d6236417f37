/** Writes objects as the protobuf bodies of Go clients, by the table that the decoder reads. */
import { messages } from '../../shared/kinds/messages.ts';
import type { ProtoField, ProtoMessage } from '../../shared/kubernetes/protobuf-table.ts';

type Json = Record<string, unknown>;

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

export function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

/** A length-delimited field. */
export function field(number: number, ...content: (string | Uint8Array)[]): Uint8Array {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

/** A field with a number. */
export const number = (at: number, value: number | bigint): Uint8Array =>
  Buffer.concat([varint(at << 3), varint(value)]);

export const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** The envelope around the bytes of an object. */
export const envelope = (apiVersion: string, kind: string, ...raw: Uint8Array[]): Uint8Array =>
  Buffer.concat([MAGIC, field(1, field(1, apiVersion), field(2, kind)), field(2, ...raw), field(3), field(4)]);

/** The body for an object with apiVersion and kind. */
export function protobufBody(object: Json): Uint8Array {
  const { apiVersion, kind, ...rest } = object;
  const message = messages.messageOfKind(String(apiVersion), String(kind));
  if (message === undefined) throw new Error(`no protobuf message for ${apiVersion} ${kind}`);
  return envelope(String(apiVersion), String(kind), encode(message, rest));
}

function encode(message: ProtoMessage, object: Json): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [at, { name, type, shape }] of message) {
    if (name === '' && 'message' in type) {
      parts.push(field(at, encode(messages.messageNamed(type.message), object)));
      continue;
    }
    const value = object[name];
    if (value === undefined) continue;
    if (shape === 'list') parts.push(...(value as unknown[]).map((item) => encodeField(at, type, item)));
    else if (shape === 'map') {
      for (const [key, item] of Object.entries(value as Json)) {
        parts.push(field(at, field(1, key), encodeField(2, type, item)));
      }
    } else parts.push(encodeField(at, type, value));
  }
  return Buffer.concat(parts);
}

/** The members of a message that stands for one of them: a list, a schema or a boolean. */
function membersOf(message: string, value: unknown): Json {
  if (!messages.isUnion(message)) return value as Json;
  const names = [...messages.messageNamed(message).values()].map(({ name }) => name);
  const hasFlag = names.includes('allows');
  if (typeof value === 'boolean') return { allows: value };
  if (Array.isArray(value)) return { [names.at(-1)!]: value };
  return { ...(hasFlag ? { allows: true } : {}), schema: value };
}

function encodeField(at: number, type: ProtoField['type'], value: unknown): Uint8Array {
  if ('message' in type) return field(at, encode(messages.messageNamed(type.message), membersOf(type.message, value)));
  switch (type.scalar) {
    case 'string':
      return field(at, value as string);
    case 'bool':
      return number(at, value === true ? 1 : 0);
    case 'int':
      return number(at, value as number);
    case 'double':
      return doubleField(at, value as number);
    case 'bytes':
      return field(at, Buffer.from(value as string, 'base64'));
    case 'time':
    case 'microTime':
      return field(at, ...timeFields(value as string | null));
    case 'quantity':
      return field(at, field(1, String(value)));
    case 'intOrString':
      return typeof value === 'string'
        ? field(at, number(1, 1), number(2, 0), field(3, value))
        : field(at, number(1, 0), number(2, value as number), field(3));
    case 'json':
      return field(at, field(1, JSON.stringify(value)));
    case 'strings':
      return field(at, ...(value as string[]).map((item) => field(1, item)));
  }
}

function doubleField(at: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([varint((at << 3) | 1), bytes]);
}

function timeFields(time: string | null): Uint8Array[] {
  if (time === null) return [];
  const [seconds = '', fraction = '0'] = time.replace('Z', '').split('.');
  return [number(1, Date.parse(`${seconds}Z`) / 1_000), number(2, Number(fraction.padEnd(9, '0')))];
}
