/**
 * API and heartbeat as deployed, over one memory store and a clock that only tests move: for tests of who may do what.
 */
import { createHash, randomBytes } from 'node:crypto';
import { memoryCloud } from '../../demo/ec2/cloud.ts';
import { instanceIdentities } from '../../functions/api/access/instance-identities.ts';
import { composeApi } from '../../functions/api/work.ts';
import { sha256Of } from '../../functions/heartbeat/sha256.ts';
import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { type ProbeCredentials, probeTokens } from '../../functions/node-monitor/probes.ts';
import { inProcess } from '../../server/system.ts';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { bearerSchemes, staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { bootstrapTokens } from '../../shared/access/bootstrap-token.ts';
import { bootstrapTokenStore } from '../../shared/access/bootstrap-token-store.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { nodeTokens } from '../../shared/access/node-tokens.ts';
import { keepProbeKey, probeKeys } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { readPublicKey } from '../../shared/access/public-keys.ts';
import { isLeaseBatchPath } from '../../shared/fleet/nodes/lease-batch.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { ConsumedUnits } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type NodeKeyPair, nodeToken } from './node-key-pair.ts';
import { documentSigner } from './pkcs7.ts';

export const CLUSTER_ID = 'here';
export const IDENTITIES = '/apis/nodekeeper.dev/v1alpha1/nodeidentities';
export const TOKENS = '/apis/nodekeeper.dev/v1alpha1/bootstraptokens';
export const NODE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
export const API_KEYS_LIVE_MS = 60_000;
export const HEARTBEAT_KEYS_LIVE_MS = 300_000;
export const ACCOUNT = '111122223333';
export const REGION = 'eu-central-1';
const ADMIN = 'the-administrators-token';
const START_MS = Date.UTC(2026, 0, 1);

/** Makes RSA keys once. */
const SIGNER = documentSigner();

export interface Answer {
  readonly code: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly body: any;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export class IdentityCluster {
  readonly #units: ConsumedUnits[] = [];
  readonly items: MemoryItemStore = memoryItemStore({ onConsumed: (units) => this.#units.push(units) });
  nowMs = START_MS;
  readonly #clock = { nowMs: () => this.nowMs };
  readonly cloud = memoryCloud({ clock: this.#clock, region: REGION, accountId: ACCOUNT });
  readonly documents = SIGNER;
  readonly #log: string[] = [];
  readonly #api: ReturnType<typeof composeApi>;
  readonly #heartbeat: ReturnType<typeof serveHeartbeat>;

  constructor() {
    const note = (message: string, fields?: Record<string, unknown>): void => {
      this.#log.push(`${message} ${String((fields?.['error'] as Error | undefined)?.stack ?? '')}`);
    };
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: note };
    const random = {
      uuid: () => randomBytes(16).toString('hex'),
      fraction: () => randomBytes(4).readUInt32BE() / 2 ** 32,
    };
    const people = staticTokenAuthenticator([{ sha256: sha256(ADMIN), user: 'admin', groups: ['system:masters'] }]);
    const nodes = (keysLiveMs: number, acceptsBeatTokens: boolean) =>
      nodeTokens({
        acceptsBeatTokens,
        keys: nodeKeys(this.items),
        probeKeys: probeKeys(this.items),
        clusterId: CLUSTER_ID,
        keysLiveMs,
      });
    const common = { items: this.items, clock: this.#clock, random, log };
    const atApi: Authenticator = bearerSchemes(
      [
        nodes(API_KEYS_LIVE_MS, false),
        bootstrapTokens(bootstrapTokenStore(this.items)),
        instanceIdentities({
          accountId: ACCOUNT,
          region: REGION,
          ageSecondsMax: 900,
          publicKey: this.documents.publicKey,
        }),
      ],
      people,
    );
    this.#api = composeApi({
      ...common,
      authenticator: atApi,
      pause: async () => {},
      policy: defaultPolicy,
      ...inProcess,
      readPublicKey,
      cloud: this.cloud,
    });
    this.#heartbeat = serveHeartbeat({
      ...common,
      authenticator: bearerSchemes([nodes(HEARTBEAT_KEYS_LIVE_MS, true)], people),
      sha256: sha256Of,
    });
  }

  /** What was logged as a fault since last asked. */
  takeFaults(): string[] {
    return this.#log.splice(0, this.#log.length);
  }

  /** Units since last asked. */
  consumed(): ConsumedUnits[] {
    return this.#units.splice(0, this.#units.length);
  }

  /** Everything stored, to see that nothing was written. */
  stored(): string {
    return JSON.stringify((['health', 'objects', 'control'] as const).map((table) => this.items.items(table)));
  }

  async send(
    method: string,
    pathAndQuery: string,
    token: string | undefined,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const [path = '', query = ''] = pathAndQuery.split('?', 2);
    const isRenewal = (method === 'PUT' || method === 'PATCH') && path.startsWith(`${NODE_LEASES}/`);
    const toHeartbeat = isRenewal || (method === 'POST' && isLeaseBatchPath(path));
    const answer = await (toHeartbeat ? this.#heartbeat : this.#api)({
      method,
      path,
      query: new URLSearchParams(query),
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        ...headers,
      },
      body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
      sourceIp: '192.0.2.9',
    });
    const text = Buffer.from(answer.body as Uint8Array | string).toString('utf8');
    return { code: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  asAdmin(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.send(method, path, ADMIN, body);
  }

  /** Makes a bootstrap token; returns it as its bearer sends it. */
  async bootstrapToken(spec: object = {}, id = `t${randomBytes(4).toString('hex')}`): Promise<string> {
    const secret = randomBytes(32).toString('base64url');
    const answer = await this.asAdmin('POST', TOKENS, {
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'BootstrapToken',
      metadata: { name: id },
      spec: { secretSha256: sha256(secret), expires: new Date(this.nowMs + 3_600_000).toISOString(), ...spec },
    });
    if (answer.code !== 201) throw new Error(JSON.stringify(answer.body));
    return `${id}.${secret}`;
  }

  enrol(token: string | undefined, nodeName: string, pair: NodeKeyPair, more: object = {}): Promise<Answer> {
    return this.send('POST', IDENTITIES, token, identityBody(nodeName, pair, more));
  }

  /** What the probe of a process of node-monitor proves itself with. */
  probe(): ProbeCredentials {
    return probeTokens({ keys: processKeys(keepProbeKey(this.items)), clusterId: CLUSTER_ID });
  }

  signed(pair: NodeKeyPair, nodeName: string, more: { header?: object; claims?: object } = {}): string {
    return nodeToken(pair, { nodeName, nowMs: this.nowMs, clusterId: CLUSTER_ID, ...more });
  }

  beat(token: string | undefined, nodeName: string): Promise<Answer> {
    return this.send('PATCH', `${NODE_LEASES}/${nodeName}`, token, { spec: { leaseDurationSeconds: 40 } });
  }
}

export const identityBody = (nodeName: string, pair: Pick<NodeKeyPair, 'publicKey'>, spec: object = {}) => ({
  apiVersion: 'nodekeeper.dev/v1alpha1',
  kind: 'NodeIdentity',
  metadata: { name: nodeName },
  spec: { publicKey: pair.publicKey, ...spec },
});

export const leaseBody = (nodeName: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: nodeName, namespace: 'kube-node-lease' },
  spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
});
