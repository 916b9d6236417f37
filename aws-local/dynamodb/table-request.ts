/**
 * What a request to DynamoDB reads and writes: its items by table and key, in the order of the request. Requests that
 * concern no items (DescribeTable, streams) have none.
 */
import type { Access } from './partition-capacity.ts';

/** Attribute names of a table's key. */
export interface KeyNames {
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
}

export interface ItemAccess {
  readonly tableName: string;
  readonly access: Access;
  /** Undefined for a scan. */
  readonly partitionKey: string | undefined;
  /** Identifies the item, also across tables; undefined for a query or a scan. */
  readonly item: string | undefined;
}

type Wire = Readonly<Record<string, unknown>>;
type KeyNamesOf = (tableName: string) => KeyNames | undefined;

const SINGLE_ITEM = {
  GetItem: ['Key', 'read'],
  PutItem: ['Item', 'write'],
  UpdateItem: ['Key', 'write'],
  DeleteItem: ['Key', 'write'],
} as const;

const TRANSACT_PARTS = { Put: 'Item', Update: 'Key', Delete: 'Key', ConditionCheck: 'Key' } as const;

export function itemAccesses(operation: string, body: Wire, keyNamesOf: KeyNamesOf): readonly ItemAccess[] {
  const tableName = String(body['TableName'] ?? '');
  const single = SINGLE_ITEM[operation as keyof typeof SINGLE_ITEM];
  if (single !== undefined) {
    const [field, access] = single;
    return itemAccess(tableName, body[field] as Wire | undefined, access, keyNamesOf);
  }
  switch (operation) {
    case 'Query': {
      const partitionKey = queriedPartition(body);
      return partitionKey === undefined ? [] : [{ tableName, access: 'read', partitionKey, item: undefined }];
    }
    case 'Scan':
      return [{ tableName, access: 'read', partitionKey: undefined, item: undefined }];
    case 'BatchGetItem':
      return Object.entries((body['RequestItems'] ?? {}) as Record<string, { Keys?: Wire[] }>).flatMap(
        ([name, { Keys = [] }]) => Keys.flatMap((key) => itemAccess(name, key, 'read', keyNamesOf)),
      );
    case 'TransactWriteItems':
      return ((body['TransactItems'] ?? []) as Wire[]).flatMap((part) => {
        const [kind = '', write] = Object.entries(part)[0] ?? [];
        const field = TRANSACT_PARTS[kind as keyof typeof TRANSACT_PARTS];
        const { TableName: name, ...fields } = (write ?? {}) as { TableName?: string } & Wire;
        return field === undefined
          ? []
          : itemAccess(name ?? '', fields[field] as Wire | undefined, 'write', keyNamesOf);
      });
    default:
      return [];
  }
}

function itemAccess(
  tableName: string,
  attributes: Wire | undefined,
  access: Access,
  keyNamesOf: KeyNamesOf,
): readonly ItemAccess[] {
  const names = keyNamesOf(tableName);
  if (names === undefined || attributes === undefined) return [];
  const partitionKey = scalarOf(attributes[names.partitionKey]);
  const sortKey = names.sortKey === undefined ? '' : scalarOf(attributes[names.sortKey]);
  return [{ tableName, access, partitionKey, item: `${tableName}\n${partitionKey}\n${sortKey}` }];
}

/** The value of a key attribute: a string, a number or bytes, each a text on the wire. */
const scalarOf = (value: unknown): string => String(Object.values((value ?? {}) as object)[0] ?? '');

/** The partition that a query reads: the value that its condition compares the first name with. */
function queriedPartition(body: Wire): string | undefined {
  const placeholder = /=\s*(:\w+)/.exec(String(body['KeyConditionExpression'] ?? ''))?.[1];
  const values = (body['ExpressionAttributeValues'] ?? {}) as Wire;
  return placeholder === undefined ? undefined : scalarOf(values[placeholder]);
}
