/**
 * The identity of this machine in the cluster (docs/security.md): its own key, enrolled once with a bootstrap token,
 * and short-lived tokens signed with that key. Or one configured token, sent unchanged.
 *
 * Enrolment is part of obtaining a token, so the back-off of the loops applies to it too.
 */
import { NODE_USER_PREFIX } from '../../../shared/access/authorize.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentConfig } from '../../config.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { MachineKeys } from '../../ports/machine-keys.ts';
import type { AgentTime } from '../../ports/time.ts';
import { Enroller } from './enroller.ts';
import { KeyRing } from './key-ring.ts';
import { ServerClock } from './server-clock.ts';
import { TokenSigner } from './signed-token.ts';

export interface NodeIdentity extends Credentials {
  /** Labels with which the cluster wants the Node registered. Enrols first if that is due. Rejects as `bearer` does. */
  nodeLabels(): Promise<Readonly<Record<string, string>>>;
  /** What is wrong with the files of the identity; undefined if nothing is. */
  complaint(): string | undefined;
  /** Absent with a configured token: the machine then has no key. */
  readonly keys?: MachineKeys;
}

export interface NodeIdentityDependencies {
  readonly time: Pick<AgentTime, 'nowMs' | 'monotonicMs' | 'uptimeMs'>;
  readonly log: Log;
  /** Sends the bootstrap token; used to enrol only. */
  readonly bootstrapApi?: KubeApi | undefined;
}

/** Credentials of a token that is sent unchanged: a configured token, or a bootstrap token. */
export const staticToken = (token: string): Credentials => ({ bearer: async () => token, answered: () => false });

export function createNodeIdentity(
  config: Pick<AgentConfig, 'nodeName' | 'clusterId' | 'rootDirectory' | 'bootstrapToken' | 'token'>,
  dependencies: NodeIdentityDependencies,
): NodeIdentity {
  if (config.token !== undefined) {
    return { ...staticToken(config.token), nodeLabels: async () => ({}), complaint: () => undefined };
  }
  const { nodeName, rootDirectory } = config;
  const { time, log } = dependencies;
  const clock = new ServerClock(time);
  const tokens = new TokenSigner(`${NODE_USER_PREFIX}${nodeName}`, config.clusterId, clock);
  const beatTokens = new BeatTokenUse(time);
  const enroller = new Enroller(config, dependencies);
  const keyRing = new KeyRing({
    nodeName,
    rootDirectory,
    time,
    log,
    enroller,
    onSigningKeyChange: (keyId) => tokens.discardUnlessSignedBy(keyId),
  });
  return {
    async bearer(use) {
      const key = await keyRing.signingKey();
      await enroller.retryWrite();
      if (use.kind === 'boundBeat') return tokens.boundBearer(key, use.body);
      return tokens.bearer(key, use.kind === 'beat' && beatTokens.areAccepted() ? 'beat' : 'all');
    },
    answered({ status, serverTimeMs, token }) {
      if (serverTimeMs !== undefined) clock.observe(serverTimeMs);
      if (status === 401) return mayRetry(token, { nodeName, log, clock, tokens, beatTokens, keyRing });
      const keyId = tokens.find(token)?.keyId;
      if (keyId !== undefined && status < 400) keyRing.accepted(keyId);
      return false;
    },
    nodeLabels: async () => (await keyRing.enrolled()).nodeLabels,
    complaint: () => keyRing.complaint() ?? enroller.complaint(),
    keys: machineKeys(keyRing, clock),
  };
}

const machineKeys = (keyRing: KeyRing, clock: ServerClock): MachineKeys => ({
  held: () => keyRing.held(),
  makeNext: () => keyRing.makeNext(),
  signWithNext: () => keyRing.signWithNext(),
  signingKeyId: () => keyRing.signingKeyId(),
  adoptNext: () => keyRing.adoptNext(),
  serverNowMs: () => clock.nowMs(),
});

/** After a refusal, tokens for heartbeats alone are not used for this long. Milliseconds. */
const BEAT_TOKENS_AGAIN_MS = 600_000;

/**
 * Whether the cluster accepts tokens for heartbeats alone. An older cluster refuses them, and a cluster may be rolled
 * back at any time. The token for all requests is used instead, and every ten minutes the other one is tried again.
 */
class BeatTokenUse {
  readonly #time: Pick<AgentTime, 'monotonicMs'>;
  #refusedUntilMs = 0;

  constructor(time: Pick<AgentTime, 'monotonicMs'>) {
    this.#time = time;
  }

  areAccepted(): boolean {
    return this.#time.monotonicMs() >= this.#refusedUntilMs;
  }

  refused(): void {
    this.#refusedUntilMs = this.#time.monotonicMs() + BEAT_TOKENS_AGAIN_MS;
  }
}

interface TokenParts {
  readonly nodeName: string;
  readonly log: Log;
  readonly clock: ServerClock;
  readonly tokens: TokenSigner;
  readonly beatTokens: BeatTokenUse;
  readonly keyRing: KeyRing;
}

/** Whether a request that was refused with 401 can succeed with another token. */
function mayRetry(refusedToken: string, { nodeName, log, clock, tokens, beatTokens, keyRing }: TokenParts): boolean {
  const refused = tokens.find(refusedToken);
  // The token was replaced since: the other connection received the same refusal first.
  if (refused === undefined) return true;
  if (tokens.isRefusedByClock(refused.audience)) {
    log.warn('our token was refused because of the clock', { node: nodeName, offsetMs: clock.offsetMs() });
    tokens.discard();
    return true;
  }
  if (refused.audience === 'beat') {
    log.warn('our token for heartbeats was refused; the one for all requests is used', { node: nodeName });
    beatTokens.refused();
    return true;
  }
  const outcome = keyRing.refused(refused.keyId);
  if (outcome !== 'onlyKey') tokens.discard();
  return outcome === 'otherKey';
}
