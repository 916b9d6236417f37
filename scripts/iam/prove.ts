/**
 * npm run iam-proof: runs the whole system on this machine, records every call of each function to AWS, and compares
 * the calls with the policies of the synthesised template. Exit code 1 when a function lacks a permission that it
 * needs, or has one that it does not need.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readAssembly } from '../../aws-local/assembly/assembly.ts';
import { driveEverything } from '../../test/support/iam-drive.ts';
import { exceptions } from './exceptions.ts';
import { readCallRecord } from './record.ts';
import { rolePolicies } from './role-policies.ts';
import { tableOf } from './table.ts';
import { judge } from './verdicts.ts';

const USAGE = `Usage: npm run iam-proof [-- --record FILE]

  --record FILE  evaluates an existing record (npm run start:aws -- --record-calls FILE)`;

const { values } = parseArgs({
  options: { record: { type: 'string' }, help: { type: 'boolean', default: false } },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), 'nk-iam-'));
try {
  const file = values.record ?? join(folder, 'calls.jsonl');
  if (values.record === undefined) await driveEverything(file, (line) => console.error(line));
  const { head, calls } = readCallRecord(file);
  const verdicts = judge(rolePolicies(readAssembly(head.assembly), head), calls, exceptions);
  console.log(tableOf(verdicts));
  if (!verdicts.ok) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
