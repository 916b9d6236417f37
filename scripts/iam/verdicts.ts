/** Compares calls with grants: every recorded call must be allowed, and every grant must have allowed one. */
import type { CountedCall } from '../../aws-local/calls/recorder.ts';
import { decide, matches } from './evaluate.ts';
import type { Exception } from './exceptions.ts';
import type { Statement } from './role-policies.ts';

export interface Row {
  readonly functionName: string;
  readonly action: string;
  readonly resource: string;
  /** DynamoDB partitions, where the grant is limited to some. */
  readonly partition?: string;
  /** Calls made. */
  readonly used: number;
  readonly verdict: 'used' | 'missing' | 'surplus' | 'excepted';
  /** Reason of an exception. */
  readonly reason?: string;
}

export interface Verdicts {
  /** In order of function, action and resource. */
  readonly rows: readonly Row[];
  /** Exceptions without a grant. */
  readonly stale: readonly Exception[];
  readonly ok: boolean;
}

const LEADING_KEYS = 'dynamodb:LeadingKeys';

/** One action on one resource that a statement allows, with the partitions that limit it. */
interface Grant {
  readonly action: string;
  readonly resource: string;
  readonly partition?: string;
}

/**
 * @param policies statements by function
 * @param calls the recorded calls, each with its count
 */
export function judge(
  policies: ReadonlyMap<string, readonly Statement[]>,
  calls: readonly CountedCall[],
  exceptions: readonly Exception[],
): Verdicts {
  const rows: Row[] = [];
  const needless = new Set(exceptions);
  for (const functionName of new Set([...policies.keys(), ...calls.map((call) => call.functionName)])) {
    const statements = policies.get(functionName) ?? [];
    const used = new Map<Statement, CountedCall[]>();
    const missing = new Map<string, Row>();
    for (const call of calls) {
      if (call.functionName !== functionName) continue;
      const decision = decide(statements, call);
      if (decision.kind === 'allowed') {
        for (const statement of decision.by) used.set(statement, [...(used.get(statement) ?? []), call]);
        continue;
      }
      const row = { functionName, ...grantNeeded(call) };
      const key = JSON.stringify(row);
      missing.set(key, { ...row, used: (missing.get(key)?.used ?? 0) + call.count, verdict: 'missing' });
    }
    rows.push(...missing.values());
    for (const statement of statements) {
      if (statement.effect === 'Deny') continue;
      for (const grant of grantsOf(statement)) {
        const count = (used.get(statement) ?? [])
          .filter((call) => isUseOf(grant, call))
          .reduce((sum, call) => sum + call.count, 0);
        const exception = exceptions.find((each) => covers(each, functionName, grant));
        if (exception !== undefined) needless.delete(exception);
        const verdict = count > 0 ? 'used' : exception === undefined ? 'surplus' : 'excepted';
        rows.push({
          functionName,
          ...grant,
          used: count,
          verdict,
          ...(verdict === 'excepted' ? { reason: exception!.reason } : {}),
        });
      }
    }
  }
  rows.sort((a, b) => textOf(a).localeCompare(textOf(b)));
  const stale = [...needless];
  return {
    rows,
    stale,
    ok: stale.length === 0 && rows.every(({ verdict }) => verdict === 'used' || verdict === 'excepted'),
  };
}

/** Each action on each resource, and each partition that the statement names. */
function grantsOf({ actions, resources, conditions }: Statement): Grant[] {
  const partitions = Object.entries(conditions).flatMap(([operator, keys]) =>
    operator === 'Null' ? [] : (keys[LEADING_KEYS] ?? []),
  );
  return resources.flatMap((resource) =>
    actions.flatMap((action): Grant[] =>
      partitions.length === 0
        ? [{ action, resource }]
        : partitions.map((partition) => ({ action, resource, partition })),
    ),
  );
}

const isUseOf = (grant: Grant, call: CountedCall): boolean =>
  matches(grant.action.toLowerCase(), call.action.toLowerCase()) &&
  matches(grant.resource, call.resource) &&
  (grant.partition === undefined || matches(grant.partition, call.context[LEADING_KEYS] ?? ''));

function grantNeeded({ action, resource, context }: CountedCall): Grant {
  const partition = context[LEADING_KEYS];
  return partition === undefined ? { action, resource } : { action, resource, partition: generalised(partition) };
}

/** `evictions#edge-1` as `evictions#*`: one row for all partitions of one statement. */
const generalised = (partition: string): string => partition.replace(/#.*$/, '#*');

const covers = (exception: Exception, functionName: string, grant: Grant): boolean =>
  exception.functions.includes(functionName) &&
  exception.actions.includes(grant.action) &&
  matches(`*${exception.resource}*`, grant.resource) &&
  (exception.partitions === undefined || exception.partitions.includes(grant.partition ?? ''));

const textOf = ({ functionName, action, resource, partition = '' }: Row): string =>
  [functionName, action, resource, partition].join('\n');
