/**
 * nodekeeper bootstrap-token create|list|revoke
 *
 * A token is made here: the cluster is told the hash of its secret, and the secret is printed once.
 */
import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { rfc3339 } from '../shared/domain/rfc3339.ts';
import { type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
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

interface Shown {
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
  { environment, nowMs, print }: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { values, positionals } = parse(args);
  const [verb, ...names] = positionals;
  const access = () => apiAccess(values, environment);
  switch (verb) {
    case 'create': {
      if (names.length > 0) throw new CommandError(`create takes no ${names[0]}`, BOOTSTRAP_TOKEN_USAGE);
      const made = newToken();
      const hours = positive('hours', values.hours, HOURS);
      await send(access(), {
        method: 'POST',
        path: PATH,
        body: {
          apiVersion: 'nodekeeper.dev/v1alpha1',
          kind: 'BootstrapToken',
          metadata: { name: made.id },
          spec: {
            secretSha256: made.secretSha256,
            expires: rfc3339(nowMs + hours * 3_600_000),
            uses: positive('uses', values.uses, 1),
            ...(values.nodes === undefined ? {} : { nodeNamePattern: values.nodes }),
            ...(values.label === undefined ? {} : { nodeLabels: labelsOf(values.label) }),
            ...(values.reissue === true ? { reissue: true } : {}),
          },
        },
      });
      // Alone on its line, for scripts; it is not kept anywhere.
      print(`${made.id}.${made.secret}`);
      return;
    }
    case 'list': {
      const { items } = (await send(access(), { method: 'GET', path: PATH })) as { items: readonly Shown[] };
      for (const { metadata, spec, status } of items) {
        const left = `${status?.usesLeft ?? 0}/${spec.uses}`;
        const reissues = spec.reissue === true ? ' reissue' : '';
        print(`${metadata.name} left ${left} until ${spec.expires} nodes ${spec.nodeNamePattern ?? '*'}${reissues}`);
      }
      return;
    }
    case 'revoke': {
      if (names.length === 0) throw new CommandError('revoke which?', BOOTSTRAP_TOKEN_USAGE);
      for (const name of names) {
        // Whoever has the whole token at hand may paste it.
        const [id = ''] = name.split('.');
        await send(access(), { method: 'DELETE', path: `${PATH}/${encodeURIComponent(id)}` });
        print(`${id} revoked`);
      }
      return;
    }
    default:
      throw new CommandError(verb === undefined ? 'what about them?' : `no such verb: ${verb}`, BOOTSTRAP_TOKEN_USAGE);
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

function positive(option: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value < 1)
    throw new CommandError(`--${option} takes a whole number from 1 on, not ${text}`, BOOTSTRAP_TOKEN_USAGE);
  return value;
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const divide = pair.indexOf('=');
      if (divide < 1) throw new CommandError(`--label takes KEY=VALUE, not ${pair}`, BOOTSTRAP_TOKEN_USAGE);
      return [pair.slice(0, divide), pair.slice(divide + 1)];
    }),
  );
}
