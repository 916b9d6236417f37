import { readFileSync } from 'node:fs';
import { Token } from 'aws-cdk-lib';
import { InvalidPropsError, type PropFault } from './cluster-options.ts';

/** Tables from a restore, used instead of the stack's own tables (docs/operations/back-up-and-restore.md). */
export interface RestoredTables {
  readonly health: StreamedTable;
  readonly objects: StreamedTable;
  readonly control: RestoredTable;
}

export interface RestoredTable {
  readonly tableArn: string;
}

export interface StreamedTable {
  readonly tableArn: string;
  /** LatestStreamArn. A restored table has no stream until one is enabled, with new and old images. */
  readonly streamArn: string;
}

const TABLE_ARN = /^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table\/[A-Za-z0-9_.-]{3,255}$/;
const STREAM = /^\/stream\/[0-9T:.-]+$/;

/** @throws InvalidPropsError with every fault; the file system's error when the file cannot be read */
export function readRestoredTables(path: string): RestoredTables {
  const text = readFileSync(path, 'utf8');
  try {
    return requireRestoredTables(JSON.parse(text));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new InvalidPropsError([{ prop: 'restoredTablesFile', value: path, rule: 'must contain JSON' }]);
  }
}

/** @throws InvalidPropsError with every fault */
export function requireRestoredTables(given: unknown): RestoredTables {
  const tables = (typeof given === 'object' && given !== null ? given : {}) as Record<string, Record<string, unknown>>;
  const faults: PropFault[] = [];
  const arns = new Set<string>();
  for (const name of ['health', 'objects', 'control']) {
    const tableArn = tables[name]?.['tableArn'];
    const prop = `restoredTables.${name}`;
    if (Token.isUnresolved(tableArn)) continue;
    if (typeof tableArn !== 'string' || !TABLE_ARN.test(tableArn)) {
      faults.push({ prop: `${prop}.tableArn`, value: tableArn, rule: 'must be the ARN of a table' });
      continue;
    }
    if (arns.has(tableArn)) faults.push({ prop: `${prop}.tableArn`, value: tableArn, rule: 'is used twice' });
    arns.add(tableArn);
    if (name === 'control') continue;
    const streamArn = tables[name]?.['streamArn'];
    const isOfTable = typeof streamArn === 'string' && streamArn.startsWith(tableArn);
    if (!isOfTable || !STREAM.test(streamArn.slice(tableArn.length))) {
      faults.push({ prop: `${prop}.streamArn`, value: streamArn, rule: 'must be the ARN of a stream of that table' });
    }
  }
  if (faults.length > 0) throw new InvalidPropsError(faults);
  return given as RestoredTables;
}
