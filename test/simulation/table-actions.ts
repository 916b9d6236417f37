/** The table actions of functions in runs of the simulation, and whether their roles grant them. */
import type { Template } from 'aws-cdk-lib/assertions';
import type { FunctionName } from '../../functions/function-list.ts';
import type { ItemKey, ItemStore, TableName, TransactWrite } from '../../shared/store/item-store.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { allowedTo } from '../cdk/synthesised.ts';

const ACTIONS = { put: 'PutItem', update: 'UpdateItem', delete: 'DeleteItem', check: 'ConditionCheckItem' } as const;
const ARN_PARTS: Readonly<Record<TableName, string>> = { health: 'Health', objects: 'Objects', control: 'Control' };

interface Use {
  readonly name: FunctionName;
  readonly action: string;
  readonly table: TableName;
  readonly partition: string;
}

/** Records the actions. */
function noting(items: ItemStore, note: (action: string, table: TableName, partition: string) => void): ItemStore {
  const ofKey = (action: string, { table, pk }: ItemKey): void => note(action, table, pk);
  const ofWrite = (write: TransactWrite): void => ofKey(ACTIONS[write.kind], write.key);
  return {
    ...items,
    get(key, options) {
      ofKey('GetItem', key);
      return items.get(key, options);
    },
    getMany(keys, options) {
      for (const key of keys) ofKey('BatchGetItem', key);
      return items.getMany(keys, options);
    },
    query(request) {
      note('Query', request.table, request.pk);
      return items.query(request);
    },
    scan(request) {
      note('Scan', request.table, '');
      return items.scan(request);
    },
    write(write, options) {
      ofWrite(write);
      return items.write(write, options);
    },
    transact(writes) {
      writes.forEach(ofWrite);
      return items.transact(writes);
    },
  };
}

export function tableActions() {
  const uses = new Map<string, Use>();
  return {
    /** Makes a run record its actions. */
    plant: {
      items: (items, { name }) =>
        noting(items, (action, table, partition) => {
          const text = `${name}: ${action} on ${table} ${partition.replace(/[#\d].*/, '')}`;
          if (!uses.has(text)) uses.set(text, { name, action, table, partition });
        }),
    } satisfies SimOptions['plant'],
    /** How many there were, of different functions, tables or kinds of partitions. */
    count: () => uses.size,
    /** Those that a role of the template does not grant. */
    refusedBy(template: Template): string[] {
      const grants = new Map<FunctionName, readonly string[]>();
      return [...uses].flatMap(([text, use]) => {
        const allowed = grants.get(use.name) ?? allowedTo(template, use.name);
        grants.set(use.name, allowed);
        return allowed.some((grant) => isGranted(grant, use)) ? [] : [text];
      });
    },
  };
}

function isGranted(grant: string, { action, table, partition }: Use): boolean {
  const parts = /^dynamodb:(\w+) on <Cluster\w*Tables(\w+?)[0-9A-F]{8}\.Arn>(?: \[(.+)\])?$/.exec(grant);
  if (parts?.[1] !== action || parts[2] !== ARN_PARTS[table]) return false;
  const held = parts[3];
  return held === undefined || (held.endsWith('*') ? partition.startsWith(held.slice(0, -1)) : partition === held);
}
