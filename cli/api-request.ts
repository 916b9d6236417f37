/** One request to the Kubernetes API, as a person's command sends it. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { CommandError } from './command.ts';
import type { ApiAccess } from './kubeconfig.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

export type SendToApi = (access: ApiAccess, request: ApiRequest) => Promise<unknown>;

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 8_000_000;

/** The answer's object. @throws CommandError with what the server says, or why it says nothing */
export const sendToApi: SendToApi = async (access, { method, path, body }) => {
  const { status, text } = await exchange(access, method, path, body);
  let answer: { message?: unknown } | undefined;
  try {
    answer = JSON.parse(text) as { message?: unknown };
  } catch {
    answer = undefined;
  }
  if (status >= 200 && status < 300 && answer !== undefined) return answer;
  const said = typeof answer?.message === 'string' ? answer.message : `answer ${status}`;
  throw new CommandError(said, status === 401 ? 'the credential is not (or no longer) good' : `asked ${access.url}`);
};

function exchange(access: ApiAccess, method: string, path: string, body: unknown) {
  const url = new URL(`${access.url.replace(/\/$/, '')}${path}`);
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const fail = (cause: Error): void =>
      reject(
        new CommandError(`no answer from ${access.url}: ${cause.message}`, 'is this the right server?', { cause }),
      );
    const outgoing = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      ...(access.ca === undefined ? {} : { ca: access.ca }),
      timeout: TIMEOUT_MS,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${access.token}`,
        'user-agent': 'nodekeeper-cli',
        ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
      },
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('it took too long')));
    outgoing.on('error', fail);
    outgoing.on('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (part: string) => {
        text += part;
        if (text.length > ANSWER_BYTES_MAX) incoming.destroy(new Error('the answer is too long'));
      });
      incoming.on('error', fail);
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
    });
    outgoing.end(payload);
  });
}
