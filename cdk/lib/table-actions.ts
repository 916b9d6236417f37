import type { ItemAction, PartitionUse, TableUse } from '../../shared/functions/function-manifest.ts';
import type { HandlerFunction } from './handler-function.ts';
import type { Tables } from './tables.ts';

/** Grants a function the table actions of its manifest. */
export function allowTables(target: HandlerFunction, use: TableUse, tables: Tables): void {
  const { health = [], objects = [], objectPartitions = {}, control = {} } = use;
  if (health.length > 0) target.allow(health.map(named), [tables.health.tableArn]);
  if (objects.length > 0) target.allow(objects.map(named), [tables.objects.tableArn]);
  allowPartitions(target, tables.control.tableArn, control);
  allowPartitions(target, tables.objects.tableArn, objectPartitions);
}

function allowPartitions(target: HandlerFunction, tableArn: string, partitions: PartitionUse): void {
  // Partitions with the same actions share a statement: the length of a policy is limited.
  const alike = new Map<string, { readonly actions: readonly ItemAction[]; readonly keys: string[] }>();
  for (const [partition, actions] of Object.entries(partitions)) {
    const key = actions.join();
    const group = alike.get(key) ?? { actions, keys: [] };
    group.keys.push(partition);
    alike.set(key, group);
  }
  for (const { actions, keys } of alike.values()) {
    // ForAllValues is true for a request without the key: Null requires the key.
    // Source: IAM User Guide, "Multivalued context keys".
    target.allow(actions.map(named), [tableArn], {
      'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys },
      Null: { 'dynamodb:LeadingKeys': ['false'] },
    });
  }
}

const named = (action: ItemAction): string => `dynamodb:${action}`;
