import { nestsDeeperThan, wellFormed } from './json-value.ts';

/** Deepest nesting of a body. Real Kubernetes objects stay below 30. */
export const BODY_DEPTH_MAX = 200;

/** Duplicate fields that are reported. */
const DUPLICATES_MAX = 100;

export type ParsedJson =
  | {
      readonly kind: 'parsed';
      readonly value: unknown;
      /** Paths of members that stand twice in an object, as in `spec.taints[0].key`; the last one counts. */
      readonly duplicateFields: readonly string[];
    }
  | { readonly kind: 'malformed'; readonly message: string };

/**
 * Parses a JSON body, and finds what `JSON.parse` swallows: members that stand twice.
 *
 * Malformed text and nesting beyond the bound are a value (400 BadRequest). The caller bounds the length.
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
  return { kind: 'parsed', value: inUnicode(text, value), duplicateFields: duplicateFields(text) };
}

/** Half of a surrogate pair can come in as an escape only. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** `value` of `text`, with U+FFFD for invalid characters, as Go decodes it. Stores and clients accept no other text. */
export const inUnicode = (text: string, value: unknown): unknown =>
  SURROGATE_ESCAPE.test(text) ? wellFormed(value) : value;

interface Frame {
  /** Keys seen so far; none for a list. */
  readonly keys: Set<string> | undefined;
  key: string;
  index: number;
}

/**
 * Paths of members that stand twice. One pass over the text, which must be valid JSON: strings are skipped whole, so
 * every brace, bracket and comma seen is structure, and a string is a key when its object waits for one.
 */
function duplicateFields(text: string): string[] {
  const found = new Set<string>();
  const frames: Frame[] = [];
  let expectsKey = false;
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
          if (frame.keys.has(frame.key) && found.size < DUPLICATES_MAX) found.add(pathOf(frames));
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
