/** Every table action that the functions use under faults is granted. A recorded run need not reach these paths. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { FunctionName } from '../../functions/function-list.ts';
import type { ItemKey, ItemStore, TableName, TransactWrite } from '../../shared/store/item-store.ts';
import { PART_NAMES } from '../../simulation/parts.ts';
import { runSim } from '../../simulation/run-sim.ts';
import { allowedTo, synthesise } from './synthesised.ts';

const SEEDS = [1, 2, 3];
const HOURS = 0.5;

const ACTIONS = { put: 'PutItem', update: 'UpdateItem', delete: 'DeleteItem', check: 'ConditionCheckItem' } as const;
const ARN_PARTS: Readonly<Record<TableName, string>> = { health: 'Health', objects: 'Objects', control: 'Control' };

interface Use {
  readonly action: string;
  readonly table: TableName;
  readonly partition: string;
}

/** Records the actions. */
function noting(items: ItemStore, note: (use: Use) => void): ItemStore {
  const ofKey = (action: string, { table, pk }: ItemKey): void => note({ action, table, partition: pk });
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
      note({ action: 'Query', table: request.table, partition: request.pk });
      return items.query(request);
    },
    scan(request) {
      note({ action: 'Scan', table: request.table, partition: '' });
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

describe('a function may perform every table action that it uses', () => {
  const grants = new Map<FunctionName, readonly string[]>();
  const uses = new Set<string>();
  let template: ReturnType<typeof synthesise>;

  beforeAll(() => {
    template = synthesise();
  }, 120_000);

  const isGranted = (name: FunctionName, { action, table, partition }: Use): boolean => {
    const allowed = grants.get(name) ?? allowedTo(template, name);
    grants.set(name, allowed);
    return allowed.some((grant) => {
      const parts = /^dynamodb:(\w+) on <Cluster\w*Tables(\w+?)[0-9A-F]{8}\.Arn>(?: \[(.+)\])?$/.exec(grant);
      if (parts?.[1] !== action || parts[2] !== ARN_PARTS[table]) return false;
      const held = parts[3];
      return held === undefined || (held.endsWith('*') ? partition.startsWith(held.slice(0, -1)) : partition === held);
    });
  };

  it.each(SEEDS)('under the faults of seed %i', { timeout: 300_000 }, async (seed) => {
    const refused = new Set<string>();
    const { failure } = await runSim({
      seed,
      hours: HOURS,
      parts: PART_NAMES,
      plant: {
        items: (items, { name }) =>
          noting(items, (use) => {
            const text = `${name}: ${use.action} on ${use.table} ${use.partition.replace(/[#\d].*/, '')}`;
            if (uses.has(text)) return;
            uses.add(text);
            if (!isGranted(name, use)) refused.add(text);
          }),
      },
    });
    expect(failure).toBeUndefined();
    expect([...refused]).toEqual([]);
  });

  it('and the seeds use as many as exist; otherwise actions are missed', () => {
    expect(uses.size).toBeGreaterThan(190);
  });
});
