/** One YAML document as a value, as clients of the Kubernetes API write it. */
import { CST, type Document, isAlias, isCollection, isMap, isScalar, Lexer, parseDocument, type Tags } from 'yaml';

export type YamlResult =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'malformed'; readonly message: string };

/** Anchors, and aliases, in one document: enough for any configuration, too few to blow one up. */
const ALIASES_MAX = 100;
/** What a document may consist of: scalars, marks, spaces. An object that can be stored has fewer. */
const LEXEMES_MAX = 120_000;
/** Lists and maps in brackets within each other; the API takes no deeper nesting. */
const FLOW_DEPTH_MAX = 200;

/** Types of YAML 1.1 that are none of JSON: as text they are what Kubernetes' own reader makes of them. */
const NOT_OF_JSON = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`));

const ofJson = (tags: Tags): Tags =>
  tags.filter(
    (tag) => typeof tag === 'string' || !(NOT_OF_JSON.has(tag.tag) || ('format' in tag && tag.format === 'TIME')),
  );

/** YAML 1.1, as Kubernetes reads it: `yes` and `on` are true. A key given twice is malformed. */
export function readYaml(text: string): YamlResult {
  const excess = excessOf(text);
  if (excess !== undefined) return { kind: 'malformed', message: excess };
  // The library would compare each key with each: duplicates are looked for below.
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

/** Looked for before the document is parsed, which takes far longer than to cut it up. */
function excessOf(text: string): string | undefined {
  const counts = { lexemes: 0, anchors: 0, aliases: 0, depth: 0 };
  let isText = false;
  for (const lexeme of new Lexer().lex(text)) {
    counts.lexemes += 1;
    if (counts.lexemes > LEXEMES_MAX) return `a YAML document may have ${LEXEMES_MAX} parts`;
    // What follows this mark is a scalar, whatever it begins with.
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

/** A key that stands twice, or that is no text or number. */
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
