/**
 * The DynamoDB actions a function is granted, one list a kind of use. Explicit, because CDK's grantReadWriteData adds
 * scans, batch writes and stream reads that nothing here calls.
 */

/** One conditional UpdateItem: all that a beat needs. */
export const updateOnly = ['dynamodb:UpdateItem'] as const;

/** One item by its key: the keys of a node. */
export const getOnly = ['dynamodb:GetItem'] as const;

/** What the item store port can ask for; transactions are authorised by the actions of their parts. */
export const itemStore = [
  'dynamodb:BatchGetItem',
  'dynamodb:ConditionCheckItem',
  'dynamodb:DeleteItem',
  'dynamodb:GetItem',
  'dynamodb:PutItem',
  'dynamodb:Query',
  'dynamodb:UpdateItem',
] as const;

/** What a watch reads: the log and its heads, the state, the leases. */
export const readOnly = ['dynamodb:BatchGetItem', 'dynamodb:GetItem', 'dynamodb:Query'] as const;
