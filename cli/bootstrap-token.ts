/**
 * nodekeeper bootstrap-token create|list|revoke
 *
 * The token is generated here and printed once. The cluster receives only the hash of its secret.
 */
import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { defined } from '../shared/defined.ts';
import { rfc3339 } from '../shared/kubernetes/rfc3339.ts';
import { type ApiRequest, type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { installLine } from './join-line.ts';
import { apiAccess } from './kubeconfig.ts';

export const BOOTSTRAP_TOKEN_USAGE = [
  'nodekeeper bootstrap-token create [--uses N] [--hours N] [--nodes PATTERN] [--label KEY=VALUE]… [--reissue]',
  'nodekeeper bootstrap-token list',
  'nodekeeper bootstrap-token revoke ID',
  '  each with [--kubeconfig FILE] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

const PATH = '/apis/nodekeeper.dev/v1alpha1/bootstraptokens';
const HOURS = 24;
const ID_CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const ID_LENGTH = 8;
const SECRET_BYTES = 32;

interface BootstrapToken {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly expires: string;
    readonly uses: number;
    readonly nodeNamePattern?: string;
    readonly reissue?: boolean;
  };
  readonly status?: { readonly usesLeft?: number };
}

export async function bootstrapTokenCommand(
  args: readonly string[],
  io: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { environment, nowMs, print, note } = io;
  const { values, positionals } = parse(args);
  const access = () => apiAccess(values, environment);
  const [verb, ...names] = positionals;
  const request = (call: ApiRequest) => send(access(), call);
  switch (verb) {
    case 'create':
      if (names.length > 0) throw new CommandError(`create accepts no argument: ${names[0]}`, BOOTSTRAP_TOKEN_USAGE);
      {
        const token = await createToken(values, nowMs, request);
        // Alone on its line, for scripts. It is stored nowhere.
        print(token);
        // Without the token: standard error of a script is often a log.
        const line = installLine({ access: access(), token: 'TOKEN' });
        note?.(`To join another machine, with agent/dist on it and the token in place of TOKEN: ${line}`);
      }
      return;
    case 'list':
      return list(request, print);
    case 'revoke':
      if (names.length === 0) throw new CommandError('the ID of the token to revoke is missing', BOOTSTRAP_TOKEN_USAGE);
      return revoke(names, request, print);
    default:
      throw new CommandError(
        verb === undefined ? 'the verb is missing: create, list or revoke' : `unknown verb: ${verb}`,
        BOOTSTRAP_TOKEN_USAGE,
      );
  }
}

type Send = (call: ApiRequest) => Promise<unknown>;

export interface TokenOptions {
  readonly uses?: string | undefined;
  readonly hours?: string | undefined;
  readonly nodes?: string | undefined;
  readonly label?: readonly string[] | undefined;
  readonly reissue?: boolean | undefined;
}

/** @returns the token, which is stored nowhere */
export async function createToken(values: TokenOptions, nowMs: number, request: Send): Promise<string> {
  const { id, secret, secretSha256 } = newToken();
  const expiresAtMs = nowMs + wholeNumber('hours', values.hours, HOURS) * 3_600_000;
  await request({
    method: 'POST',
    path: PATH,
    body: {
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'BootstrapToken',
      metadata: { name: id },
      spec: {
        secretSha256,
        expires: rfc3339(expiresAtMs),
        uses: wholeNumber('uses', values.uses, 1),
        ...defined({
          nodeNamePattern: values.nodes,
          nodeLabels: values.label === undefined ? undefined : labelsOf(values.label),
          reissue: values.reissue,
        }),
      },
    },
  });
  return `${id}.${secret}`;
}

async function list(request: Send, print: CommandIo['print']): Promise<void> {
  const { items } = (await request({ method: 'GET', path: PATH })) as { items: readonly BootstrapToken[] };
  for (const { metadata, spec, status } of items) {
    const left = `${status?.usesLeft ?? 0}/${spec.uses}`;
    const reissues = spec.reissue === true ? ' reissue' : '';
    print(`${metadata.name} left ${left} until ${spec.expires} nodes ${spec.nodeNamePattern ?? '*'}${reissues}`);
  }
}

async function revoke(names: readonly string[], request: Send, print: CommandIo['print']): Promise<void> {
  for (const name of names) {
    // The whole token is accepted too.
    const [id = ''] = name.split('.');
    await request({ method: 'DELETE', path: `${PATH}/${encodeURIComponent(id)}` });
    print(`${id} revoked`);
  }
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      uses: { type: 'string' },
      hours: { type: 'string' },
      nodes: { type: 'string' },
      label: { type: 'string', multiple: true },
      reissue: { type: 'boolean' },
      kubeconfig: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });

function newToken() {
  const bytes = randomBytes(ID_LENGTH);
  const id = Array.from(bytes, (byte) => ID_CHARACTERS[byte % ID_CHARACTERS.length]).join('');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { id, secret, secretSha256: createHash('sha256').update(secret).digest('hex') };
}

/** @throws CommandError when the option is not a whole number of at least 1 */
function wholeNumber(option: string, text: string | undefined, defaultValue: number): number {
  if (text === undefined) return defaultValue;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value < 1)
    throw new CommandError(`--${option} must be a whole number of at least 1, not ${text}`, BOOTSTRAP_TOKEN_USAGE);
  return value;
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const divide = pair.indexOf('=');
      if (divide < 1) throw new CommandError(`--label must be KEY=VALUE, not ${pair}`, BOOTSTRAP_TOKEN_USAGE);
      return [pair.slice(0, divide), pair.slice(divide + 1)];
    }),
  );
}
