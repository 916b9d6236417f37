/** Areas RA, RB, RL and RI of the agent: registering the Node. */
import { describe, expect, it } from 'vitest';
import { createRegistration, registerOnce } from '../../../agent/app/registration.ts';
import type { KubeAnswer } from '../../../agent/ports/kube-api.ts';
import { initialNode, type RegistrationSettings, reconcileNode } from '../../../agent/rules/node-registration.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';
import { answered, inOrder, refused, scriptedApi, silentLog, virtualTime } from '../../support/agent-api.ts';

const CMAD = 'volumes.kubernetes.io/controller-managed-attach-detach';
const exists = refused(409, 'AlreadyExists');
const conflict = refused(409, 'Conflict');

const settings: RegistrationSettings = {
  nodeName: 'h1',
  nodeLabels: {},
  providerId: '',
  registerSchedulable: true,
  registerWithTaints: [],
  cloudProvider: '',
  enableControllerAttachDetach: true,
};
const machine = { hostname: 'h1', operatingSystem: 'linux', architecture: 'amd64' };
const never = new AbortController().signal;

/** The Node as the server stores it. */
const withUid = (node: KubeNode): KubeNode => ({ ...node, metadata: { ...node.metadata, uid: 'u-h1' } });

describe('one registration attempt', () => {
  const ours = (attachDetach: boolean): KubeNode =>
    withUid(initialNode({ ...settings, enableControllerAttachDetach: attachDetach }, machine));
  const stored = ours(true);
  const found = answered(200, stored);

  it.each<{ id: string; attachDetach: boolean; answers: KubeAnswer[]; requests: string[]; registered: boolean }>([
    { id: 'RA-01', attachDetach: true, answers: [answered(201, stored)], requests: ['POST'], registered: true },
    {
      id: 'RA-03',
      attachDetach: false,
      answers: [exists, found, answered(200, ours(false))],
      requests: ['POST', 'GET', 'PATCH'],
      registered: true,
    },
    { id: 'RA-05', attachDetach: true, answers: [conflict], requests: ['POST'], registered: false },
    {
      id: 'RA-07',
      attachDetach: false,
      answers: [exists, found, conflict],
      requests: ['POST', 'GET', 'PATCH'],
      registered: false,
    },
    {
      id: 'RA-09',
      attachDetach: true,
      answers: [refused(403, 'Forbidden'), refused(404, 'NotFound')],
      requests: ['POST', 'GET'],
      registered: false,
    },
  ])('$id sends $requests; registered: $registered', async ({ attachDetach, answers, requests, registered }) => {
    const api = scriptedApi(inOrder(answers));
    const attempt = await registerOnce(ours(attachDetach), { api, stop: never, timeoutMs: 10_000 });
    expect(api.requests.map(({ method }) => method)).toEqual(requests);
    expect(attempt.kind).toBe(registered ? 'registered' : 'failed');
    const patch = api.requests.find(({ method }) => method === 'PATCH');
    if (patch === undefined) return;
    expect(patch).toMatchObject({
      path: '/api/v1/nodes/h1/status',
      contentType: 'application/strategic-merge-patch+json',
      body: { metadata: { annotations: { [CMAD]: null } } },
    });
  });
});

describe('waits before registration attempts', () => {
  const node = withUid(initialNode(settings, machine));
  async function waitsOf(failures: { readonly answers?: number; readonly builds?: number }) {
    let builds = 0;
    let posts = 0;
    const api = scriptedApi(() => {
      posts += 1;
      return posts > (failures.answers ?? 0) ? answered(201, node) : refused(500, 'InternalError');
    });
    const time = virtualTime(0);
    const registration = createRegistration(
      { nodeName: 'h1', registerNode: true },
      {
        api,
        time,
        fraction: () => 0,
        log: silentLog,
        stop: never,
        timeoutMs: 10_000,
        buildNode: async () => {
          builds += 1;
          if (builds <= (failures.builds ?? 0)) throw new Error('the machine cannot be described');
          return node;
        },
      },
    );
    expect(await registration.ensure()).toBe(true);
    return { waits: time.waits, posts };
  }
  const total = (waits: readonly number[]): number => waits.reduce((sum, wait) => sum + wait, 0);

  it.each([
    ['RB-01 the first attempt works', 0, [100], 100],
    ['RB-03 the fifth attempt works', 4, [100, 200, 400, 800, 1_600], 3_100],
    ['RB-05 the eighth attempt works', 7, [100, 200, 400, 800, 1_600, 3_200, 6_400, 7_000], 19_700],
  ])('%s', async (_, answers, waits, totalMs) => {
    const outcome = await waitsOf({ answers });
    expect(outcome.waits).toEqual(waits);
    expect(total(outcome.waits)).toBe(totalMs);
  });

  it('RB-07 a failed build uses an attempt up and sends nothing', async () => {
    const { waits, posts } = await waitsOf({ builds: 2 });
    expect(waits).toEqual([100, 200, 400]);
    expect(total(waits)).toBe(700);
    expect(posts).toBe(1);
  });
});

describe('a Node that is there already', () => {
  type Texts = Record<string, string>;
  const labelled = (labels: Texts | undefined): KubeNode => ({
    metadata: { name: 'h', ...(labels === undefined ? {} : { labels }) },
  });
  const sized = (capacity: Texts, allocatable: Texts = capacity): KubeNode => ({
    metadata: { name: 'h' },
    status: { capacity, allocatable },
  });
  const kept = { zeroExtendedResources: false };
  const recreated = { zeroExtendedResources: true };
  const machineSize = { cpu: '2', memory: '4Gi' };

  it('RL-01 gets labels of the machine that it lacks', () => {
    const labels = {
      'kubernetes.io/hostname': 'new',
      'topology.kubernetes.io/zone': 'new',
      'topology.kubernetes.io/region': 'new',
    };
    expect(reconcileNode(labelled(undefined), labelled(labels), kept)).toEqual({
      node: labelled(labels),
      changed: true,
    });
  });

  it('RL-03 keeps a foreign label', () => {
    const ours = { 'kubernetes.io/hostname': 'h', 'kubernetes.io/os': 'linux' };
    const existing = labelled({ ...ours, 'please-persist': 'foo' });
    expect(reconcileNode(existing, labelled(ours), kept)).toEqual({ node: existing, changed: false });
  });

  it('RL-05 stays as it is when its labels are right', () => {
    const existing = labelled({ 'kubernetes.io/hostname': 'h', 'kubernetes.io/os': 'linux' });
    expect(reconcileNode(existing, labelled({ ...existing.metadata.labels }), kept)).toEqual({
      node: existing,
      changed: false,
    });
  });

  it('RL-07 gets no configured label', () => {
    const existing = labelled({});
    expect(reconcileNode(existing, labelled({ 'example.com/pool': 'a' }), kept)).toEqual({
      node: existing,
      changed: false,
    });
  });

  it('RL-09 has extended resources set to 0 when the devices call it re-created', () => {
    const existing = sized(
      { cpu: '2', 'test.com/r1': '2', 'test.com/r2': '4' },
      { cpu: '2', 'test.com/r1': '2', 'test.com/r2': '10' },
    );
    const zero = { cpu: '2', 'test.com/r1': '0', 'test.com/r2': '0' };
    expect(reconcileNode(existing, sized(machineSize), recreated)).toEqual({ node: sized(zero), changed: true });
  });

  it('RL-11 keeps cpu and memory when the devices call it re-created', () => {
    const existing = sized(machineSize);
    expect(reconcileNode(existing, sized({ ...machineSize }), recreated)).toEqual({ node: existing, changed: false });
  });

  it('RL-13 loses huge pages that the machine has no more', () => {
    const existing = sized({ cpu: '2', 'hugepages-1Gi': '2Gi' });
    expect(reconcileNode(existing, sized({ cpu: '2' }), kept)).toEqual({ node: sized({ cpu: '2' }), changed: true });
  });

  it('RL-15 gets capacity and allocatable when it has none', () => {
    const existing: KubeNode = { metadata: { name: 'h' }, status: {} };
    expect(reconcileNode(existing, sized({ cpu: '2' }), kept)).toEqual({ node: sized({ cpu: '2' }), changed: true });
  });
});

describe('the initial Node', () => {
  const unschedulable = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;

  it('RI-01 has no taints and may be scheduled to', () => {
    const { spec } = initialNode(settings, machine);
    expect(spec).not.toHaveProperty('taints');
    expect(spec?.unschedulable ?? false).toBe(false);
  });

  it('RI-03 has a configured unschedulable taint once', () => {
    const { spec } = initialNode(
      { ...settings, registerSchedulable: false, registerWithTaints: [unschedulable] },
      machine,
    );
    expect(spec).toMatchObject({ unschedulable: true, taints: [unschedulable] });
    expect(spec?.taints).toHaveLength(1);
  });

  it('RI-05 has unschedulable before uninitialized', () => {
    const { spec } = initialNode({ ...settings, registerSchedulable: false, cloudProvider: 'external' }, machine);
    expect(spec?.taints).toEqual([
      unschedulable,
      { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
    ]);
  });

  it('RI-07 has the labels of its machine', () => {
    expect(initialNode(settings, machine).metadata.labels).toEqual({
      'kubernetes.io/hostname': 'h1',
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'beta.kubernetes.io/os': 'linux',
      'beta.kubernetes.io/arch': 'amd64',
    });
  });
});
