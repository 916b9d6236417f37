/**
 * Conditional updates, and reads of one item, without the SDK: one signed HTTP request over persistent connections.
 *
 * The heartbeat uses it, by far the most frequent request. It needs half the CPU (of 0.7 to 0.8 ms) and a twentieth
 * of the bundle size of the SDK's client. Expressions, errors and contract are the same. signature.test.ts compares
 * signatures with those of the SDK. The SDK's signer with a transport of our own would keep most of the CPU, undici
 * adds 277 KB, and an integration of API Gateway with DynamoDB cannot verify our tokens. One line in the composition of
 * the function returns to the SDK.
 *
 * As in the SDK's standard mode, a request is sent again after throttling, a server error, a lost connection or a
 * timeout, up to `attemptsMax` times in all. Consequences for callers: ItemStore.write.
 */
import type { GetItemCommandOutput, UpdateItemCommandOutput } from '@aws-sdk/client-dynamodb';
import { endpointOf } from '../../shared/aws/connection.ts';
import type { DynamoDbClientOptions } from '../../shared/aws/dynamodb-client.ts';
import { itemFromWire, toWire } from '../../shared/aws/dynamodb-expression.ts';
import {
  consumedWanted,
  isRepeatable,
  orFault,
  pauseBefore,
  type RequestOptions,
  reportConsumed,
  tableNameOf,
  updateItem,
} from '../../shared/aws/dynamodb-request.ts';
import { type PostAnswer, postClient, RequestError, requestSigner } from '../../shared/aws/signed-post.ts';
import type { ItemReader, ItemUpdater } from '../../shared/store/item-store.ts';

export interface LeanUpdaterOptions extends RequestOptions {
  readonly connection: DynamoDbClientOptions;
  /** Server time, for signatures. */
  readonly nowMs: () => number;
  /**
   * Time for all attempts at one request, including pauses. Milliseconds. It must be shorter than the function's
   * timeout.
   * @default - bounded only by the number of attempts and their timeouts
   */
  readonly budgetMs?: number;
}

/** No further attempt is made with less time than this. Milliseconds. */
const ATTEMPT_MS_MIN = 50;

type Operation = 'UpdateItem' | 'GetItem';
type Answer = UpdateItemCommandOutput & GetItemCommandOutput;

export function leanUpdater(options: LeanUpdaterOptions): ItemUpdater & ItemReader & { close(): void } {
  const { connection, nowMs } = options;
  const endpoint = endpointOf(connection, 'dynamodb');
  const timeoutMs = connection.requestTimeoutMs ?? 3_000;
  const client = postClient({ endpoint, socketsMax: connection.socketsMax ?? 32, timeoutMs, nowMs });
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service: 'dynamodb',
    contentType: 'application/x-amz-json-1.0',
  });
  const attemptsMax = connection.maxAttempts ?? 3;

  const sendOnce = async (operation: Operation, body: string, attemptMs: number): Promise<Answer> => {
    const headers = sign({ target: `DynamoDB_20120810.${operation}`, body, nowMs: nowMs() });
    return readAnswer(await client.post(headers, body, attemptMs));
  };

  const send = async (operation: Operation, input: object): Promise<Answer> => {
    const body = JSON.stringify(input);
    const deadlineMs = nowMs() + (options.budgetMs ?? Infinity);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await sendOnce(operation, body, Math.min(timeoutMs, deadlineMs - nowMs()));
      } catch (error) {
        if (attempt >= attemptsMax || !isRepeatable(error)) throw error;
        await pauseBefore(attempt, options);
        if (deadlineMs - nowMs() < ATTEMPT_MS_MIN) throw error;
      }
    }
  };
  return {
    write: (write, wanted) => updateItem((input) => send('UpdateItem', input), options, write, wanted),
    async get({ table, pk, sk }, { consistent }) {
      options.onCall?.({ operation: 'GetItem', table, partitionKeys: [pk] });
      const input = {
        TableName: tableNameOf(options, table),
        Key: { pk: toWire(pk), sk: toWire(sk) },
        ConsistentRead: consistent,
        ...consumedWanted(options),
      };
      const answer = await orFault(() => send('GetItem', input));
      reportConsumed(options, 'GetItem', 'read', [answer.ConsumedCapacity]);
      return answer.Item === undefined ? undefined : itemFromWire(answer.Item);
    },
    close: () => client.close(),
  };
}

/** @throws RequestError with DynamoDB's name of the error */
function readAnswer({ status, body }: PostAnswer): Answer {
  let answer: { __type?: string; Item?: unknown };
  try {
    answer = JSON.parse(body);
  } catch {
    throw new RequestError(status >= 500 ? 'InternalServerError' : 'SerializationException');
  }
  if (status === 200) return answer as Answer;
  // `com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException`
  const name = answer.__type?.split('#').at(-1) ?? `Status${status}`;
  // After a server error of any name (InternalFailure, ServiceUnavailableException) another attempt may succeed.
  const isOtherServerError = status >= 500 && !isRepeatable({ name });
  throw new RequestError(isOtherServerError ? 'InternalServerError' : name, answer.Item);
}
