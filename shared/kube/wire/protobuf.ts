import { type JsonObject, setMember } from './json-value.ts';
import { PROTOBUF_KINDS, type ProtoMessage, type ProtoType } from './protobuf-kinds.ts';

/** Media type of the bodies that kubectl 1.32 and kubelets send from their typed clients. */
export const PROTOBUF_MEDIA_TYPE = 'application/vnd.kubernetes.protobuf';

/** The first bytes of every such body: `k8s` and a zero byte. */
const MAGIC = [0x6b, 0x38, 0x73, 0x00] as const;

export type DecodedProtobuf =
  /** The object in its JSON form, with `apiVersion` and `kind`. No schema has checked it yet. */
  | { readonly kind: 'decoded'; readonly object: JsonObject }
  | { readonly kind: 'malformed'; readonly message: string }
  /** Well-formed, but of a kind that is accepted only as JSON. */
  | { readonly kind: 'unsupported'; readonly message: string };

/** Whether a body has the protobuf envelope of Kubernetes. The content type is not considered. */
export function isProtobuf(body: Uint8Array): boolean {
  return body.length >= MAGIC.length && MAGIC.every((byte, index) => body[index] === byte);
}

/**
 * Decodes a body in Kubernetes' protobuf envelope: magic, then Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw}.
 *
 * The work is linear in the length of the body, because nothing is read twice. The message tables are not recursive, so
 * they bound the nesting. Unknown fields are skipped, as protobuf requires. Source: Kubernetes documentation,
 * "Protobuf encoding".
 */
export function decodeProtobuf(body: Uint8Array): DecodedProtobuf {
  if (!isProtobuf(body))
    return { kind: 'malformed', message: 'provided data does not appear to be a protobuf message' };
  try {
    return decodeEnvelope(body.subarray(MAGIC.length));
  } catch (error) {
    if (error instanceof ProtobufFault)
      return { kind: 'malformed', message: `malformed protobuf body: ${error.message}` };
    throw error;
  }
}

/** Ends the recursive decoding. decodeProtobuf converts it to `malformed`. */
class ProtobufFault extends Error {}

function decodeEnvelope(bytes: Uint8Array): DecodedProtobuf {
  let apiVersion = '';
  let kind = '';
  let raw: Uint8Array = new Uint8Array();
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) {
      for (const inner of fieldsOf(bytesOf(field))) {
        if (inner.number === 1) apiVersion = readText(inner);
        if (inner.number === 2) kind = readText(inner);
      }
    } else if (field.number === 2) {
      raw = bytesOf(field);
    } else if (field.number === 3 && readText(field) !== '') {
      throw new ProtobufFault('content encodings are not supported');
    }
  }
  const message = messageOf(apiVersion, kind);
  if (message === undefined) {
    return { kind: 'unsupported', message: `${kind || 'an object without kind'} (${apiVersion}) is read as JSON only` };
  }
  return { kind: 'decoded', object: { apiVersion, kind, ...decodeMessage(message, raw) } };
}

/** The table of a kind. Clients send DeleteOptions with the apiVersion of the deleted object. */
function messageOf(apiVersion: string, kind: string): ProtoMessage | undefined {
  return PROTOBUF_KINDS[kind === 'DeleteOptions' ? 'v1 DeleteOptions' : `${apiVersion} ${kind}`];
}

function decodeMessage(message: ProtoMessage, bytes: Uint8Array): JsonObject {
  const object: JsonObject = {};
  for (const field of fieldsOf(bytes)) {
    const known = message[field.number];
    if (known === undefined) continue;
    const [name, type, shape] = known;
    if (shape === 'map') {
      const entries = (object[name] ?? {}) as JsonObject;
      object[name] = entries;
      const [key, value] = decodeMapEntry(type, bytesOf(field));
      setMember(entries, key, value);
    } else if (shape === 'list') {
      const items = (object[name] ?? []) as unknown[];
      object[name] = items;
      items.push(decodeField(type, field));
    } else {
      object[name] = decodeField(type, field);
    }
  }
  return object;
}

function decodeMapEntry(type: ProtoType, bytes: Uint8Array): [string, unknown] {
  let key = '';
  let value: unknown = type === 'string' ? '' : null;
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) key = readText(field);
    if (field.number === 2) value = decodeField(type, field);
  }
  return [key, value];
}

function decodeField(type: ProtoType, field: WireField): unknown {
  if (typeof type !== 'string') return decodeMessage(type, bytesOf(field));
  switch (type) {
    case 'string':
      return readText(field);
    case 'bool':
      return numberOf(field) !== 0n;
    case 'int':
      return Number(BigInt.asIntN(64, numberOf(field)));
    case 'time':
    case 'microTime':
      return readTime(bytesOf(field), type);
    case 'quantity':
      return textAt(bytesOf(field), 1);
    case 'intOrString':
      return readIntOrString(bytesOf(field));
    case 'json':
      return readJson(bytesOf(field));
  }
}

/** The first and last second that RFC 3339 can express, years 0001 to 9999. Seconds since the epoch. */
const SECONDS_MIN = -62_135_596_800;
const SECONDS_MAX = 253_402_300_799;

function readTime(bytes: Uint8Array, type: 'time' | 'microTime'): string | null {
  let seconds = 0;
  let nanos = 0;
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) seconds = Number(BigInt.asIntN(64, numberOf(field)));
    if (field.number === 2) nanos = Number(BigInt.asIntN(64, numberOf(field)));
  }
  if (seconds === 0 && nanos === 0) return null;
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX || nanos < 0 || nanos > 999_999_999) {
    throw new ProtobufFault('time out of range');
  }
  const utc = new Date(seconds * 1_000).toISOString().slice(0, 19);
  if (type === 'time') return `${utc}Z`;
  return `${utc}.${String(Math.trunc(nanos / 1_000)).padStart(6, '0')}Z`;
}

function readIntOrString(bytes: Uint8Array): string | number {
  let isText = false;
  let integer = 0;
  let text = '';
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) isText = numberOf(field) === 1n;
    if (field.number === 2) integer = Number(BigInt.asIntN(64, numberOf(field)));
    if (field.number === 3) text = readText(field);
  }
  return isText ? text : integer;
}

/** A message with JSON in its first field (FieldsV1). */
function readJson(bytes: Uint8Array): unknown {
  const text = textAt(bytes, 1);
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new ProtobufFault('a field that holds JSON does not');
    throw error;
  }
}

function textAt(bytes: Uint8Array, number: number): string {
  let text = '';
  for (const field of fieldsOf(bytes)) {
    if (field.number === number) text = readText(field);
  }
  return text;
}

interface WireField {
  readonly number: number;
  /** A varint or fixed number, or the bytes of a length-delimited field. */
  readonly value: bigint | Uint8Array;
}

const FIELD_NUMBER_MAX = 536_870_911n;

function* fieldsOf(bytes: Uint8Array): Generator<WireField> {
  let at = 0;
  while (at < bytes.length) {
    const tag = readVarint(bytes, at);
    at = tag.next;
    const number = tag.value >> 3n;
    if (number === 0n || number > FIELD_NUMBER_MAX) throw new ProtobufFault('bad field number');
    let value: bigint | Uint8Array;
    let end: number;
    switch (tag.value & 7n) {
      case 0n: {
        const varint = readVarint(bytes, at);
        value = varint.value;
        end = varint.next;
        break;
      }
      case 1n:
        end = at + 8;
        value = bytes.subarray(at, end);
        break;
      case 5n:
        end = at + 4;
        value = bytes.subarray(at, end);
        break;
      case 2n: {
        const length = readVarint(bytes, at);
        if (length.value > BigInt(bytes.length - length.next)) throw new ProtobufFault('a field ends beyond the body');
        end = length.next + Number(length.value);
        value = bytes.subarray(length.next, end);
        break;
      }
      default:
        throw new ProtobufFault('unsupported wire type');
    }
    if (end > bytes.length) throw new ProtobufFault('a field ends beyond the body');
    at = end;
    yield { number: Number(number), value };
  }
}

/** At most ten bytes make a 64-bit number. */
function readVarint(bytes: Uint8Array, start: number): { value: bigint; next: number } {
  let value = 0n;
  for (let index = 0; index < 10; index += 1) {
    const byte = bytes[start + index];
    if (byte === undefined) throw new ProtobufFault('a number ends beyond the body');
    value |= BigInt(byte & 0x7f) << BigInt(7 * index);
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), next: start + index + 1 };
  }
  throw new ProtobufFault('a number is longer than ten bytes');
}

function bytesOf(field: WireField): Uint8Array {
  if (typeof field.value === 'bigint') throw new ProtobufFault(`field ${field.number} is a number`);
  return field.value;
}

function numberOf(field: WireField): bigint {
  if (typeof field.value !== 'bigint') throw new ProtobufFault(`field ${field.number} is not a number`);
  return field.value;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function readText(field: WireField): string {
  const bytes = bytesOf(field);
  try {
    return UTF8.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) throw new ProtobufFault(`field ${field.number} is not UTF-8`);
    throw error;
  }
}
