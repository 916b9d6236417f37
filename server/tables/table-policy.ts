/**
 * The IAM policy of `nodekeeper serve --store dynamodb`: what the functions that answer requests may do with the
 * tables.
 */
import { apiManifest } from '../../functions/api/manifest.ts';
import { heartbeatManifest } from '../../functions/heartbeat/manifest.ts';
import { watchManifest } from '../../functions/watch/manifest.ts';
import type { FunctionManifest, PartitionUse, TableUse } from '../../shared/functions/function-manifest.ts';
import type { TableName } from '../../shared/store/item-store.ts';

const MANIFESTS: readonly FunctionManifest[] = [apiManifest, heartbeatManifest, watchManifest];

/** @param tables names of the tables; `region` and `stack` limit the reading of outputs */
export function tablePolicy(
  tables: Readonly<Record<TableName, string>>,
  { region, stack }: { readonly region: string; readonly stack: string },
): object {
  const arnOf = (table: TableName): string => `arn:${partitionOf(region)}:dynamodb:${region}:*:table/${tables[table]}`;
  const statement = (actions: Iterable<string>, table: TableName, keys?: readonly string[]) => ({
    Effect: 'Allow',
    Action: [...actions].map((action) => `dynamodb:${action}`).sort(),
    Resource: arnOf(table),
    ...(keys && {
      Condition: {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys },
        Null: { 'dynamodb:LeadingKeys': ['false'] },
      },
    }),
  });
  const uses = MANIFESTS.flatMap(usesOf);
  const actionsOn = (table: 'health' | 'objects') => new Set(uses.flatMap((use) => use[table] ?? []));
  const partitions = [...partitionsByActions(uses.map(({ control }) => control ?? {}))];
  return {
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Action: ['cloudformation:DescribeStacks'],
        Resource: `arn:${partitionOf(region)}:cloudformation:${region}:*:stack/${stack}/*`,
      },
      statement(actionsOn('health'), 'health'),
      statement(actionsOn('objects'), 'objects'),
      ...partitions.map(([actions, keys]) => statement(actions.split(','), 'control', keys)),
    ],
  };
}

/** Source: AWS General Reference, "Amazon Resource Names". */
const partitionOf = (region: string): string =>
  region.startsWith('cn-') ? 'aws-cn' : region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';

/** With everything that a feature adds: the process serves watches and logs itself. */
const usesOf = ({ tables, needsWith = {} }: FunctionManifest): readonly TableUse[] => [
  tables ?? {},
  ...Object.values(needsWith).flatMap((needs) => needs.flatMap((need) => need.tables ?? [])),
];

/** Partitions with the same actions share a statement. */
function partitionsByActions(uses: readonly PartitionUse[]): Map<string, readonly string[]> {
  const actionsOf = new Map<string, Set<string>>();
  for (const [partition, actions] of uses.flatMap((use) => Object.entries(use))) {
    const known = actionsOf.get(partition) ?? new Set();
    for (const action of actions) known.add(action);
    actionsOf.set(partition, known);
  }
  const alike = new Map<string, string[]>();
  for (const [partition, actions] of actionsOf) {
    const key = [...actions].sort().join();
    alike.set(key, [...(alike.get(key) ?? []), partition]);
  }
  return alike;
}
