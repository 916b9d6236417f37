/**
 * Conditional updates, and reads of one item, without the SDK: one signed HTTP request over kept connections. For the
 * heartbeat, which does nothing else, ten thousand times as often as anything else: half the CPU of the SDK's client, a twentieth of the bundle,
 * the same expressions, errors and contract (aws-connection/signature.test.ts compares signatures with the SDK's signer).
 *
 * Attempts: as the SDK's standard mode, a request is sent again after throttling, a server's error, a lost connection or a
 * timeout, `attemptsMax` in all. What that means for a caller: ItemStore.write.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { GetItemCommandOutput, UpdateItemCommandOutput } from '@aws-sdk/client-dynamodb';
import type { ItemReader, ItemUpdater } from '../../ports/item-store.ts';
import { endpointOf } from '../aws-connection/connection.ts';
import { requestSigner } from '../aws-connection/signature.ts';
import { itemFromWire, toWire } from './attribute-value.ts';
import type { DynamoDbClientOptions } from './client.ts';
import { isRepeatable } from './errors.ts';
import { consumedWanted, orFault, pauseBefore, type RequestOptions, tableNameOf, tellConsumed } from './request.ts';
import { updateItem } from './update-request.ts';

export interface LeanUpdaterOptions extends RequestOptions {
  readonly connection: DynamoDbClientOptions;
  /** Server time, for signatures. */
  readonly nowMs: () => number;
}

type Operation = 'UpdateItem' | 'GetItem';
type Answer = UpdateItemCommandOutput & GetItemCommandOutput;

/** Answers are one item: far below this, or not from DynamoDB. */
const ANSWER_CHARACTERS_MAX = 1_000_000;

export function leanUpdater(options: LeanUpdaterOptions): ItemUpdater & ItemReader & { close(): void } {
  const { connection, nowMs } = options;
  const endpoint = endpointOf(connection, 'dynamodb');
  const secure = endpoint.protocol === 'https:';
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: connection.socketsMax ?? 32 });
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service: 'dynamodb',
    contentType: 'application/x-amz-json-1.0',
  });
  const attemptsMax = connection.maxAttempts ?? 3;
  const requestTimeoutMs = connection.requestTimeoutMs ?? 3_000;

  const sendOnce = (operation: Operation, body: string): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)({
        host: endpoint.hostname,
        port: endpoint.port === '' ? (secure ? 443 : 80) : endpoint.port,
        method: 'POST',
        path: '/',
        agent,
        headers: {
          ...sign({ target: `DynamoDB_20120810.${operation}`, body, nowMs: nowMs() }),
          'content-length': Buffer.byteLength(body),
        },
      });
      const timer = setTimeout(() => outgoing.destroy(new RequestError('TimeoutError')), requestTimeoutMs);
      const settle = (error: Error | undefined, answer?: Answer): void => {
        clearTimeout(timer);
        if (error === undefined) resolve(answer!);
        else reject(error);
      };
      outgoing.on('error', settle);
      outgoing.on('response', (incoming) => readAnswer(incoming, settle));
      outgoing.end(body);
    });

  const send = async (operation: Operation, input: object): Promise<Answer> => {
    const body = JSON.stringify(input);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await sendOnce(operation, body);
      } catch (error) {
        if (attempt >= attemptsMax || !isRepeatable(error)) throw error;
        await pauseBefore(attempt, options);
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
      tellConsumed(options, 'GetItem', 'read', [answer.ConsumedCapacity]);
      return answer.Item === undefined ? undefined : itemFromWire(answer.Item);
    },
    close: () => agent.destroy(),
  };
}

/** An error by the name that DynamoDB gives it. */
class RequestError extends Error {
  override readonly name: string;
  readonly Item?: unknown;
  constructor(name: string, item?: unknown) {
    super(name);
    this.name = name;
    if (item !== undefined) this.Item = item;
  }
}

function readAnswer(incoming: IncomingMessage, settle: (error: Error | undefined, answer?: Answer) => void): void {
  let text = '';
  incoming.setEncoding('utf8');
  incoming.on('data', (part: string) => {
    text += part;
    if (text.length > ANSWER_CHARACTERS_MAX) incoming.destroy(new RequestError('AnswerTooLong'));
  });
  incoming.on('error', settle);
  incoming.on('aborted', () => settle(new RequestError('ConnectionAborted')));
  incoming.on('end', () => {
    const status = incoming.statusCode ?? 0;
    let answer: { __type?: string; Item?: unknown } & Record<string, unknown>;
    try {
      answer = JSON.parse(text);
    } catch {
      return settle(new RequestError(status >= 500 ? 'InternalServerError' : 'SerializationException'));
    }
    if (status === 200) return settle(undefined, answer as unknown as Answer);
    // `com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException`
    const name = answer.__type?.split('#').at(-1) ?? (status >= 500 ? 'InternalServerError' : `Status${status}`);
    settle(new RequestError(name, answer.Item));
  });
}
