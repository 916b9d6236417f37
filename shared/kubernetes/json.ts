/** JSON bodies, and values of JSON. */

/** Deepest nesting of a body. Real Kubernetes objects stay below 30. */
export const BODY_DEPTH_MAX = 200;

/** Maximum number of reported duplicate fields. */
const DUPLICATES_MAX = 100;

export type ParsedJson =
  | {
      readonly kind: 'parsed';
      readonly value: unknown;
      /** Duplicate members, as messages name them: `duplicate field "spec.taints[0].key"`. The last value wins. */
      readonly duplicates: readonly string[];
    }
  | { readonly kind: 'malformed'; readonly message: string };

/**
 * Parses a JSON body and finds duplicate members, which `JSON.parse` does not report.
 *
 * Malformed text and text nested deeper than BODY_DEPTH_MAX return `malformed` (400 BadRequest). The caller limits the
 * length.
 */
export function parseJson(text: string): ParsedJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'malformed', message: `invalid JSON: ${error.message}` };
    throw error;
  }
  if (nestsDeeperThan(value, BODY_DEPTH_MAX)) {
    return { kind: 'malformed', message: `invalid JSON: nests deeper than ${BODY_DEPTH_MAX} levels` };
  }
  const duplicates = isWrittenAlike(text, value) ? [] : fieldFaults(text);
  return { kind: 'parsed', value: inUnicode(text, value), duplicates };
}

/**
 * The text is what we would write for the value, as most programs write JSON. Then it has no duplicate member: the
 * value has one of them, so its text would be shorter. This costs a quarter of a search.
 */
function isWrittenAlike(text: string, value: unknown): boolean {
  const written = JSON.stringify(value);
  return written === text || `${written}\n` === text;
}

/** The text is decoded UTF-8, so a lone surrogate can only be an escape sequence. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * `value`, parsed from `text`, with U+FFFD for lone surrogates, as Go decodes them. DynamoDB and clients refuse them.
 */
export const inUnicode = (text: string, value: unknown): unknown =>
  SURROGATE_ESCAPE.test(text) ? wellFormed(value) : value;

interface Frame {
  /** Keys seen so far; none for a list. */
  readonly keys: Set<string> | undefined;
  key: string;
  index: number;
}

/**
 * Characters of all paths that are made for one character of the text: the path of a member may be longer than the
 * text of the member, as below a long key. Those that exceed it are not named.
 */
const PATH_CHARACTERS = 16;

/**
 * Duplicate members, and those of the paths in `unknown`, in the order of the text, in one pass. The text must be valid
 * JSON. Strings are skipped as a whole, so each brace, bracket and comma is structure. A string after `{` or after a
 * comma in an object is a key.
 */
export function fieldFaults(text: string, unknown: readonly string[] = []): string[] {
  const found = new Set<string>();
  const frames: Frame[] = [];
  let expectsKey = false;
  let left = PATH_CHARACTERS * text.length;
  for (let at = 0; at < text.length; at += 1) {
    const frame = frames.at(-1);
    switch (text[at]) {
      case '{':
        frames.push({ keys: new Set(), key: '', index: 0 });
        expectsKey = true;
        break;
      case '[':
        frames.push({ keys: undefined, key: '', index: 0 });
        expectsKey = false;
        break;
      case '}':
      case ']':
        frames.pop();
        expectsKey = false;
        break;
      case ',':
        if (frame !== undefined) frame.index += 1;
        expectsKey = frame?.keys !== undefined;
        break;
      case '"': {
        const end = endOfString(text, at);
        if (expectsKey && frame?.keys !== undefined) {
          frame.key = readKey(text.slice(at, end + 1));
          const isDuplicate = frame.keys.has(frame.key);
          // The first duplicate is always named: a strict body with one is refused.
          const isNamed = left > 0 ? isDuplicate || unknown.length > 0 : isDuplicate && found.size === 0;
          if (isNamed && found.size < DUPLICATES_MAX) {
            const path = pathOf(frames);
            left -= path.length;
            if (isDuplicate) found.add(`duplicate field "${path}"`);
            else if (unknown.includes(path)) found.add(`unknown field "${path}"`);
          }
          frame.keys.add(frame.key);
          expectsKey = false;
        }
        at = end;
        break;
      }
      default:
    }
  }
  return [...found];
}

/** Index of the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}

function readKey(literal: string): string {
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
}

function pathOf(frames: readonly Frame[]): string {
  return frames.reduce((path, frame) => {
    if (frame.keys === undefined) return `${path}[${frame.index}]`;
    return path === '' ? frame.key : `${path}.${frame.key}`;
  }, '');
}

/** A JSON object with unchecked members. */
export type JsonObject = Record<string, unknown>;

/** True for a JSON object: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Sets a member as data. A plain assignment to `__proto__` would change the prototype of the object, so this key is set
 * by defineProperty. Bodies may contain it, because JSON has no reserved keys.
 */
export function setMember(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
  } else {
    object[key] = value;
  }
}

/** Reads a member of the object itself, never one of its prototype. */
export function getMember(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A copy that shares nothing with its source. Members that are `undefined` do not exist in JSON and are left out. */
export function cloneJson<T>(value: T): T {
  return clone(value) as T;
}

function clone(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(clone);
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member !== undefined) setMember(copy, key, clone(member));
  }
  return copy;
}

/**
 * A copy with U+FFFD for each lone surrogate in texts and keys. If two keys become equal, the last value wins.
 */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setMember(copy, key.toWellFormed(), wellFormed(value[key]));
  return copy;
}

/**
 * The JSON text of a value, as JSON.stringify writes it; of a long text the beginning and `…`. The cost is that of the
 * characters in the result, except for the names of members: an object lists all of them at once.
 */
export function jsonPrefix(value: unknown, charactersMax: number): string {
  let text = '';
  const write = (next: unknown): void => {
    if (typeof next === 'string') text += JSON.stringify(next.slice(0, charactersMax));
    else if (Array.isArray(next)) writeAll('[]', next, write);
    else if (isJsonObject(next)) {
      const names = Object.keys(next).filter((name) => next[name] !== undefined);
      writeAll('{}', names, (name) => {
        write(name);
        text += ':';
        write(next[name]);
      });
    } else text += JSON.stringify(next) ?? 'null';
  };
  const writeAll = <T>([open, close]: string, items: readonly T[], writeOne: (item: T) => void): void => {
    text += open;
    for (const [index, item] of items.entries()) {
      if (text.length > charactersMax) return;
      if (index > 0) text += ',';
      writeOne(item);
    }
    text += close;
  };
  write(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax).toWellFormed()}…` : text;
}

/**
 * Equality of JSON values. The order of list items matters, the order of members does not.
 *
 * @param isEqual of items and members
 */
export function jsonEqual(left: unknown, right: unknown, isEqual: typeof jsonEqual = jsonEqual): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) && left.length === right.length && left.every((item, index) => isEqual(item, right[index]))
    );
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]))
  );
}

/**
 * Whether a value nests deeper than `depthMax` lists and objects. It is iterative, so it can protect the recursive
 * functions of this folder from a body that would exhaust the stack.
 */
export function nestsDeeperThan(value: unknown, depthMax: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= depthMax; depth += 1) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const member of Object.values(item)) {
        if (typeof member === 'object' && member !== null) next.push(member);
      }
    }
    if (next.length === 0) return depth === depthMax && level.some((item) => typeof item === 'object' && item !== null);
    level = next;
  }
  return true;
}
