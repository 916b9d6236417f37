/** Reads one YAML document as clients of the Kubernetes API write it. */
import { CST, type Document, isAlias, isCollection, isMap, isScalar, Lexer, parseDocument, type Tags } from 'yaml';

export type YamlResult =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'malformed'; readonly message: string };

/** Maximum number of anchors, and of aliases, in one document. It prevents a billion-laughs expansion. */
const ALIASES_MAX = 100;
/** Maximum number of scalars, indicators and spaces in a document. Every object that can be stored has fewer. */
const LEXEMES_MAX = 120_000;
/** Maximum nesting of lists and maps in brackets; the API accepts no deeper nesting. */
const FLOW_DEPTH_MAX = 200;

/** Types of YAML 1.1 without a JSON equivalent. They are read as text, as in Kubernetes. */
const NOT_OF_JSON = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`));

const ofJson = (tags: Tags): Tags =>
  tags.filter(
    (tag) => typeof tag === 'string' || !(NOT_OF_JSON.has(tag.tag) || ('format' in tag && tag.format === 'TIME')),
  );

/** YAML 1.1, as Kubernetes reads it: `yes` and `on` are true. A duplicate key is malformed. */
export function readYaml(text: string): YamlResult {
  const excess = excessOf(text);
  if (excess !== undefined) return { kind: 'malformed', message: excess };
  // The library would compare every pair of keys, so keyFault finds duplicates instead.
  const document = parseDocument(text, {
    version: '1.1',
    uniqueKeys: false,
    strict: true,
    logLevel: 'silent',
    customTags: ofJson,
  });
  const fault = document.errors[0]?.message ?? keyFault(document);
  if (fault !== undefined) return { kind: 'malformed', message: fault };
  try {
    return { kind: 'read', value: document.toJS({ maxAliasCount: ALIASES_MAX }) };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return { kind: 'malformed', message: error.message };
  }
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
    if (type === 'flow-seq-start' || type === 'flow-map-start') counts.depth += 1;
    if (type === 'flow-seq-end' || type === 'flow-map-end') counts.depth -= 1;
    if (counts.anchors > ALIASES_MAX || counts.aliases > ALIASES_MAX) {
      return `a YAML document may have ${ALIASES_MAX} anchors and ${ALIASES_MAX} aliases`;
    }
    if (counts.depth > FLOW_DEPTH_MAX) return `a YAML document nests at most ${FLOW_DEPTH_MAX} levels deep`;
  }
  return undefined;
}

/** A duplicate key, or one that is neither a text nor a number. */
function keyFault(document: Document): string | undefined {
  const waiting: unknown[] = [document.contents];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (!isCollection(node)) continue;
    if (!isMap(node)) {
      for (const item of node.items) waiting.push(item);
      continue;
    }
    const keys = new Set<string>();
    for (const { key, value } of node.items) {
      waiting.push(value);
      const named = isAlias(key) ? key.resolve(document) : key;
      if (!isScalar(named)) return 'a key of a map must be a text';
      const name = String(named.value);
      if (keys.has(name) && name !== '<<') return `Map keys must be unique: ${JSON.stringify(name.slice(0, 100))}`;
      keys.add(name);
    }
  }
  return undefined;
}
