/**
 * Recursive loop detection of Lambda. Each invocation has a trace header, and its lineage counts the invocations of
 * each function in one chain of requests. The SDKs send the header with their calls; SQS keeps it with a message
 * (attribute AWSTraceHeader), and Invoke passes it on. Lambda stops a function that would run for the seventeenth time
 * in one chain, unless its RecursiveLoop is Allow. A client that sends no header starts a new chain.
 *
 * Source: AWS Lambda Developer Guide, "Use Lambda recursive loop detection to prevent infinite loops". "Approximately
 * 16" there is exactly 16 here. Streams of DynamoDB are not among the supported services.
 */
import { randomUUID } from 'node:crypto';
import { shortHash } from '../../shared/text.ts';

/** Invocations of one function in one chain. */
export const CHAIN_INVOCATIONS_MAX = 16;
/** A chain through more functions than this is not used here. */
const LINEAGE_FUNCTIONS_MAX = 50;

export interface Trace {
  /** For the calls of this invocation. */
  readonly header: string;
  /** Invocations of the function in this chain, this one included. */
  readonly invocations: number;
}

/** The trace of an invocation that a request with this header causes. */
export function traceOf(functionArn: string, header: string | undefined): Trace {
  const own = idOf(functionArn);
  // A chain that begins here: every request to the API.
  if (header === undefined) {
    const root = `Root=1-${shortHash(String(Date.now()))}-${randomUUID().replaceAll('-', '').slice(0, 24)}`;
    return { header: `${root};${LINEAGE}${own}:1`, invocations: 1 };
  }
  const parts = header.split(';');
  const lineage = new Map<string, number>();
  for (const entry of lineageOf(parts)) {
    const [id = '', count] = entry.split(':');
    lineage.set(id, Number(count));
  }
  const invocations = (lineage.get(own) ?? 0) + 1;
  lineage.set(own, invocations);
  const counted = [...lineage].slice(-LINEAGE_FUNCTIONS_MAX).map(([id, count]) => `${id}:${count}`);
  const others = parts.filter((part) => !part.startsWith(LINEAGE));
  return { header: [...others, `${LINEAGE}${counted.join('|')}`].join(';'), invocations };
}

const LINEAGE = 'Lineage=';

const ids = new Map<string, string>();

/** The id of a function in a lineage. Kept: there are a dozen functions, and thousands of invocations. */
function idOf(functionArn: string): string {
  const known = ids.get(functionArn);
  if (known !== undefined) return known;
  const id = shortHash(functionArn);
  ids.set(functionArn, id);
  return id;
}

const lineageOf = (parts: readonly string[]): readonly string[] =>
  parts.flatMap((part) => (part.startsWith(LINEAGE) ? part.slice(LINEAGE.length).split('|') : []));
