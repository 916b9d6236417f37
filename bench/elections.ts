/**
 * What an idle elected operator costs on AWS, with an account of its own: every two seconds client-go renews its Lease,
 * from release 1.30 on by a PUT alone, before by a GET and a PUT (upstream leaderelection.go, tryAcquireOrRenew).
 */
import { PRICES, SECONDS_A_MONTH } from '../shared/cost/prices.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { apiInMemory } from '../test/support/api-in-memory.ts';
import { BY_HTTP_API, BY_URL } from '../test/support/request-price.ts';
import { type Benchmark, rounded } from './benchmark.ts';

const RENEWALS = 100;
const RENEW_SECONDS = 2;
const NAMESPACE = '/api/v1/namespaces/default';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

export const elections: Benchmark = {
  name: 'elections',
  about: 'units of a renewal of an elected operator, and dollars per month',
  smallest: [],
  async run(report) {
    for (const requests of [1, 2]) {
      const { readUnits, writeUnits } = await unitsOf(requests === 2);
      const units = readUnits * PRICES.readUnit + writeUnits * PRICES.writeUnit;
      const dollarsOf = (request: number): number =>
        rounded((SECONDS_A_MONTH / RENEW_SECONDS) * (requests * request + units), 3);
      report({
        requests,
        writeUnits: rounded(writeUnits, 2),
        readUnits: rounded(readUnits, 2),
        dollarsPerMonth: dollarsOf(BY_HTTP_API),
        dollarsPerMonthByUrl: dollarsOf(BY_URL),
      });
    }
  },
};

/** Of a renewal. */
async function unitsOf(readsFirst: boolean): Promise<{ readonly readUnits: number; readonly writeUnits: number }> {
  const used = { readUnits: 0, writeUnits: 0 };
  const items = memoryItemStore({
    onConsumed({ readUnits, writeUnits }) {
      used.readUnits += readUnits;
      used.writeUnits += writeUnits;
    },
  });
  const api = apiInMemory({ items });
  const token = await operatorToken(api);
  const headers = { authorization: `Bearer ${token}` };
  let { body: lease } = await api.send('POST', LEASES, {
    headers,
    body: { metadata: { name: 'operator' }, spec: { holderIdentity: 'one', leaseDurationSeconds: 15 } },
  });
  const renew = async (count: number): Promise<void> => {
    api.advance(RENEW_SECONDS * 1_000);
    if (readsFirst) ({ body: lease } = await api.send('GET', `${LEASES}/operator`, { headers }));
    const renewTime = `2026-01-01T00:00:00.${String(count).padStart(6, '0')}Z`;
    const body: KubeObject = { ...lease, spec: { ...lease.spec, renewTime } };
    const answer = await api.send('PUT', `${LEASES}/operator`, { headers, body });
    if (answer.code !== 200) throw new Error(`the renewal was answered ${answer.code}: ${answer.text}`);
    lease = answer.body;
  };
  // What is read once is not counted.
  await renew(0);
  Object.assign(used, { readUnits: 0, writeUnits: 0 });
  for (let count = 1; count <= RENEWALS; count += 1) await renew(count);
  return { readUnits: used.readUnits / RENEWALS, writeUnits: used.writeUnits / RENEWALS };
}

/** Of an account that may use Leases, bound to its pod. */
async function operatorToken(api: ReturnType<typeof apiInMemory>): Promise<string> {
  const group = 'rbac.authorization.k8s.io';
  const rules = [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }];
  const subjects = [{ kind: 'ServiceAccount', name: 'operator', namespace: 'default' }];
  const containers = [{ name: 'operator', image: 'registry.example/operator:1' }];
  const made: readonly (readonly [path: string, body: object])[] = [
    [`${NAMESPACE}/serviceaccounts`, { metadata: { name: 'operator' } }],
    [`${NAMESPACE}/pods`, { metadata: { name: 'operator' }, spec: { serviceAccountName: 'operator', containers } }],
    [`${RBAC}/roles`, { metadata: { name: 'operator' }, rules }],
    [
      `${RBAC}/rolebindings`,
      { metadata: { name: 'operator' }, roleRef: { apiGroup: group, kind: 'Role', name: 'operator' }, subjects },
    ],
  ];
  let pod: KubeObject | undefined;
  for (const [path, body] of made) {
    const answer = await api.send('POST', path, { body });
    if (answer.code !== 201) throw new Error(`${path} was answered ${answer.code}: ${answer.text}`);
    if (path.endsWith('/pods')) pod = answer.body;
  }
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'operator', uid: pod?.metadata.uid };
  const { body } = await api.send('POST', `${NAMESPACE}/serviceaccounts/operator/token`, {
    body: { spec: { audiences: [], expirationSeconds: 3_600, boundObjectRef } },
  });
  return (body as { status: { token: string } }).status.token;
}
