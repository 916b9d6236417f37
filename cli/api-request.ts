/** Sends one request of a command to the Kubernetes API. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { defined } from '../shared/defined.ts';
import { CommandError } from './command.ts';
import type { ApiAccess } from './kubeconfig.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

export type SendToApi = (access: ApiAccess, request: ApiRequest) => Promise<unknown>;

const TIMEOUT_MS = 30_000;
const RESPONSE_CHARACTERS_MAX = 8_000_000;

/** The object of the response. @throws CommandError with the message of the server, or why there is no response */
export const sendToApi: SendToApi = async (access, { method, path, body }) => {
  const { status, text } = await exchange(access, method, path, body);
  let object: { message?: unknown } | undefined;
  try {
    object = JSON.parse(text) as { message?: unknown };
  } catch {
    object = undefined;
  }
  if (status >= 200 && status < 300 && object !== undefined) return object;
  const message = typeof object?.message === 'string' ? object.message : `HTTP status ${status}`;
  const next = status === 401 ? 'the credential is invalid or has expired' : `the server is ${access.url}`;
  throw new CommandError(message, next);
};

function exchange(access: ApiAccess, method: string, path: string, body: unknown) {
  const url = new URL(`${access.url.replace(/\/$/, '')}${path}`);
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const fail = (cause: Error): void =>
      reject(
        new CommandError(`no response from ${access.url}: ${cause.message}`, 'check the address of the server', {
          cause,
        }),
      );
    const outgoing = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      ...defined({ ca: access.ca }),
      timeout: TIMEOUT_MS,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${access.token}`,
        'user-agent': 'nodekeeper-cli',
        ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
      },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no data for ${TIMEOUT_MS / 1_000} s`)));
    outgoing.on('error', fail);
    outgoing.on('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (part: string) => {
        text += part;
        if (text.length > RESPONSE_CHARACTERS_MAX)
          incoming.destroy(new Error(`the response is longer than ${RESPONSE_CHARACTERS_MAX} characters`));
      });
      incoming.on('error', fail);
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
    });
    outgoing.end(payload);
  });
}
