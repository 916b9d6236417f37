/** A record of calls as local mode writes it (`npm run start:aws -- --record-calls FILE`). */
import { readFileSync } from 'node:fs';
import type { CountedCall, RecordHead } from '../../aws-local/calls/recorder.ts';

export interface CallRecord {
  readonly head: RecordHead;
  readonly calls: readonly CountedCall[];
}

/** @throws Error when there is none, or one with gaps */
export function readCallRecord(file: string): CallRecord {
  const [head, ...calls] = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
  if (head === undefined) throw new Error(`${file} is empty`);
  if (!(head as RecordHead).complete) throw new Error(`${file} is not complete: it cannot prove anything`);
  return { head: head as RecordHead, calls: calls as CountedCall[] };
}
