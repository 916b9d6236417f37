/** Reads one YAML document as clients of the Kubernetes API write it. */
import { Composer, CST, type Document, Lexer, Parser } from 'yaml';
import { keyFaults, ofJson } from '../../shared/config/yaml-documents.ts';

export type YamlResult =
  /** `duplicates`: one text that names all keys that occur twice in a map, as Go's library. The last value wins. */
  | { readonly kind: 'read'; readonly value: unknown; readonly duplicates: readonly string[] }
  | { readonly kind: 'malformed'; readonly message: string };

/** Maximum number of anchors, and of aliases, in one document. It prevents a billion-laughs expansion. */
const ALIASES_MAX = 100;
/** Maximum number of scalars, indicators and spaces in a document. Every object that can be stored has fewer. */
const LEXEMES_MAX = 120_000;
/** Maximum nesting of lists and maps, as of JSON bodies (BODY_DEPTH_MAX). The library composes them recursively. */
const DEPTH_MAX = 200;
/** Maximum number of reported duplicate keys: the line of each is counted from the beginning of the text. */
const DUPLICATES_MAX = 10;
const TOO_DEEP = `a YAML document nests at most ${DEPTH_MAX} levels deep`;

/** YAML 1.1, as Kubernetes reads it: `yes` and `on` are true. */
export function readYaml(text: string): YamlResult {
  const excess = excessOf(text);
  if (excess !== undefined) return { kind: 'malformed', message: excess };
  const tokens = [...new Parser().parse(text)];
  if (tokens.some(nestsTooDeep)) return { kind: 'malformed', message: TOO_DEEP };
  const composed = compose(tokens, text);
  if (typeof composed === 'string') return { kind: 'malformed', message: composed };
  const document = composed;
  const lines: string[] = [];
  for (const { message, name, offset } of keyFaults(document)) {
    if (name === undefined) return { kind: 'malformed', message };
    if (lines.length === DUPLICATES_MAX) continue;
    const line = text.slice(0, offset).split('\n').length;
    lines.push(`line ${line}: key ${JSON.stringify(name.slice(0, 100))} already set in map`);
  }
  const duplicates = lines.length === 0 ? [] : [['yaml: unmarshal errors:', ...lines].join('\n  ')];
  try {
    return { kind: 'read', value: document.toJS({ maxAliasCount: ALIASES_MAX }), duplicates };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return { kind: 'malformed', message: error.message };
  }
}

/** Where the library finds a fault: an offset, a range of offsets, or a token. */
type ErrorSource = number | readonly [number, ...number[]] | { readonly offset: number };

/** Carries the first fault out of the composer. */
class FirstFault extends Error {}

/**
 * The first document, or its first fault with line and column. The library collects every fault, and computes line and
 * column of each by reading the text from its beginning: the square of a body of faults.
 */
function compose(tokens: readonly CST.Token[], text: string): Document.Parsed | string {
  // The library would compare every pair of keys, so keyFaults finds duplicates instead.
  const composer = new Composer({
    version: '1.1',
    uniqueKeys: false,
    strict: true,
    logLevel: 'silent',
    customTags: ofJson,
  });
  let first: FirstFault | undefined;
  const stopAtFirst = (source: ErrorSource, _code: string, message: string, isWarning?: boolean): void => {
    if (isWarning === true) return;
    // The library catches what is thrown here, and reports it as a fault of the whole node.
    first ??= new FirstFault(`${message} at ${placeOf(source, text)}`);
    throw first;
  };
  Reflect.set(composer, 'onError', stopAtFirst);
  try {
    for (const document of composer.compose(tokens, true, text.length)) {
      const [fault] = document.errors;
      return fault === undefined ? document : `${fault.message} at ${placeOf(fault.pos, text)}`;
    }
  } catch (error) {
    if (error instanceof FirstFault) return error.message;
    throw error;
  }
  return 'a YAML document is expected';
}

function placeOf(source: ErrorSource, text: string): string {
  const offset = typeof source === 'number' ? source : 'offset' in source ? source.offset : source[0];
  const lines = text.slice(0, offset).split('\n');
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
}

function nestsTooDeep(token: CST.Token): boolean {
  const waiting: { readonly token: CST.Token | null | undefined; readonly depth: number }[] = [{ token, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { token: inner, depth } = next;
    if (inner?.type === 'document') waiting.push({ token: inner.value, depth });
    if (!CST.isCollection(inner)) continue;
    if (depth === DEPTH_MAX) return true;
    for (const { key, value } of inner.items) {
      waiting.push({ token: key, depth: depth + 1 }, { token: value, depth: depth + 1 });
    }
  }
  return false;
}

/** The limit that a document exceeds. It is checked before the document is parsed, because the lexer is far faster. */
function excessOf(text: string): string | undefined {
  const counts = { lexemes: 0, anchors: 0, aliases: 0, depth: 0 };
  let isText = false;
  for (const lexeme of new Lexer().lex(text)) {
    counts.lexemes += 1;
    if (counts.lexemes > LEXEMES_MAX) return `a YAML document may have ${LEXEMES_MAX} parts`;
    // The lexeme after this mark is a scalar, whatever its first character is.
    const type = isText ? 'scalar' : CST.tokenType(lexeme);
    isText = !isText && lexeme === CST.SCALAR;
    if (type === 'anchor') counts.anchors += 1;
    if (type === 'alias') counts.aliases += 1;
    // Brackets are counted here, because the work of the parser grows with the square of their nesting.
    if (type === 'flow-seq-start' || type === 'flow-map-start') counts.depth += 1;
    if (type === 'flow-seq-end' || type === 'flow-map-end') counts.depth -= 1;
    if (counts.depth > DEPTH_MAX) return TOO_DEEP;
    if (counts.anchors > ALIASES_MAX || counts.aliases > ALIASES_MAX) {
      return `a YAML document may have ${ALIASES_MAX} anchors and ${ALIASES_MAX} aliases`;
    }
  }
  return undefined;
}
