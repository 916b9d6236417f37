/**
 * What it costs to know who beats: CPU of a beat by credential, and reads. Two runs: the heartbeat's own code over the
 * memory store in this process, where credentials are all that differs; and one check of a signature by itself, with
 * Node's cryptography and with a JWT library.
 */
import { createHash, verify } from 'node:crypto';
import { jwtVerify } from 'jose';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { bearerSchemes } from '../shared/adapters/tokens/bearer.ts';
import { nodeTokens } from '../shared/adapters/tokens/node-tokens.ts';
import { staticTokenAuthenticator } from '../shared/adapters/tokens/static-tokens.ts';
import type { NodeKeyAlgorithm } from '../shared/domain/access/node-identity.ts';
import { leaseChangeOf } from '../shared/heartbeat/lease-change.ts';
import { serveHeartbeat } from '../shared/heartbeat/renew-lease.ts';
import type { ConsumedUnits } from '../shared/ports/item-store.ts';
import { createLease } from '../shared/store/lease-store.ts';
import { nodeKeyStore, nodeKeys } from '../shared/store/node-key-store.ts';
import { silentLog } from '../test/support/agent-api.ts';
import { type NodeKeyPair, nodeKeyPair, nodeToken } from '../test/support/node-key-pair.ts';
import { type Benchmark, type Report, rounded } from './benchmark.ts';

const CLUSTER_ID = 'bench';
const NODES = 64;
const BEATS = 8_000;
const WARM_UP_BEATS = 2_000;
const CHECKS = 4_000;
const BEAT_INTERVAL_MS = 10_000;
/** A machine's token is replaced a minute before its end: every 24th beat. */
const BEATS_PER_TOKEN = 24;
const KEYS_LIVE_MS = 300_000;
const STATIC = 'a-token-of-local-mode';
const START_MS = Date.UTC(2026, 0, 1);

export const identity: Benchmark = {
  name: 'identity',
  about: 'CPU and reads of a beat by credential: static token; node token remembered, in turn, new each time',
  async run(report) {
    for (const algorithm of ['ES256', 'EdDSA'] as const) await checkSignatures(algorithm, report);
    await measureBeats({ kind: 'static' }, report);
    for (const algorithm of ['ES256', 'EdDSA'] as const) {
      for (const kind of ['warm', 'inTurn', 'verifiedEach'] as const) await measureBeats({ kind, algorithm }, report);
    }
  },
};

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

async function checkSignatures(algorithm: NodeKeyAlgorithm, report: Report): Promise<void> {
  const pair = nodeKeyPair(algorithm);
  const token = nodeToken(pair, { nodeName: 'n', nowMs: START_MS, clusterId: CLUSTER_ID });
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const key = { key: pair.publicKeyObject, dsaEncoding: 'ieee-p1363' } as const;
  const hash = algorithm === 'ES256' ? 'sha256' : null;
  const ours = (): boolean =>
    verify(hash, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'));
  const options = { algorithms: [algorithm], audience: CLUSTER_ID, currentDate: new Date(START_MS) };
  const library = () => jwtVerify(token, pair.publicKeyObject, options);
  report({ signature: algorithm, with: 'node:crypto', cpuMsPerCheck: await perCheck(async () => ours()) });
  report({ signature: algorithm, with: 'jose', cpuMsPerCheck: await perCheck(library) });
}

async function perCheck(check: () => Promise<unknown>): Promise<number> {
  for (let round = 0; round < CHECKS / 4; round += 1) await check();
  const beforeMs = cpuMs();
  for (let round = 0; round < CHECKS; round += 1) await check();
  return rounded((cpuMs() - beforeMs) / CHECKS, 3);
}

type Credential =
  | { readonly kind: 'static' }
  /** Time stands still: keys and tokens are all remembered. */
  | { readonly kind: 'warm'; readonly algorithm: NodeKeyAlgorithm }
  /** As machines do: a beat every ten seconds, a new token every 24th. One environment of the function. */
  | { readonly kind: 'inTurn'; readonly algorithm: NodeKeyAlgorithm }
  /** No token comes twice. */
  | { readonly kind: 'verifiedEach'; readonly algorithm: NodeKeyAlgorithm };

async function measureBeats(credential: Credential, report: Report): Promise<void> {
  const units: ConsumedUnits[] = [];
  const items = memoryItemStore({ onConsumed: (consumed) => units.push(consumed) });
  let nowMs = START_MS;
  const names = Array.from({ length: NODES }, (_, index) => `bench-${index}`);
  const pair = nodeKeyPair(credential.kind === 'static' ? 'ES256' : credential.algorithm);
  await registerNodes(items, names, pair);
  const people = staticTokenAuthenticator([
    { sha256: createHash('sha256').update(STATIC).digest('hex'), user: 'admin', groups: ['system:masters'] },
  ]);
  const nodes = nodeTokens({ keys: nodeKeys(items), clusterId: CLUSTER_ID, keysLiveMs: KEYS_LIVE_MS });
  const beat = serveHeartbeat({
    items,
    authenticator: bearerSchemes([nodes], people),
    clock: { nowMs: () => nowMs },
    random: { uuid: () => '', fraction: Math.random },
    log: silentLog,
  });
  // Signing is the machines' work and not counted: every token is made before the beats are.
  const turns = Array.from({ length: WARM_UP_BEATS + BEATS }, (_, index) => {
    const turn = Math.floor(index / NODES);
    const atMs = START_MS + (credential.kind === 'inTurn' ? turn * BEAT_INTERVAL_MS : 0);
    return { name: names[index % NODES]!, turn, atMs };
  });
  const authorization = tokensOf(credential, pair);
  const beats = turns.map((each) => ({ ...each, authorization: authorization(each) }));
  let beforeMs = 0;
  for (const [index, { name, atMs, authorization }] of beats.entries()) {
    if (index === WARM_UP_BEATS) {
      units.length = 0;
      beforeMs = cpuMs();
    }
    nowMs = atMs;
    const answer = await beat({
      method: 'PATCH',
      path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`,
      query: new URLSearchParams(),
      headers: { authorization, 'content-type': 'application/merge-patch+json' },
      body: BODY,
      sourceIp: '192.0.2.1',
    });
    if (answer.status !== 200) throw new Error(String(answer.body));
  }
  const usedMs = cpuMs() - beforeMs;
  const reads = units.filter(({ readUnits }) => readUnits > 0);
  const inThousand = (count: number): number => rounded((count * 1_000) / BEATS, 3);
  report({
    credential: credential.kind,
    ...(credential.kind === 'static' ? {} : { algorithm: credential.algorithm }),
    beats: BEATS,
    cpuMsPerBeat: rounded(usedMs / BEATS, 3),
    readsPerThousandBeats: inThousand(reads.length),
    readUnitsPerThousandBeats: inThousand(reads.reduce((sum, each) => sum + each.readUnits, 0)),
  });
}

const BODY = Buffer.from(JSON.stringify({ spec: { renewTime: '2026-01-01T00:00:00.000000Z' } }));

async function registerNodes(items: ReturnType<typeof memoryItemStore>, names: readonly string[], pair: NodeKeyPair) {
  const store = nodeKeyStore(items);
  for (const name of names) {
    const key = { keyId: pair.keyId, publicKey: pair.publicKey, addedAtMs: START_MS };
    const made = { nodeName: name, uid: name, createdAtMs: START_MS, keys: [key], source: 'user/bench' };
    await store.enrol(made, { nowMs: START_MS, along: [], pause: async () => {} });
    const metadata = { name, namespace: 'kube-node-lease' };
    const change = leaseChangeOf({ metadata, spec: { holderIdentity: name, leaseDurationSeconds: 40 } });
    await createLease(items, { change, nowMs: START_MS, tie: 0, uid: name });
  }
}

/** The header of a node's beat. */
function tokensOf(credential: Credential, pair: NodeKeyPair) {
  const kept = new Map<string, string>();
  return ({ name, turn, atMs }: { readonly name: string; readonly turn: number; readonly atMs: number }): string => {
    if (credential.kind === 'static') return `Bearer ${STATIC}`;
    const beatsPerToken = { warm: Number.POSITIVE_INFINITY, inTurn: BEATS_PER_TOKEN, verifiedEach: 1 }[credential.kind];
    const id = `${name}/${Math.floor(turn / beatsPerToken)}`;
    const found = kept.get(id);
    if (found !== undefined) return found;
    const said = { nodeName: name, nowMs: atMs, clusterId: CLUSTER_ID, claims: { jti: id } };
    const made = `Bearer ${nodeToken(pair, said)}`;
    kept.set(id, made);
    return made;
  };
}
