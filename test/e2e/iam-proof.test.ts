/**
 * Least privilege, proven by a run of the whole system: the role of every deployed function allows each of its AWS
 * calls, and allows nothing else, except for the list of exceptions.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Assembly, readAssembly } from '../../local/assembly/assembly.ts';
import { exceptions } from '../../scripts/iam/exceptions.ts';
import { type CallRecord, readCallRecord } from '../../scripts/iam/record.ts';
import { rolePolicies } from '../../scripts/iam/role-policies.ts';
import { judge, type Row } from '../../scripts/iam/verdicts.ts';
import { driveEverything } from '../support/iam-drive.ts';

interface PlainStatement {
  Action: string | string[];
}

describe('permissions of the functions', () => {
  let folder: string;
  let record: CallRecord;
  let assembly: Assembly;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nk-iam-'));
    const file = join(folder, 'calls.jsonl');
    await driveEverything(file);
    record = readCallRecord(file);
    assembly = readAssembly(record.head.assembly);
  }, 400_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const told = (rows: readonly Row[], verdict: Row['verdict']) =>
    rows
      .filter((row) => row.verdict === verdict)
      .map(({ functionName, action, partition }) =>
        [functionName, action, ...(partition === undefined ? [] : [partition])].join(' '),
      );
  const verdicts = (template = assembly.template) =>
    judge(rolePolicies({ ...assembly, template }, record.head), record.calls, exceptions);
  /** The template with another list of actions in the statements of one role that have this action. */
  const changed = (role: RegExp, action: string, change: (actions: string[]) => string[]) => {
    const template = structuredClone(assembly.template);
    let found = 0;
    for (const [id, resource] of Object.entries(template.Resources)) {
      if (resource.Type !== 'AWS::IAM::Policy' || !role.test(id)) continue;
      const document = (resource.Properties as { PolicyDocument: { Statement: PlainStatement[] } }).PolicyDocument;
      for (const statement of document.Statement) {
        const actions = [statement.Action].flat();
        if (!actions.includes(action)) continue;
        statement.Action = change(actions);
        found += 1;
      }
    }
    expect(found).toBeGreaterThan(0);
    return template;
  };

  it('are all that a run of the whole system needs, and no more, except for the exceptions', () => {
    const { rows, stale } = verdicts();
    expect(told(rows, 'missing')).toEqual([]);
    expect(told(rows, 'surplus')).toEqual([]);
    expect(stale).toEqual([]);
    expect(told(rows, 'used').length).toBeGreaterThan(100);
  });

  it('are found incomplete when one is removed', () => {
    const template = changed(/ClusterEvictor/, 'dynamodb:ConditionCheckItem', (actions) =>
      actions.filter((action) => action !== 'dynamodb:ConditionCheckItem'),
    );
    expect(told(verdicts(template).rows, 'missing')).toEqual([
      'evictor dynamodb:ConditionCheckItem fleet',
      'evictor dynamodb:ConditionCheckItem o#*',
    ]);
  });

  it('are found excessive when one is added', () => {
    const template = changed(/ClusterHeartbeat/, 'dynamodb:UpdateItem', (actions) => [...actions, 'dynamodb:Scan']);
    // The table control, then health.
    const surplus = ['heartbeat dynamodb:Scan refusals', 'heartbeat dynamodb:Scan'];
    expect(told(verdicts(template).rows, 'surplus')).toEqual(surplus);
  });
});
