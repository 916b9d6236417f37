/** Sends one request of a command to the Kubernetes API. */
import { bytesOf } from '../shared/host/http-body.ts';
import { exchange } from '../shared/host/http-exchange.ts';
import { CommandError } from './command.ts';
import type { ApiAccess } from './kubeconfig.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

export type SendToApi = (access: ApiAccess, request: ApiRequest) => Promise<unknown>;

const QUIET_MS = 30_000;
const RESPONSE_BYTES_MAX = 8_000_000;

/** The object of the response. @throws CommandError with the message of the server, or why there is no response */
export const sendToApi: SendToApi = async (access, request) => {
  const { status, text } = await textOf(access, request);
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

async function textOf(
  access: ApiAccess,
  { method, path, body }: ApiRequest,
): Promise<{ status: number; text: string }> {
  const url = new URL(`${access.url.replace(/\/$/, '')}${path}`);
  const headers = { accept: 'application/json', 'user-agent': 'nodekeeper-cli' };
  try {
    const { token, ca } = access;
    const answer = await exchange(url, { method, token, headers, body, ca, quietMs: QUIET_MS });
    const bytes = await bytesOf(answer, RESPONSE_BYTES_MAX);
    if (bytes === undefined) throw new Error(`the response is longer than ${RESPONSE_BYTES_MAX} bytes`);
    return { status: answer.statusCode ?? 0, text: bytes.toString('utf8') };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`no response from ${access.url}: ${why}`, 'check the address of the server', { cause });
  }
}
