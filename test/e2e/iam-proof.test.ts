/**
 * Least privilege, proven by a run of the whole system: the role of every deployed function allows each of its AWS
 * calls, and allows nothing else, except for the list of exceptions.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Assembly, readAssembly } from '../../aws-local/assembly/assembly.ts';
import { type FunctionName, functionList } from '../../functions/function-list.ts';
import { type Call, decide } from '../../scripts/iam/evaluate.ts';
import { exceptions } from '../../scripts/iam/exceptions.ts';
import { type CallRecord, readCallRecord } from '../../scripts/iam/record.ts';
import { rolePolicies, type Statement } from '../../scripts/iam/role-policies.ts';
import { judge, type Row } from '../../scripts/iam/verdicts.ts';
import { driveEverything } from '../support/iam-drive.ts';
import { hasTheirEvaluator, type TheirEvaluator, theirEvaluator } from '../support/iam-evaluator.ts';
import { type RefusedCall, refusedCalls } from '../support/refused-calls.ts';

interface PlainStatement {
  Action: string | string[];
}

/** Ten seconds on an idle machine: 4,700 evaluations. */
const THEIRS_TIMEOUT_MS = 120_000;
const THEIRS = `evaluated by others${hasTheirEvaluator() ? '' : ' (skipped: no evaluator of others)'}`;

describe('permissions of the functions', () => {
  let folder: string;
  let record: CallRecord;
  let assembly: Assembly;
  let evaluate: TheirEvaluator;
  let policies: ReadonlyMap<string, readonly Statement[]>;
  let refused: readonly RefusedCall[];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nk-iam-'));
    const file = join(folder, 'calls.jsonl');
    await driveEverything(file);
    record = readCallRecord(file);
    assembly = readAssembly(record.head.assembly);
    policies = rolePolicies(assembly, record.head);
    refused = refusedCalls(record.calls, exceptions);
    if (hasTheirEvaluator()) evaluate = await theirEvaluator();
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
    const control = ['heartbeat dynamodb:Scan refusals', 'heartbeat dynamodb:Scan witnesses'];
    const surplus = [...control, 'heartbeat dynamodb:Scan'];
    expect(told(verdicts(template).rows, 'surplus')).toEqual(surplus);
  });

  describe.skipIf(!hasTheirEvaluator())(THEIRS, { timeout: THEIRS_TIMEOUT_MS }, () => {
    /** With our own decision, which must be the same. */
    async function decided(call: Call & { readonly functionName: string }, statements?: readonly Statement[]) {
      const role = statements ?? policies.get(call.functionName) ?? [];
      const theirs = await evaluate(role, call);
      const ours = decide(role, call).kind === 'allowed' ? 'Allowed' : 'ImplicitlyDenied';
      expect({ call, ours }).toEqual({ call, ours: theirs });
      return theirs;
    }
    const allowedOf = async <T extends RefusedCall>(calls: readonly T[], statements?: readonly Statement[]) => {
      const allowed: T[] = [];
      for (const call of calls) if ((await decided(call, statements)) === 'Allowed') allowed.push(call);
      return allowed;
    };

    it('allow each recorded call', async () => {
      for (const call of record.calls)
        expect({ call, decision: await decided(call) }).toMatchObject({ decision: 'Allowed' });
    });

    it('refuse each call that only others may make, or none', async () => {
      for (const { name } of functionList) {
        expect(refused.filter(({ functionName }) => functionName === name).length, name).toBeGreaterThan(50);
      }
      expect(await allowedOf(refused)).toEqual([]);
    });

    it.each<[string, FunctionName, RefusedCall['because'], (statement: Statement) => Statement]>([
      ['every resource', 'heartbeat', 'in another account or Region', (each) => ({ ...each, resources: ['*'] })],
      [
        'the queues of others',
        'node-marker',
        'on a resource of another function',
        (each) => ({ ...each, resources: each.resources.map((arn) => arn.replace(/(:sqs:.*:).*/, '$1*')) }),
      ],
      [
        'requests without a key',
        'evictor',
        'without what its conditions ask for',
        ({ conditions: { Null: _, ...conditions }, ...each }) => ({ ...each, conditions }),
      ],
      ['every partition', 'watch', 'in the partition of another function', (each) => ({ ...each, conditions: {} })],
      [
        'every action that begins alike',
        'workloads',
        'an action of no function',
        (each) => ({ ...each, actions: each.actions.map((action) => action.replace(/Item$/, '*')) }),
      ],
      [
        'volumes of other clusters',
        'pod-gc',
        'without what its conditions ask for',
        (each) => (each.actions.includes('ec2:DetachVolume') ? { ...each, conditions: {} } : each),
      ],
    ])('are found too wide with %s', async (_what, name, because, widened) => {
      const statements = (policies.get(name) ?? []).map(widened);
      const calls = refused.filter((call) => call.functionName === name && call.because === because);
      expect(await allowedOf(calls, statements)).not.toEqual([]);
    });
  });
});
