import type { FunctionName } from './function-names.ts';
import type { HandlerFunction } from './handler-function.ts';
import type { Tables } from './tables.ts';

/**
 * What each function may do with the items of each table: what it does there, and no more. Transactions are authorised by
 * the actions of their parts. Proven against a recorded run by `npm run iam-proof`; what a run need not meet stands in
 * scripts/iam/exceptions.ts with its reason.
 *
 * `control` is granted by partition: it holds keys of nodes and of our own processes and bootstrap tokens beside the state of the
 * controllers, and none of these may reach the other. Partitions are those of shared/store/layout.ts.
 */
type ItemAction =
  | 'BatchGetItem'
  | 'ConditionCheckItem'
  | 'DeleteItem'
  | 'GetItem'
  | 'PutItem'
  | 'Query'
  | 'Scan'
  | 'UpdateItem';

interface TableUse {
  readonly health?: readonly ItemAction[];
  readonly objects?: readonly ItemAction[];
  /** By partition; `*` stands for any text. */
  readonly control?: Readonly<Record<string, readonly ItemAction[]>>;
}

/** A commit of objects: the object, its log entry, the head of its shard, decisions told of with it. */
const COMMIT = ['PutItem', 'UpdateItem'] as const;
/** A claimed tick that carries nothing else. */
const CLAIM = ['UpdateItem'] as const;

const tableUses: Readonly<Record<FunctionName, TableUse>> = {
  heartbeat: {
    health: ['UpdateItem'],
    control: { 'node-keys#*': ['GetItem'], 'probe-keys': ['GetItem'] },
  },
  api: {
    health: ['BatchGetItem', 'DeleteItem', 'GetItem', 'Query', 'UpdateItem'],
    objects: ['BatchGetItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'node-keys#*': ['DeleteItem', 'GetItem', 'PutItem', 'Query'],
      'bootstrap-tokens': ['DeleteItem', 'GetItem', 'PutItem', 'Query', 'UpdateItem'],
      'probe-keys': ['GetItem'],
    },
  },
  'health-stream': {
    health: ['UpdateItem'],
    objects: ['GetItem', ...COMMIT],
    control: { fleet: ['DeleteItem'] },
  },
  'object-stream': {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['DeleteItem', 'GetItem'],
      'evictions#*': ['DeleteItem', 'GetItem', 'PutItem'],
      'evictions-due': ['DeleteItem', 'PutItem'],
      'pod-gc': ['DeleteItem', 'PutItem', 'UpdateItem'],
      cloud: ['DeleteItem', 'PutItem', 'UpdateItem'],
      'cidr#*': ['DeleteItem', 'PutItem', 'Query'],
    },
  },
  'node-monitor': {
    health: ['Scan', 'UpdateItem'],
    objects: ['BatchGetItem', 'GetItem', 'Query', ...COMMIT],
    control: { fleet: ['DeleteItem', 'PutItem', 'Query', 'UpdateItem'], 'probe-keys': ['GetItem', 'PutItem'] },
  },
  evictor: {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#evictor': CLAIM,
      fleet: ['ConditionCheckItem', 'DeleteItem', 'Query', 'UpdateItem'],
      'evictions#*': ['DeleteItem', 'GetItem', 'PutItem'],
      'evictions-due': ['DeleteItem', 'PutItem', 'Query'],
    },
  },
  'cloud-node': {
    health: ['DeleteItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'DeleteItem', 'GetItem', ...COMMIT],
    control: {
      'tick#cloud-node': CLAIM,
      cloud: ['DeleteItem', 'GetItem', 'Query', 'UpdateItem'],
    },
  },
  'pod-gc': {
    health: ['BatchGetItem', 'Scan'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      'tick#pod-gc': CLAIM,
      fleet: ['GetItem'],
      'pod-gc': ['DeleteItem', 'PutItem', 'Query', 'UpdateItem'],
    },
  },
  watch: {
    health: ['BatchGetItem', 'GetItem', 'Query'],
    objects: ['BatchGetItem', 'Query'],
    control: { 'ticket-keys': ['GetItem'] },
  },
};

/** The API signs tickets where watches are streamed; with long polls there are none. */
const TICKETS = { 'ticket-keys': ['PutItem'] } as const;

/** Instances that have enrolled are remembered, where they may enrol by themselves. */
const INSTANCES = { 'node-instances': ['GetItem', 'PutItem'] } as const;
/** Reading the change log in order means raising the heads of its shards. */
const RAISED_HEADS = { 'h#*': ['UpdateItem'] } as const;

type Target = HandlerFunction<Record<string, string>>;

/** Lets a function do in the tables what it does there. */
export function allowTables(target: Target, functionName: FunctionName, tables: Tables): void {
  const { health = [], objects = [], control = {} } = tableUses[functionName];
  if (health.length > 0) target.allow(health.map(named), [tables.health.tableArn]);
  if (objects.length > 0) target.allow(objects.map(named), [tables.objects.tableArn]);
  allowPartitions(target, tables.control.tableArn, control);
  if (functionName === 'watch') allowPartitions(target, tables.objects.tableArn, RAISED_HEADS);
}

/** For the API, where watches are streamed elsewhere. */
export const allowTickets = (target: Target, tables: Tables): void =>
  allowPartitions(target, tables.control.tableArn, TICKETS);

/** For the API, where instances enrol by their identity documents. */
export const allowInstances = (target: Target, tables: Tables): void =>
  allowPartitions(target, tables.control.tableArn, INSTANCES);

function allowPartitions(
  target: Target,
  tableArn: string,
  partitions: Readonly<Record<string, readonly ItemAction[]>>,
): void {
  // Partitions that are used alike share a statement: a policy has its length.
  const alike = new Map<string, { readonly actions: readonly ItemAction[]; readonly keys: string[] }>();
  for (const [partition, actions] of Object.entries(partitions)) {
    const key = actions.join();
    const group = alike.get(key) ?? { actions, keys: [] };
    group.keys.push(partition);
    alike.set(key, group);
  }
  for (const { actions, keys } of alike.values()) {
    target.allow(actions.map(named), [tableArn], { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys } });
  }
}

const named = (action: ItemAction): string => `dynamodb:${action}`;
