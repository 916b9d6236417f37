/**
 * Write units of each kind of change, by kind of item: registration, a status that changes the Node, a pod's life, the
 * marks of a failed zone, an eviction, and a deletion. The API, the controllers and the streams run over tables in memory,
 * on virtual time. Each item is counted with the larger of its sizes before and after, rounded up to 1 KB, and twice
 * if it was written in a transaction.
 */

import { newLease } from '../agent/rules/lease.ts';
import { withCondition } from '../agent/rules/node-conditions.ts';
import { nodeStatusPatch } from '../agent/rules/node-patch.ts';
import { finalPodDeletion, podStatusReport } from '../agent/rules/pod-requests.ts';
import { startedStatus } from '../agent/rules/started-pod.ts';
import { type MachineIdentity, nameMachines } from '../demo/fleet/names.ts';
import { computedNode, nodeAt } from '../demo/fleet/node-object.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import { formatTime } from '../shared/kubernetes/time.ts';
import { itemBytes, WRITE_UNIT_BYTES } from '../shared/store/item-size.ts';
import type { Item, ItemKey, TransactWrite } from '../shared/store/item-store.ts';
import { servedFleet } from '../test/support/served-fleet.ts';
import { type Benchmark, type Report, rounded } from './benchmark.ts';

const REGION = 'eu-central-1';
const NODES = 60;
const PODS = 20;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PODS_PATH = '/api/v1/namespaces/default/pods';
/** Machines of one zone that fail together: fewer than the share that makes a partial disruption. */
const FAILED = 15;
const LEASE_SECONDS = 40;

export const writeUnits: Benchmark = {
  name: 'write-units',
  about: 'write units of each kind of change, by kind of item: registration, status, pod, mark, eviction, deletion',
  run: measure,
};

/** Counted since the last call of `take`. */
interface Counts {
  readonly items: Map<string, { writes: number; units: number; bytes: number }>;
  requests: number;
}

/** `objects:o#nodes`, `health`, `control:pod-gc`. */
function kindOf({ table, pk }: ItemKey): string {
  if (table === 'health') return 'health';
  if (table === 'objects')
    return pk
      .split('#')
      .slice(0, /^[olh]#/.test(pk) ? 2 : 1)
      .join('#');
  return `control:${pk.split('#')[0]}`;
}

async function measure(report: Report): Promise<void> {
  const identities = nameMachines(NODES, ['zone-a', 'zone-b']);
  const served = servedFleet(
    identities.map(({ name }) => name),
    { policy: { ingestGate: 'off', nodeEvictionRatePerSecond: 100 } },
  );
  const { fleet, sendAs } = served;
  const { tables } = fleet;
  let counts: Counts = { items: new Map(), requests: 0 };
  const sizeOf = (item: Item | undefined): number => (item === undefined ? 0 : itemBytes(item));
  const count = async (writes: readonly TransactWrite[], factor: number, run: () => Promise<{ kind: string }>) => {
    const read = () => Promise.all(writes.map(({ key }) => tables.get(key, { consistent: true })));
    const before = await read();
    const outcome = await run();
    const after = await read();
    counts.requests += 1;
    writes.forEach((write, index) => {
      const name = `${kindOf(write.key)}${write.kind === 'check' ? ' (check)' : ''}${outcome.kind === 'written' ? '' : ' (refused)'}`;
      const bytes = Math.max(sizeOf(before[index]), sizeOf(after[index]));
      const each = counts.items.get(name) ?? { writes: 0, units: 0, bytes: 0 };
      each.writes += 1;
      each.units += factor * Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES));
      each.bytes += bytes;
      counts.items.set(name, each);
    });
    return outcome;
  };
  const { write, transact } = tables;
  tables.write = (each, options) => count([each], 1, () => write(each, options)) as ReturnType<typeof write>;
  tables.transact = (writes) => count(writes, 2, () => transact(writes)) as ReturnType<typeof transact>;
  const done = (change: string, times: number): void => {
    let units = 0;
    let writes = 0;
    for (const [item, each] of [...counts.items].sort()) {
      units += each.units;
      if (!item.endsWith('(check)')) writes += each.writes;
      report({
        change,
        item,
        writes: rounded(each.writes / times),
        units: rounded(each.units / times),
        bytes: Math.round(each.bytes / each.writes),
      });
    }
    report({ change, item: 'all', writes: rounded(writes / times), units: rounded(units / times) });
    counts = { items: new Map(), requests: 0 };
  };
  const ok = async (answer: Promise<{ code: number; text: string; body: unknown }>): Promise<KubeObject> => {
    const { code, text, body } = await answer;
    if (code >= 300) throw new Error(`${code} ${text}`);
    return body as KubeObject;
  };
  const get = (name: string, path: string) => ok(sendAs(name, 'GET', path));
  const contentType = 'application/strategic-merge-patch+json';
  const beat = async (machines: readonly MachineIdentity[]): Promise<void> => {
    const renewTime = `${formatTime(fleet.nowMs()).slice(0, -1)}.000000Z`;
    for (const { name } of machines) await served.beatAs(name, { spec: { renewTime } });
  };
  let seconds = 0;
  const pass = async (forSeconds: number, beating: readonly MachineIdentity[]): Promise<void> => {
    const untilSeconds = seconds + forSeconds;
    while (seconds < untilSeconds) {
      seconds += 5;
      fleet.at(seconds);
      if (seconds % 10 === 0) {
        const kept = counts;
        counts = { items: new Map(), requests: 0 };
        await beat(beating);
        counts = kept;
      }
      await fleet.tick();
      if (seconds % 20 === 0) await fleet.collect();
    }
  };
  const quiet = (): void => {
    counts = { items: new Map(), requests: 0 };
  };

  // Namespaces and the first tick.
  await ok(served.api.send('GET', '/api/v1/namespaces'));
  await pass(10, []);
  quiet();
  for (const identity of identities) {
    const created = (await ok(
      sendAs(identity.name, 'POST', '/api/v1/nodes', { body: nodeAt(identity, REGION, fleet.nowMs()) }),
    )) as KubeNode;
    const lease = newLease(created, { leaseDurationSeconds: LEASE_SECONDS, nowMs: fleet.nowMs() });
    await ok(sendAs(identity.name, 'POST', LEASES, { body: lease }));
    await fleet.streams();
    seconds += 1;
    fleet.at(seconds);
    const read = (await get(identity.name, `/api/v1/nodes/${identity.name}`)) as KubeNode;
    const body = nodeStatusPatch(read, computedNode(identity, read, fleet.nowMs())) ?? {};
    await ok(sendAs(identity.name, 'PATCH', `/api/v1/nodes/${identity.name}/status`, { body, contentType }));
    await fleet.streams();
  }
  done('registration', NODES);
  seconds = Math.ceil(seconds / 10) * 10;
  await pass(20, identities);
  quiet();

  for (const { name } of identities) {
    const read = (await get(name, `/api/v1/nodes/${name}`)) as KubeNode;
    const now = formatTime(fleet.nowMs());
    const conditions = withCondition(read.status?.conditions, {
      type: 'NetworkUnavailable',
      status: 'False',
      reason: 'NetworkPluginRestarted',
      message: 'pod network is up again',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    });
    const body = nodeStatusPatch(read, { ...read, status: { ...read.status, conditions } }) ?? {};
    await ok(sendAs(name, 'PATCH', `/api/v1/nodes/${name}/status`, { body, contentType }));
    await fleet.streams();
  }
  done('status', NODES);

  const podNames = Array.from({ length: PODS }, (_, index) => `web-7d9c6b8f4-${index.toString(36).padStart(5, 'x')}`);
  const nodeOfPod = (index: number): string => identities[index % NODES]!.name;
  const podAt = (name: string, nodeName: string) => ({
    metadata: { name },
    spec: { nodeName, containers: [{ name: 'c', image: 'registry.example/app:1' }] },
  });
  const createPods = async (): Promise<void> => {
    for (const [index, name] of podNames.entries()) {
      await ok(served.api.send('POST', PODS_PATH, { body: podAt(name, nodeOfPod(index)) }));
      await fleet.streams();
    }
  };
  const startPods = async (): Promise<void> => {
    for (const [index, name] of podNames.entries()) {
      const nodeName = nodeOfPod(index);
      const pod = await get(nodeName, `${PODS_PATH}/${name}`);
      const ip = `10.16.0.${index}`;
      const status = { ...startedStatus(pod, fleet.nowMs(), '10.16.0.10'), podIP: ip, podIPs: [{ ip }] };
      const { path, body } = podStatusReport(pod, status);
      await ok(sendAs(nodeName, 'PATCH', path, { body, contentType }));
      await fleet.streams();
    }
  };
  await createPods();
  done('pod created', PODS);
  await startPods();
  done('pod started', PODS);
  for (const name of podNames) {
    await ok(served.api.send('DELETE', `${PODS_PATH}/${name}?gracePeriodSeconds=1`));
    await fleet.streams();
  }
  done('pod deleted', PODS);
  for (const [index, name] of podNames.entries()) {
    const pod = await get(nodeOfPod(index), `${PODS_PATH}/${name}`);
    const { path, body } = finalPodDeletion(pod);
    await ok(sendAs(nodeOfPod(index), 'DELETE', path, { body }));
    await fleet.streams();
  }
  done('pod removed', PODS);
  await pass(20, identities);
  quiet();

  await createPods();
  await startPods();
  await pass(20, identities);
  quiet();
  // Every second machine is in zone-a. Its first ones fail. Their pods are marked, tainted and evicted.
  const failing = identities.filter(({ zone }) => zone === 'zone-a').slice(0, FAILED);
  const beating = identities.filter((each) => !failing.includes(each));
  const untilMarked = async (): Promise<void> => {
    for (let ticks = 0; ticks < 20 && (await fleet.ready(failing[0]!.name)) === 'True'; ticks += 1) {
      quiet();
      seconds += 5;
      fleet.at(seconds);
      if (seconds % 10 === 0) await beat(beating);
      quiet();
      await fleet.controllers.tickNodeMonitor(fleet.slot());
    }
  };
  await untilMarked();
  done('node marked (with its pods)', FAILED);
  await fleet.streams();
  done('streams after the mark', FAILED);
  await pass(10, beating);
  done('node tainted NoExecute', FAILED);
  await pass(310, beating);
  done('evictions of its pods', FAILED);
  for (const { name } of failing) {
    await ok(served.api.send('DELETE', `/api/v1/nodes/${name}`));
    await fleet.streams();
  }
  done('node deleted', FAILED);
}
