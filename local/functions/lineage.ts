/**
 * Recursive loop detection of Lambda. Each invocation has a trace header, and its lineage counts the invocations of each
 * function in one chain of requests. The SDKs send the header with their calls; SQS keeps it with a message (attribute
 * AWSTraceHeader), and Invoke passes it on. Lambda stops a function that would run for the seventeenth time in one chain,
 * unless its RecursiveLoop is Allow. A client that sends no header starts a new chain.
 *
 * Source: AWS Lambda Developer Guide, "Use Lambda recursive loop detection to prevent infinite loops". "Approximately 16"
 * there is exactly 16 here. Streams of DynamoDB are not among the supported services.
 */
import { randomBytes } from 'node:crypto';
import { shortHash } from '../../shared/domain/text-hash.ts';

/** Invocations of one function in one chain. */
export const CHAIN_INVOCATIONS_MAX = 16;
/** A chain through more functions than this is not used here. */
const LINEAGE_FUNCTIONS_MAX = 50;

export interface Trace {
  /** For the calls of this invocation. */
  readonly header: string;
  /** Of the function in this chain, this one included. */
  readonly invocations: number;
}

/** The trace of an invocation that a request with this header causes. */
export function traceOf(functionArn: string, header: string | undefined): Trace {
  const parts = (header ?? `Root=1-${shortHash(String(Date.now()))}-${randomBytes(12).toString('hex')}`).split(';');
  const lineage = new Map<string, number>();
  for (const entry of lineageOf(parts)) {
    const [id = '', count] = entry.split(':');
    lineage.set(id, Number(count));
  }
  const own = shortHash(functionArn);
  const invocations = (lineage.get(own) ?? 0) + 1;
  lineage.set(own, invocations);
  const counted = [...lineage].slice(-LINEAGE_FUNCTIONS_MAX).map(([id, count]) => `${id}:${count}`);
  const others = parts.filter((part) => !part.startsWith(LINEAGE));
  return { header: [...others, `${LINEAGE}${counted.join('|')}`].join(';'), invocations };
}

const LINEAGE = 'Lineage=';

const lineageOf = (parts: readonly string[]): readonly string[] =>
  parts.flatMap((part) => (part.startsWith(LINEAGE) ? part.slice(LINEAGE.length).split('|') : []));
