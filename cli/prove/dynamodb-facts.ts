/** Facts about DynamoDB. Pure. */
import { fact, holdsIf, isInconclusive, unknown, type Verdict } from './verdict.ts';

/** The error of an answer. Absent: it was successful. */
export interface Refusal {
  readonly error?: string;
}

export interface Units extends Refusal {
  /** ConsumedCapacity. Absent: not answered. */
  readonly units?: number;
}

const refusedAs = ({ error }: Refusal, expected: string): Verdict => {
  const reason = error === undefined ? 'accepted' : `refused: ${error}`;
  return isInconclusive(error) ? unknown(reason) : holdsIf(error === expected, reason);
};

const unitsAre = ({ error, units }: Units, expected: number): Verdict => {
  if (error !== undefined) return unknown(`the write was refused: ${error}`);
  return units === undefined ? unknown('the answer has no units') : holdsIf(units === expected, `${units} units`);
};

export const DYNAMODB_FACTS = {
  'dynamodb-write-unit': fact<Units>({
    sentence: 'An update of an item of at most 1 KB consumes one write unit',
    source: 'DynamoDB Developer Guide, "DynamoDB read and write operations"',
    expected: '1 unit',
    evaluate: (measured) => unitsAre(measured, 1),
  }),
  'dynamodb-transaction-units': fact<Units>({
    sentence: 'A transaction consumes two write units for each item of at most 1 KB',
    source: 'DynamoDB Developer Guide, "Managing complex workflows with DynamoDB transactions"',
    expected: '4 units for two items',
    evaluate: (measured) => unitsAre(measured, 4),
  }),
  'dynamodb-one-winner': fact<{ readonly writers: number; readonly successes: number; readonly refused: number }>({
    sentence: 'Of conditional writes to one version at the same time exactly one succeeds, and the others are refused',
    source: 'DynamoDB Developer Guide, "Condition expressions"',
    expected: '1 success, ConditionalCheckFailedException for each other writer',
    evaluate: ({ writers, successes, refused }) => {
      const reason = `${successes} of ${writers} succeeded, ${refused} were refused by the condition`;
      // Throttled writers leave the number of refusals open, but never allow two successes.
      if (successes <= 1 && successes + refused < writers) return unknown(reason);
      return holdsIf(successes === 1, reason);
    },
  }),
  'dynamodb-condition-item': fact<Refusal & { readonly version?: string }>({
    sentence: 'A refused condition returns the stored item in the same answer',
    source: 'DynamoDB API Reference, "UpdateItem", ReturnValuesOnConditionCheckFailure',
    expected: 'ConditionalCheckFailedException with the item',
    evaluate: ({ error, version }) => {
      if (error !== 'ConditionalCheckFailedException')
        return refusedAs(defaultError(error), 'ConditionalCheckFailedException');
      return holdsIf(
        version === '7',
        version === undefined ? 'refused without the item' : `the item has version ${version}`,
      );
    },
  }),
  'dynamodb-transaction-conflict': fact<{
    readonly transactions: number;
    readonly committed: number;
    readonly conflicts: number;
    /** The counter that each transaction increments. */
    readonly stored: number;
  }>({
    sentence:
      'A transaction on an item of another one in progress is cancelled with TransactionConflict, and writes nothing',
    source: 'DynamoDB Developer Guide, "Managing complex workflows with DynamoDB transactions"',
    expected: 'conflicts, and a counter that equals the committed transactions',
    evaluate: ({ transactions, committed, conflicts, stored }) => {
      const reason = `${committed} of ${transactions} committed, ${conflicts} conflicts, counter ${stored}`;
      if (stored !== committed) return holdsIf(false, reason);
      return conflicts === 0 ? unknown(`${reason}: none met another one`) : holdsIf(committed > 0, reason);
    },
  }),
  'dynamodb-write-conflict': fact<{
    readonly writes: number;
    readonly accepted: number;
    readonly conflicts: number;
    readonly otherErrors: number;
  }>({
    sentence: 'A plain write to an item of a transaction in progress is refused with TransactionConflictException',
    source: 'DynamoDB Developer Guide, "Managing complex workflows with DynamoDB transactions"',
    expected: 'at least one conflict, and no other error',
    evaluate: ({ writes, accepted, conflicts, otherErrors }) => {
      const reason = `${accepted} of ${writes} accepted, ${conflicts} conflicts, ${otherErrors} other errors`;
      if (conflicts > 0) return holdsIf(true, reason);
      return otherErrors > 0 ? unknown(reason) : holdsIf(false, `${reason}, during transactions without a pause`);
    },
  }),
  'dynamodb-cancellation-reasons': fact<Refusal & { readonly codes: readonly string[]; readonly written: boolean }>({
    sentence: 'A transaction with one refused condition writes nothing and names the refused part',
    source: 'DynamoDB API Reference, "TransactWriteItems"',
    expected: 'None, ConditionalCheckFailed; nothing written',
    evaluate: ({ error, codes, written }) => {
      if (error !== undefined && error !== 'TransactionCanceledException') return unknown(`refused: ${error}`);
      const reason = `${codes.join(', ') || 'no reasons'}; ${written ? 'a part was written' : 'nothing written'}`;
      return holdsIf(!written && codes.join() === 'None,ConditionalCheckFailed', reason);
    },
  }),
  'dynamodb-item-size': fact<Refusal>({
    sentence: 'An item above 400 KB is refused as ValidationException',
    source: 'DynamoDB Developer Guide, "Constraints in Amazon DynamoDB"',
    expected: 'ValidationException',
    evaluate: (measured) => refusedAs(measured, 'ValidationException'),
  }),
  'dynamodb-transaction-size': fact<Refusal>({
    sentence: 'A transaction of 101 items is refused as ValidationException',
    source: 'DynamoDB API Reference, "TransactWriteItems"',
    expected: 'ValidationException',
    evaluate: (measured) => refusedAs(measured, 'ValidationException'),
  }),
  'dynamodb-query-page': fact<{
    readonly storedBytes: number;
    readonly items: number;
    readonly read: number;
    readonly hasMore: boolean;
  }>({
    sentence: 'A page of a query ends at 1 MB, and says where the next one begins',
    source: 'DynamoDB Developer Guide, "Paginating table query results"',
    expected: 'fewer items than are stored, with LastEvaluatedKey',
    evaluate: ({ storedBytes, items, read, hasMore }) => {
      const reason = `${read} of ${items} items (${storedBytes} bytes), ${hasMore ? 'with' : 'without'} LastEvaluatedKey`;
      if (storedBytes <= 1_048_576) return unknown(`${reason}: too few bytes are stored`);
      return holdsIf(read > 0 && read < items && hasMore, reason);
    },
  }),
  'dynamodb-expired-item': fact<{ readonly readableSeconds: number; readonly isReadable: boolean }>({
    sentence: 'An item is still readable after its time to live, so readers have to filter it',
    source: 'DynamoDB Developer Guide, "Working with expired items and time to live (TTL)"',
    expected: 'readable in the seconds after its expiry',
    evaluate: ({ readableSeconds, isReadable }) =>
      holdsIf(isReadable, `${isReadable ? 'readable' : 'deleted'} ${readableSeconds.toFixed(0)} s after its expiry`),
  }),
};

/** A write that was accepted has no error. */
const defaultError = (error: string | undefined): Refusal => (error === undefined ? {} : { error });
