/**
 * Who this machine is to the cluster, as docs/security.md has it: a key of its own, enrolled once with a bootstrap token;
 * from then on short tokens signed with it. Or one given token, sent as it is.
 *
 * Enrolling is part of getting a token, so the loops pace it as they pace everything that fails. A refusal that another
 * try will not change is remembered for a while, so that they do not knock every few seconds with a wrong secret.
 *
 * A deleted identity is not enrolled again with the token it was made with: revoking must last. Another bootstrap token
 * in the configuration enrols anew.
 */
import { sign } from 'node:crypto';
import type { Log } from '../../../shared/ports/log.ts';
import type { AgentConfig } from '../../config.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { KubeAnswer, KubeApi } from '../../ports/kube-api.ts';
import type { AgentTime } from '../../ports/time.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';
import { clockOffsetMs, explainsRefusal, isUsable, type TokenClaims, tokenClaims } from '../../rules/node-token.ts';
import { type Enrolment, readEnrolment, writeEnrolment } from './enrolment-file.ts';
import { type MachineKey, machineKey } from './key-file.ts';

const IDENTITIES_PATH = '/apis/nodekeeper.dev/v1alpha1/nodeidentities';
/** How long a refusal is believed. Milliseconds. */
const REFUSED_FOR_MS = 60_000;
/** Answers after which the same request may work. */
const isPassing = (answer: KubeAnswer): boolean =>
  answer.kind === 'failed' || answer.status === 429 || answer.status >= 500;

export class EnrolmentError extends Error {
  override readonly name = 'EnrolmentError';
}

export interface NodeIdentity extends Credentials {
  /** Labels the cluster wants the Node registered with. Enrols first where that is due; rejects as `bearer` does. */
  nodeLabels(): Promise<Readonly<Record<string, string>>>;
}

export interface NodeIdentityDependencies {
  readonly time: Pick<AgentTime, 'nowMs'>;
  readonly log: Log;
  /** Speaks with the bootstrap token; used to enrol and for nothing else. */
  readonly bootstrapApi?: KubeApi | undefined;
}

/** A token that is sent as it is: the one configured, or a bootstrap token. */
export const givenToken = (token: string): Credentials => ({ bearer: async () => token, answered: () => false });

export function createNodeIdentity(
  config: Pick<AgentConfig, 'nodeName' | 'clusterId' | 'rootDirectory' | 'bootstrapToken' | 'token'>,
  dependencies: NodeIdentityDependencies,
): NodeIdentity {
  if (config.token !== undefined) return { ...givenToken(config.token), nodeLabels: async () => ({}) };
  const { time, log } = dependencies;
  let offsetMs = 0;
  let made: { readonly token: string; readonly claims: TokenClaims; readonly offsetMs: number } | undefined;
  let ready: { readonly key: MachineKey; readonly nodeLabels: Readonly<Record<string, string>> } | undefined;
  let preparing: Promise<NonNullable<typeof ready>> | undefined;
  let refusal: { readonly error: EnrolmentError; readonly untilMs: number } | undefined;

  async function prepare(): Promise<NonNullable<typeof ready>> {
    const key = await machineKey(config.rootDirectory);
    const stored = await readEnrolment(config.rootDirectory);
    const ours =
      stored?.clusterId === config.clusterId && stored.nodeName === config.nodeName && stored.keyId === key.keyId;
    const tokenId = config.bootstrapToken?.split('.', 1)[0];
    if (ours && (tokenId === undefined || tokenId === stored.bootstrapTokenId)) {
      return { key, nodeLabels: stored.nodeLabels };
    }
    // Somebody may have stored our public key by other means.
    if (tokenId === undefined || dependencies.bootstrapApi === undefined) return { key, nodeLabels: {} };
    const nodeLabels = await enrol(dependencies.bootstrapApi, key);
    const enrolment: Enrolment = {
      clusterId: config.clusterId,
      nodeName: config.nodeName,
      keyId: key.keyId,
      bootstrapTokenId: tokenId,
      nodeLabels,
    };
    await writeEnrolment(config.rootDirectory, enrolment);
    log.info('enrolled', { node: config.nodeName, keyId: key.keyId });
    return { key, nodeLabels };
  }

  async function enrol(api: KubeApi, key: MachineKey): Promise<Readonly<Record<string, string>>> {
    if (refusal !== undefined && time.nowMs() < refusal.untilMs) throw refusal.error;
    const answer = await api.send({
      method: 'POST',
      path: IDENTITIES_PATH,
      body: {
        apiVersion: 'nodekeeper.dev/v1alpha1',
        kind: 'NodeIdentity',
        metadata: { name: config.nodeName },
        spec: { publicKey: key.publicKey },
      },
    });
    if (!answeredWith(answer, 200, 201)) {
      const error = new EnrolmentError(`${config.nodeName} could not be enrolled: ${describeAnswer(answer)}`);
      if (!isPassing(answer)) refusal = { error, untilMs: time.nowMs() + REFUSED_FOR_MS };
      throw error;
    }
    refusal = undefined;
    const spec = objectIn(answer)?.spec as
      | { keys?: readonly { keyId?: unknown }[]; nodeLabels?: Record<string, string> }
      | undefined;
    if (!spec?.keys?.some(({ keyId }) => keyId === key.keyId)) {
      throw new EnrolmentError(`${config.nodeName} could not be enrolled: the answer does not hold our key`);
    }
    return spec.nodeLabels ?? {};
  }

  async function prepared(): Promise<NonNullable<typeof ready>> {
    if (ready !== undefined) return ready;
    preparing ??= prepare().finally(() => {
      preparing = undefined;
    });
    ready = await preparing;
    return ready;
  }

  function signed(key: MachineKey, claims: TokenClaims): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const text = `${part({ alg: 'ES256', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
    const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  return {
    async bearer() {
      const { key } = await prepared();
      const serverNowMs = time.nowMs() + offsetMs;
      if (made === undefined || !isUsable(made.claims, serverNowMs)) {
        const claims = tokenClaims(config.nodeName, config.clusterId, serverNowMs);
        made = { token: signed(key, claims), claims, offsetMs };
      }
      return made.token;
    },
    answered({ status, serverTimeMs }) {
      if (serverTimeMs !== undefined) offsetMs = clockOffsetMs(serverTimeMs, time.nowMs());
      if (status !== 401) return false;
      // The other connection met the same refusal first.
      if (made === undefined) return true;
      const usable = isUsable(made.claims, time.nowMs() + offsetMs);
      if (usable && !explainsRefusal(made.offsetMs, offsetMs)) return false;
      log.warn('our token was refused because of the clock', { node: config.nodeName, offsetMs });
      made = undefined;
      return true;
    },
    nodeLabels: async () => (await prepared()).nodeLabels,
  };
}
