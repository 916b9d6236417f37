/**
 * Who this machine is to the cluster, as docs/security.md has it: a key of its own, enrolled once with a bootstrap token;
 * from then on short tokens signed with it. Or one given token, sent as it is.
 *
 * Enrolling is part of getting a token, so the loops pace it as they pace everything that fails. A refusal that another
 * try will not change is remembered for a while, so that they do not knock every few seconds with a wrong secret.
 *
 * A deleted identity is not enrolled again with the token it was made with: revoking must last. Another bootstrap token
 * in the configuration enrols anew.
 *
 * While the key is being replaced (agent/app/key-rotation.ts) there are two. One signs; when it is refused, the other does:
 * whatever was going on when the machine lost its power, one of the two is known to the cluster. The disk has the last word:
 * another agent on it may have replaced the keys, so they are read again before each step and when none of ours is accepted.
 */
import { sign } from 'node:crypto';
import { NODE_USER_PREFIX } from '../../../shared/domain/access/node-restriction.ts';
import { isUsable, type TokenClaims, tokenClaims } from '../../../shared/domain/access/node-token.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { AgentConfig } from '../../config.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { KubeAnswer, KubeApi } from '../../ports/kube-api.ts';
import type { MachineKeys } from '../../ports/machine-keys.ts';
import type { AgentTime } from '../../ports/time.ts';
import { enrolRequest, identityIn } from '../../rules/identity-request.ts';
import { isWorthATry } from '../../rules/key-rotation.ts';
import { answeredWith, describeAnswer } from '../../rules/kube-answer.ts';
import { clockOffsetMs, explainsRefusal } from '../../rules/node-token.ts';
import { type Enrolment, readEnrolment, writeEnrolment } from './enrolment-file.ts';
import {
  adoptNextMachineKey,
  KeyFileError,
  type MachineKey,
  machineKey,
  makeNextMachineKey,
  nextMachineKey,
  presentMachineKey,
} from './key-file.ts';

/** Answers after which the same request may work. */
const isPassing = (answer: KubeAnswer): boolean =>
  answer.kind === 'failed' || answer.status === 429 || answer.status >= 500;

export class EnrolmentError extends Error {
  override readonly name = 'EnrolmentError';
}

export interface NodeIdentity extends Credentials {
  /** Labels the cluster wants the Node registered with. Enrols first where that is due; rejects as `bearer` does. */
  nodeLabels(): Promise<Readonly<Record<string, string>>>;
  /** What is wrong with the files of the identity; undefined while nothing is. */
  complaint(): string | undefined;
  /** Absent where a token was given: then there is no key of ours. */
  readonly keys?: MachineKeys;
}

interface Prepared {
  readonly key: MachineKey;
  readonly next: MachineKey | undefined;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

export interface NodeIdentityDependencies {
  readonly time: Pick<AgentTime, 'nowMs' | 'monotonicMs'>;
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
  if (config.token !== undefined)
    return { ...givenToken(config.token), nodeLabels: async () => ({}), complaint: () => undefined };
  const { time, log } = dependencies;
  /** What the cluster said when it enrolled us, and could not be written. The key lies on the disk, so it counts. */
  let unsaved: { readonly enrolment: Enrolment; why: string; triedAtMs: number } | undefined;
  let keyComplaint: string | undefined;
  // The server dates our tokens. Its time is what it said last plus what has passed since, however our clock is set.
  const aheadMs = time.nowMs() - time.monotonicMs();
  const steadyNowMs = (): number => aheadMs + time.monotonicMs();
  let offsetMs = 0;
  let made:
    | { readonly token: string; readonly keyId: string; readonly claims: TokenClaims; readonly offsetMs: number }
    | undefined;
  let ready: Prepared | undefined;
  let preparing: Promise<Prepared> | undefined;
  let signsWithNext = false;
  /** Keys that were refused for no fault of the clock, and when. As many as there are keys. Monotonic milliseconds. */
  const refusedAtMs = new Map<string, number>();
  let acceptedKeyId: string | undefined;
  /** None of our keys is accepted, as far as we know. */
  let isLockedOut = false;
  /** When the disk was last looked at for keys that are. Monotonic milliseconds. */
  let lookedAtMs: number | undefined;
  let refusal: { readonly error: EnrolmentError; readonly atMs: number } | undefined;

  const usableNextKey = (): Promise<MachineKey | undefined> =>
    nextMachineKey(config.rootDirectory).catch((error: unknown) => {
      log.warn('the next key of this machine cannot be used', { error });
      return undefined;
    });

  async function prepare(): Promise<Prepared> {
    const key = await machineKey(config.rootDirectory);
    const next = await usableNextKey();
    const stored = await readEnrolment(config.rootDirectory);
    const ours =
      stored?.clusterId === config.clusterId &&
      stored.nodeName === config.nodeName &&
      [key.keyId, next?.keyId].includes(stored.keyId);
    const tokenId = config.bootstrapToken?.split('.', 1)[0];
    if (ours && (tokenId === undefined || tokenId === stored.bootstrapTokenId)) {
      return { key, next, nodeLabels: stored.nodeLabels };
    }
    // Somebody may have stored our public key by other means.
    if (tokenId === undefined || dependencies.bootstrapApi === undefined) return { key, next, nodeLabels: {} };
    const nodeLabels = await enrol(dependencies.bootstrapApi, key);
    const enrolment: Enrolment = {
      clusterId: config.clusterId,
      nodeName: config.nodeName,
      keyId: key.keyId,
      bootstrapTokenId: tokenId,
      nodeLabels,
    };
    await save(enrolment);
    log.info('enrolled', { node: config.nodeName, keyId: key.keyId });
    return { key, next, nodeLabels };
  }

  async function save(enrolment: Enrolment): Promise<void> {
    try {
      await writeEnrolment(config.rootDirectory, enrolment);
      unsaved = undefined;
    } catch (cause) {
      const why = (cause as Error).message;
      if (unsaved === undefined) log.error('the identity cannot be written; it is tried again', { why });
      unsaved = { enrolment, why, triedAtMs: time.monotonicMs() };
    }
  }

  async function enrol(api: KubeApi, key: MachineKey): Promise<Readonly<Record<string, string>>> {
    if (refusal !== undefined && !isWorthATry(refusal.atMs, time.monotonicMs())) throw refusal.error;
    const answer = await api.send(enrolRequest(config.nodeName, key.publicKey));
    if (!answeredWith(answer, 200, 201)) {
      const error = new EnrolmentError(`${config.nodeName} could not be enrolled: ${describeAnswer(answer)}`);
      if (!isPassing(answer)) refusal = { error, atMs: time.monotonicMs() };
      throw error;
    }
    refusal = undefined;
    const identity = identityIn(answer);
    if (!identity?.keys.some(({ keyId }) => keyId === key.keyId)) {
      throw new EnrolmentError(`${config.nodeName} could not be enrolled: the answer does not hold our key`);
    }
    return identity.nodeLabels;
  }

  async function prepared(): Promise<Prepared> {
    if (ready !== undefined) return ready;
    preparing ??= prepare()
      .then(
        (found) => {
          ready = found;
          keyComplaint = undefined;
          return found;
        },
        (error: unknown) => {
          if (error instanceof KeyFileError) keyComplaint = error.message;
          throw error;
        },
      )
      .finally(() => {
        preparing = undefined;
      });
    return preparing;
  }

  /** With the keys that lie on the disk now. Where its key is gone, ours are all there is. */
  async function reread(): Promise<Prepared> {
    const before = await prepared();
    const key = await presentMachineKey(config.rootDirectory);
    const next = await usableNextKey();
    // Also when we changed them ourselves meanwhile.
    if (ready !== before) return prepared();
    if (key === undefined || (key.keyId === before.key.keyId && next?.keyId === before.next?.keyId)) return before;
    const signedWith = signing(before).keyId;
    ready = { ...before, key, next };
    signsWithNext = next?.keyId === signedWith;
    if (signing(ready).keyId !== signedWith) made = undefined;
    refusedAtMs.clear();
    return ready;
  }

  function signed(key: MachineKey, claims: TokenClaims): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const text = `${part({ alg: 'ES256', typ: 'JWT', kid: key.keyId })}.${part(claims)}`;
    const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  const signing = ({ key, next }: Prepared): MachineKey => (signsWithNext ? (next ?? key) : key);

  /** After a refusal that the clock does not explain: whether another key signs now, and the request is worth repeating. */
  function turnToOtherKey(refusedKeyId: string): boolean {
    const other = [ready?.key, ready?.next].find((each) => each !== undefined && each.keyId !== refusedKeyId);
    refusedAtMs.set(refusedKeyId, time.monotonicMs());
    const worthATry = other !== undefined && isWorthATry(refusedAtMs.get(other.keyId), time.monotonicMs());
    isLockedOut = !worthATry;
    if (other === undefined) return false;
    // Both were refused: whatever that is, the one that worked is the likelier to work again.
    const signs = worthATry ? other.keyId : (acceptedKeyId ?? ready?.key.keyId);
    signsWithNext = signs === ready?.next?.keyId;
    made = undefined;
    if (worthATry) log.warn('our key was refused; the other one signs now', { node: config.nodeName, refusedKeyId });
    return worthATry;
  }

  const keys: MachineKeys = {
    async held() {
      const { key, next } = await reread();
      return { current: key, next };
    },
    async makeNext() {
      const before = await prepared();
      const next = await makeNextMachineKey(config.rootDirectory);
      ready = { ...before, next };
      return next;
    },
    signWithNext() {
      if (signsWithNext || ready?.next === undefined) return;
      refusedAtMs.clear();
      signsWithNext = true;
      made = undefined;
    },
    signingKeyId: () => (ready === undefined ? undefined : signing(ready).keyId),
    async adoptNext() {
      const { next, ...before } = await prepared();
      if (next === undefined) return;
      // First what says whose keys these are: it holds for either of the two.
      const stored = await readEnrolment(config.rootDirectory);
      if (stored?.keyId === before.key.keyId) {
        await writeEnrolment(config.rootDirectory, { ...stored, keyId: next.keyId });
      }
      await adoptNextMachineKey(config.rootDirectory, next.keyId);
      // What is still to be written names the key that counts now.
      if (unsaved !== undefined) unsaved = { ...unsaved, enrolment: { ...unsaved.enrolment, keyId: next.keyId } };
      ready = { ...before, key: next, next: undefined };
      signsWithNext = false;
      refusedAtMs.clear();
      if (made?.keyId !== next.keyId) made = undefined;
    },
    serverNowMs: () => steadyNowMs() + offsetMs,
  };

  return {
    async bearer() {
      if (isLockedOut && isWorthATry(lookedAtMs, time.monotonicMs())) {
        lookedAtMs = time.monotonicMs();
        await reread().catch((error: unknown) => log.warn('the keys could not be read again', { error }));
      }
      const key = signing(await prepared());
      if (unsaved !== undefined && isWorthATry(unsaved.triedAtMs, time.monotonicMs())) {
        unsaved.triedAtMs = time.monotonicMs();
        await save(unsaved.enrolment);
      }
      const serverNowMs = steadyNowMs() + offsetMs;
      if (made === undefined || !isUsable(made.claims, serverNowMs)) {
        const claims = tokenClaims(`${NODE_USER_PREFIX}${config.nodeName}`, config.clusterId, serverNowMs);
        made = { token: signed(key, claims), keyId: key.keyId, claims, offsetMs };
      }
      return made.token;
    },
    answered({ status, serverTimeMs, token }) {
      if (serverTimeMs !== undefined) offsetMs = clockOffsetMs(serverTimeMs, steadyNowMs());
      if (status !== 401) {
        if (made !== undefined && token === made.token && status < 400) {
          acceptedKeyId = made.keyId;
          isLockedOut = false;
        }
        return false;
      }
      // The other connection met the same refusal first.
      if (made === undefined || (token !== undefined && token !== made.token)) return true;
      const usable = isUsable(made.claims, steadyNowMs() + offsetMs);
      if (usable && !explainsRefusal(made.offsetMs, offsetMs)) return turnToOtherKey(made.keyId);
      log.warn('our token was refused because of the clock', { node: config.nodeName, offsetMs });
      made = undefined;
      return true;
    },
    nodeLabels: async () => (await prepared()).nodeLabels,
    complaint: () =>
      keyComplaint ?? (unsaved === undefined ? undefined : `the identity is not written: ${unsaved.why}`),
    keys,
  };
}
