/** A claim of the class `local`, from the scheduler to the directory on the machine and back. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { claimDirectories } from '../../agent/adapters/volumes/claim-directories.ts';
import { podVolumes } from '../../agent/adapters/volumes/pod-volumes.ts';
import { PodInputs } from '../../agent/app/pods/pod-inputs.ts';
import { VolumeMaker } from '../../agent/app/volumes/volume-maker.ts';
import type { ClaimDirectories } from '../../agent/ports/claim-directories.ts';
import type { KubeApi } from '../../agent/ports/kube-api.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { silentLog } from '../support/agent-api.ts';
import { servedWorkloads } from '../support/served-workloads.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const CLAIMS = `${NAMESPACE}/persistentvolumeclaims`;
const PODS = `${NAMESPACE}/pods`;
const VOLUMES = '/api/v1/persistentvolumes';
const STEP_MS = 3_000;
const nodeUser = (name: string) => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] });

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

async function clusterWith(...names: string[]) {
  const users = Object.fromEntries(names.map((name) => [`token-${name}`, nodeUser(name)]));
  const cluster = servedWorkloads({ users });
  let seen = 0;
  const machines = new Map<string, ReturnType<typeof machineOf>>();

  function machineOf(name: string, directories?: ClaimDirectories) {
    const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-claims-'));
    roots.push(rootDirectory);
    const events: string[] = [];
    const api: KubeApi = {
      async send({ method, path, body }) {
        const headers = { authorization: `Bearer token-${name}` };
        const answer = await cluster.api.send(method, path, { ...(body === undefined ? {} : { body }), headers });
        return { kind: 'answered', status: answer.code, body: answer.body as unknown };
      },
      reconnect() {},
    };
    const maker = new VolumeMaker({
      nodeName: name,
      api,
      directories: directories ?? claimDirectories(rootDirectory),
      log: silentLog,
      stop: new AbortController().signal,
      recordEvent: (subject, { reason, message }) => void events.push(`${subject.name}: ${reason} ${message}`),
    });
    return { api, maker, events, rootDirectory };
  }

  for (const name of names) {
    const status = {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    const stored = await cluster.ok('POST', '/api/v1/nodes', { metadata: { name } });
    await cluster.ok('PUT', `/api/v1/nodes/${name}/status`, { ...stored, status });
    machines.set(name, machineOf(name));
  }

  return {
    ...cluster,
    machine: (name: string) => machines.get(name)!,
    replace(name: string, directories: ClaimDirectories) {
      machines.set(name, machineOf(name, directories));
    },
    /** Binder, scheduler and agents, until nothing is left to do. */
    async run(rounds = 4) {
      for (let round = 0; round < rounds; round += 1) {
        await cluster.settle();
        const changes = cluster.items.changes('objects', seen);
        seen = changes.at(-1)?.sequence ?? seen;
        await cluster.controllers.onObjectRecords(changes.filter(({ key }) => /^o#(nodes|pods)#/.test(key.pk)));
        await cluster.controllers.tickScheduler(round);
        await cluster.settle();
        for (const { maker } of machines.values()) {
          maker.requested();
          await maker.settled();
        }
        cluster.api.advance(STEP_MS);
      }
      await cluster.settle();
    },
  };
}

const claim = (name: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
});
const pod = (name: string, claimName: string) => ({
  metadata: { name },
  spec: {
    automountServiceAccountToken: false,
    containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
  },
});

describe('a claim of the class local', () => {
  it('is a directory on the node of its pod, with the same content for the next pod, until it is deleted', async () => {
    const cluster = await clusterWith('a', 'b');
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run();
    const bound = await cluster.ok('GET', `${CLAIMS}/c`);
    expect(bound.status).toMatchObject({ phase: 'Bound', capacity: { storage: '1Mi' } });
    const { nodeName } = (await cluster.ok('GET', `${PODS}/p`)).spec;
    const volume = await cluster.ok('GET', `${VOLUMES}/${bound.spec.volumeName}`);
    expect(volume).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/provisioned-by': 'nodekeeper.dev/local' } },
      spec: { persistentVolumeReclaimPolicy: 'Delete', storageClassName: 'local' },
      status: { phase: 'Bound' },
    });
    const machine = cluster.machine(nodeName);
    expect(volume.spec.local.path).toBe(join(machine.rootDirectory, 'claims', volume.metadata.name));
    expect(machine.events).toEqual([
      expect.stringMatching(`^c: ProvisioningSucceeded Successfully provisioned volume ${volume.metadata.name}`),
    ]);

    // The containers of the pod get it.
    const inputs = inputsOf(machine);
    const stored: KubePod = await cluster.ok('GET', `${PODS}/p`);
    await inputs.prepare(stored);
    const mounted = inputs.inputsOf(stored, stored.spec!.containers![0]!);
    expect(mounted).toMatchObject({ kind: 'ready', mounts: [{ source: volume.spec.local.path, target: '/data' }] });
    writeFileSync(join(volume.spec.local.path, 'kept'), 'yes');
    await inputs.remove(stored.metadata.uid ?? '');
    expect(readFileSync(join(volume.spec.local.path, 'kept'), 'utf8')).toBe('yes');

    await cluster.ok('DELETE', `${PODS}/p?gracePeriodSeconds=0`);
    await cluster.ok('POST', PODS, pod('next', 'c'));
    await cluster.run(2);
    expect((await cluster.ok('GET', `${PODS}/next`)).spec.nodeName).toBe(nodeName);

    await cluster.ok('DELETE', `${PODS}/next?gracePeriodSeconds=0`);
    await cluster.ok('DELETE', `${CLAIMS}/c`);
    await cluster.run();
    expect((await cluster.api.send('GET', `${VOLUMES}/${volume.metadata.name}`)).code).toBe(404);
    expect(existsSync(volume.spec.local.path)).toBe(false);
    const rows = await cluster.items.query({ table: 'control', pk: `volume-work#${nodeName}`, consistent: true });
    expect(rows.items).toEqual([]);
  });

  it('starts its pod again while the API does not answer', async () => {
    const cluster = await clusterWith('a');
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run();
    const machine = cluster.machine('a');
    const stored: KubePod = await cluster.ok('GET', `${PODS}/p`);
    await inputsOf(machine).prepare(stored);
    const offline: KubeApi = { send: async () => ({ kind: 'failed', cause: new Error('no route') }), reconnect() {} };
    const again = inputsOf({ ...machine, api: offline });
    await again.prepare(stored, true);
    expect(again.inputsOf(stored, stored.spec!.containers![0]!)).toMatchObject({
      kind: 'ready',
      mounts: [{ target: '/data', source: expect.stringContaining('/claims/pvc-') }],
    });
  });

  it('is Pending with an event while its machine has no room, and nothing else is affected', async () => {
    const cluster = await clusterWith('a');
    const real = claimDirectories(cluster.machine('a').rootDirectory);
    let free = 10;
    cluster.replace('a', { ...real, freeBytes: () => free });
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).status.phase).toBe('Pending');
    expect(cluster.machine('a').events[0]).toBe(
      'c: ProvisioningFailed failed to provision volume with StorageClass "local": nodekeeper.dev/local on a: 1048576 bytes are requested, and the file system of this node has 10 free',
    );
    free = 10_000_000;
    await cluster.run(2);
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).status.phase).toBe('Bound');
  });
});

describe('a compromised machine', () => {
  it('creates no volume for a claim of another node, and none but the offered one', async () => {
    const cluster = await clusterWith('a', 'b');
    await cluster.ok('POST', CLAIMS, claim('c'));
    const stored = await cluster.ok('GET', `${CLAIMS}/c`);
    const annotations = { 'volume.kubernetes.io/selected-node': 'a' };
    await cluster.ok('PUT', `${CLAIMS}/c`, { ...stored, metadata: { ...stored.metadata, annotations } });
    await cluster.settle();
    const offers = (name: string, of: string) =>
      cluster.machine(name).api.send({ method: 'GET', path: `/apis/nodekeeper.dev/v1alpha1/nodevolumes/${of}` });
    const own = await offers('a', 'a');
    const offered = (own as unknown as { body: { items: { provision: { metadata: object; spec: object } }[] } }).body
      .items[0]!.provision;
    expect(await offers('b', 'a')).toMatchObject({ status: 403 });
    const create = async (name: string, body: object) =>
      ((await cluster.machine(name).api.send({ method: 'POST', path: VOLUMES, body })) as { status?: number }).status;
    const volume = { ...offered, spec: { ...offered.spec, local: { path: '/tmp/x' } } };
    expect(await create('b', volume)).toBe(403);
    expect(await create('a', { ...volume, metadata: { ...offered.metadata, name: 'other' } })).toBe(403);
    expect(await create('a', { ...volume, spec: { ...volume.spec, capacity: { storage: '1Ti' } } })).toBe(403);
    expect(await create('a', { ...volume, spec: { ...volume.spec, nodeAffinity: affinityOf('b') } })).toBe(403);
    expect(await create('a', volume)).toBe(201);
    const { name } = offered.metadata as { name: string };
    const remove = (machine: string) =>
      cluster.machine(machine).api.send({ method: 'DELETE', path: `${VOLUMES}/${name}` });
    expect(await remove('b')).toMatchObject({ status: 403 });
    await cluster.settle();
    // It is bound.
    expect(await remove('a')).toMatchObject({ status: 403 });
  });
});

const affinityOf = (name: string) => ({
  required: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }] },
});

function inputsOf({ api, rootDirectory }: { readonly api: KubeApi; readonly rootDirectory: string }): PodInputs {
  mkdirSync(join(rootDirectory, 'memory'), { recursive: true });
  return new PodInputs({
    api,
    volumes: podVolumes({ rootDirectory, memoryDirectory: join(rootDirectory, 'memory') }),
    time: { nowMs: () => 0, monotonicMs: () => 0, uptimeMs: () => 0, sleep: async () => {} } as never,
    fraction: () => 0,
    log: silentLog,
    hostIp: () => '10.0.0.1',
    allocatable: () => ({}),
    recordEvent: () => {},
    services: {},
  });
}
