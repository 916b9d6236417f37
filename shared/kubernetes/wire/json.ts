import { nestsDeeperThan, wellFormed } from './json-value.ts';

/** Deepest nesting of a body. Real Kubernetes objects stay below 30. */
export const BODY_DEPTH_MAX = 200;

/** Maximum number of reported duplicate fields. */
const DUPLICATES_MAX = 100;

export type ParsedJson =
  | {
      readonly kind: 'parsed';
      readonly value: unknown;
      /** Paths of duplicate members, such as `spec.taints[0].key`. The last value wins. */
      readonly duplicateFields: readonly string[];
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
  const duplicates = isWrittenAlike(text, value) ? [] : duplicateFields(text);
  return { kind: 'parsed', value: inUnicode(text, value), duplicateFields: duplicates };
}

/**
 * The text is what we would write for the value, as most programs write JSON. Then it has no duplicate member: the value
 * has one of them, so its text would be shorter. This costs a quarter of a search.
 */
function isWrittenAlike(text: string, value: unknown): boolean {
  const written = JSON.stringify(value);
  return written === text || `${written}\n` === text;
}

/** The text is decoded UTF-8, so a lone surrogate can only be an escape sequence. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** `value`, parsed from `text`, with U+FFFD for lone surrogates, as Go decodes them. DynamoDB and clients refuse them. */
export const inUnicode = (text: string, value: unknown): unknown =>
  SURROGATE_ESCAPE.test(text) ? wellFormed(value) : value;

interface Frame {
  /** Keys seen so far; none for a list. */
  readonly keys: Set<string> | undefined;
  key: string;
  index: number;
}

/**
 * Paths of duplicate members, in one pass. The text must be valid JSON. Strings are skipped as a whole, so each brace,
 * bracket and comma is structure. A string after `{` or after a comma in an object is a key.
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
