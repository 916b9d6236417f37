/**
 * Deleting a machine's identity, or replacing its key, closes its open watches within 5 seconds, and so does the
 * removal of a role binding.
 */
import { expect, it } from 'vitest';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { KEY_ID_EXTRA } from '../../shared/access/node-identity.ts';
import { nodeKeyStore, nodeKeys } from '../../shared/access/node-key-store.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import { TICKET_PARAMETER } from '../../shared/api/watch/watch-redirect.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { gzip } from '../../shared/gzip.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { type ApiInMemory, apiInMemory, MERGE, NODES, node } from '../../test/support/api-in-memory.ts';
import {
  DEFINITIONS,
  WIDGET_SCHEMA,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../../test/support/custom-definition.ts';
import { linesOfWatch } from '../../test/support/watch-lines.ts';
import { readYaml } from '../api/read-yaml.ts';
import { serveWatch } from './work.ts';

const MACHINE: UserInfo = {
  username: 'system:node:n1',
  groups: ['system:nodes', 'system:authenticated'],
  extra: { [KEY_ID_EXTRA]: ['key-1'] },
};
const PERSON: UserInfo = { username: 'admin', groups: ['system:masters'] };
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
/** The account is a viewer, because it needs no role then. */
const ACCOUNT: UserInfo = {
  username: 'system:serviceaccount:default:bot',
  uid: 'that of the stored account',
  groups: ['nodekeeper:viewers', 'system:authenticated'],
};
const WATCH_SECONDS = 600;

/** A watch of node n1 by a ticket of this user, on virtual time. `duringPause` runs before each pause. */
async function watchFor(
  user: UserInfo,
  duringPause: (seconds: number, identities: ReturnType<typeof nodeKeyStore>, api: ApiInMemory) => Promise<unknown>,
  between: (items: ItemStore) => ItemStore = (items) => items,
  caller?: UserInfo,
  withdrawals?: () => number,
  path = NODES,
) {
  const api = apiInMemory();
  const { items } = api;
  const startMs = api.nowMs();
  let nowMs = startMs;
  const identities = nodeKeyStore(items);
  const publicKey = { kty: 'OKP' as const, crv: 'Ed25519' as const, x: 'x'.repeat(43) };
  const keys = [{ keyId: 'key-1', publicKey, addedAtMs: nowMs }];
  const identity = { nodeName: 'n1', uid: 'uid-n1', createdAtMs: nowMs, keys, source: 'user/admin' };
  await identities.enrol(identity, { nowMs, along: [], pause: async () => {} });
  await api.send('POST', NODES, { body: node('n1') });
  await api.send('POST', DEFINITIONS, { body: widgetDefinition() });
  await api.send('POST', ACCOUNTS, { body: { metadata: { name: 'bot' } } });
  await grantNodes(api);
  const account = (await api.send('GET', `${ACCOUNTS}/bot`)).body.metadata.uid;
  const stored = (one: UserInfo): UserInfo => (one.uid === ACCOUNT.uid ? { ...one, uid: account } : one);
  const verdict = { kind: 'valid', user: stored(user), ...(caller && { caller: stored(caller) }) } as const;
  let keyReads = 0;
  let accessReads = 0;
  const seen = between({
    ...items,
    get: (key, options) => {
      if (key.pk.startsWith('node-keys#')) keyReads += 1;
      return items.get(key, options);
    },
  });
  const serve = serveWatch({
    items: {
      ...items,
      getMany: (keys, options) => {
        accessReads += keys.filter(({ pk }) => /^h#(cluster)?role/.test(pk)).length;
        return items.getMany(keys, options);
      },
    },
    authenticator: staticTokenAuthenticator([]),
    tickets: { verify: async () => verdict },
    nodeKeys: nodeKeys(seen),
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    pause: async (milliseconds) => {
      await duringPause((nowMs - startMs) / 1_000, identities, api);
      nowMs += milliseconds;
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    policy: { ...defaultPolicy, watchQuietSeconds: WATCH_SECONDS },
    readYaml,
    gzip,
    ...(withdrawals && { withdrawals }),
  });
  const query = new URLSearchParams({ watch: '1', fieldSelector: 'metadata.name=n1', [TICKET_PARAMETER]: 'a ticket' });
  const request = { method: 'GET', path, query, headers: {}, body: new Uint8Array(), sourceIp: '192.0.2.1' };
  const { head, lines } = await serve(request, startMs + WATCH_SECONDS * 1_000);
  const events: { type: string; object: { code?: number; reason?: string } }[] = [];
  for await (const line of linesOfWatch(lines)) events.push(JSON.parse(line));
  return { status: head.status, events, endedAfterSeconds: (nowMs - startMs) / 1_000, keyReads, accessReads };
}

const revoke = async (identities: ReturnType<typeof nodeKeyStore>) => {
  const identity = await identities.read('n1');
  if (identity !== undefined) await identities.remove('n1', identity);
};

it('deleting an identity closes the watch of the machine with 401 within 5 seconds', async () => {
  const { events, endedAfterSeconds } = await watchFor(MACHINE, async (seconds, identities) => {
    if (seconds === 130) await revoke(identities);
  });
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ERROR']);
  expect(events.at(-1)?.object).toMatchObject({ code: 401, reason: 'Unauthorized' });
  expect(endedAfterSeconds).toBeGreaterThan(130);
  expect(endedAfterSeconds).toBeLessThanOrEqual(135);
});

it('a ticket that was issued before the identity was deleted shows nothing', async () => {
  const user = { ...MACHINE, extra: { [KEY_ID_EXTRA]: ['key-0'] } };
  const { events, endedAfterSeconds } = await watchFor(user, async () => {});
  expect(events.map(({ type }) => type)).toEqual(['ERROR']);
  expect(endedAfterSeconds).toBe(0);
});

it('a key that an eventually consistent read does not show yet is no revoked key', async () => {
  const stale = (items: ItemStore): ItemStore => ({
    ...items,
    get: async (key, options) => (options.consistent ? items.get(key, options) : undefined),
  });
  const { events, endedAfterSeconds } = await watchFor(MACHINE, async () => {}, stale);
  expect(events.map(({ type }) => type)).toEqual(['ADDED']);
  expect(endedAfterSeconds).toBe(WATCH_SECONDS);
});

it('the watch of a machine with a valid key lasts, and reads the keys every 3 seconds', async () => {
  const { events, endedAfterSeconds, keyReads } = await watchFor(MACHINE, async () => {});
  expect(events.map(({ type }) => type)).toEqual(['ADDED']);
  expect(endedAfterSeconds).toBe(WATCH_SECONDS);
  expect(keyReads).toBeGreaterThanOrEqual(WATCH_SECONDS / 4);
  expect(keyReads).toBeLessThanOrEqual(1 + WATCH_SECONDS / 3);
});

it('where commits are seen, the keys are read once a minute, and within 5 seconds after one that may withdraw access', async () => {
  let withdrawals = 0;
  const lasting = await watchFor(
    MACHINE,
    async () => {},
    undefined,
    undefined,
    () => withdrawals,
  );
  expect(lasting.endedAfterSeconds).toBe(WATCH_SECONDS);
  expect(lasting.keyReads).toBeLessThanOrEqual(1 + WATCH_SECONDS / 60);
  const remove = async (seconds: number, identities: ReturnType<typeof nodeKeyStore>): Promise<void> => {
    if (seconds !== 130) return;
    await revoke(identities);
    withdrawals += 1;
  };
  const closed = await watchFor(MACHINE, remove, undefined, undefined, () => withdrawals);
  expect(closed.events.at(-1)?.object).toMatchObject({ code: 401 });
  expect(closed.endedAfterSeconds).toBeGreaterThan(130);
  expect(closed.endedAfterSeconds).toBeLessThanOrEqual(135);
});

it('a watch lasts while the keys cannot be read, and that of a person reads none', async () => {
  const broken = (items: ItemStore): ItemStore => ({
    ...items,
    get: () => Promise.reject(new StoreFault('throttled', 'this partition is throttled', { retryable: true })),
  });
  expect((await watchFor(MACHINE, async () => {}, broken)).endedAfterSeconds).toBe(WATCH_SECONDS);
  const person = await watchFor(PERSON, async (_, identities) => revoke(identities));
  expect(person).toMatchObject({ endedAfterSeconds: WATCH_SECONDS, keyReads: 0 });
});

it('deleting a service account closes its watch within 5 seconds, and a watch of another one lasts', async () => {
  const closed = await watchFor(ACCOUNT, async (seconds, _, api) => {
    if (seconds === 130) await api.send('DELETE', `${ACCOUNTS}/bot`);
  });
  expect(closed.events.map(({ type }) => type)).toEqual(['ADDED', 'ERROR']);
  expect(closed.events.at(-1)?.object).toMatchObject({ code: 401 });
  expect(closed.endedAfterSeconds).toBeLessThanOrEqual(135);
  expect((await watchFor(ACCOUNT, async () => {})).endedAfterSeconds).toBe(WATCH_SECONDS);
  // The name alone is no token: an administrator impersonates the account.
  const { uid: _uid, ...impersonated } = ACCOUNT;
  const { endedAfterSeconds } = await watchFor(impersonated, async (_seconds, _identities, api) =>
    api.send('DELETE', `${ACCOUNTS}/bot`),
  );
  expect(endedAfterSeconds).toBe(WATCH_SECONDS);
});

it('a watch with a token of a pod that no longer exists shows nothing', async () => {
  const extra = {
    'authentication.kubernetes.io/pod-name': ['p'],
    'authentication.kubernetes.io/pod-uid': ['uid-p'],
  };
  const { events } = await watchFor({ ...ACCOUNT, extra }, async () => {});
  expect(events.map(({ type }) => type)).toEqual(['ERROR']);
});

it('a watch by impersonation ends when the caller is deleted', async () => {
  const asAccount = (onPause: Parameters<typeof watchFor>[1]) => watchFor(PERSON, onPause, undefined, ACCOUNT);
  const closed = await asAccount(async (seconds, _, api) => {
    if (seconds === 130) await api.send('DELETE', `${ACCOUNTS}/bot`);
  });
  expect(closed.events.at(-1)?.object).toMatchObject({ code: 401 });
  expect(closed.endedAfterSeconds).toBeLessThanOrEqual(135);
  expect((await asAccount(async () => {})).endedAfterSeconds).toBe(WATCH_SECONDS);
});

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const READER: UserInfo = { username: 'otto', groups: ['system:authenticated'] };

async function grantNodes(api: ApiInMemory): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] }];
  await api.send('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'reads' }, rules } });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reads' };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'otto' }];
  await api.send('POST', `${RBAC}/clusterrolebindings`, { body: { metadata: { name: 'otto' }, roleRef, subjects } });
}

it.each([
  ['the role binding is removed', 'DELETE', `${RBAC}/clusterrolebindings/otto`, undefined],
  ['the role loses the rule', 'PATCH', `${RBAC}/clusterroles/reads`, { rules: [] }],
] as const)('a watch ends with 403 within 5 seconds after %s', async (_, method, path, body) => {
  const { events, endedAfterSeconds, accessReads } = await watchFor(READER, async (seconds, _identities, api) => {
    if (seconds === 130) await api.send(method, path, { ...(body && { body, contentType: MERGE }) });
  });
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ERROR']);
  expect(events.at(-1)?.object).toMatchObject({ code: 403, reason: 'Forbidden' });
  expect(endedAfterSeconds).toBeGreaterThan(130);
  expect(endedAfterSeconds).toBeLessThanOrEqual(135);
  // Each check reads the heads of four kinds, at half a unit each.
  expect(accessReads).toBeLessThanOrEqual(4 * (2 + 135 / 3));
});

it('a watch that a built-in rule allows reads no role', async () => {
  expect(await watchFor(PERSON, async () => {})).toMatchObject({ endedAfterSeconds: WATCH_SECONDS, accessReads: 0 });
});

it.each([
  [
    'the schema',
    { versions: [widgetVersion('v1', { schema: { openAPIV3Schema: { ...WIDGET_SCHEMA, title: 'a' } } })] },
    135,
  ],
  ['the served versions', { versions: [widgetVersion('v1', { served: false })] }, 135],
  ['the labels alone', {}, WATCH_SECONDS],
])(
  'after a change of %s of a definition, the watches of its resource end as they must, without an error',
  async (_, spec, end) => {
    const { status, events, endedAfterSeconds } = await watchFor(
      PERSON,
      async (seconds, __, api) => {
        if (seconds !== 130) return;
        const body = { metadata: { labels: { a: 'b' } }, spec };
        const path = `${DEFINITIONS}/widgets.example.com`;
        expect(await api.send('PATCH', path, { body, contentType: MERGE })).toMatchObject({ code: 200 });
      },
      undefined,
      undefined,
      undefined,
      widgetsIn('default'),
    );
    expect(status).toBe(200);
    expect(events).toEqual([]);
    expect(endedAfterSeconds).toBeLessThanOrEqual(end);
    expect(endedAfterSeconds).toBeGreaterThan(end - 5);
  },
);
