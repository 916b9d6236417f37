/** The first 15 minutes of a user, in both homes of this machine: real kubectl against a small fleet. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import {
  findKubectls,
  type KubectlPlace,
  type KubectlResult,
  kubectlOf,
  makePlace,
  oldestAndNewest,
  runKubectl,
} from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const PERIOD_SECONDS = 5;
const GRACE_SECONDS = 12;
const BEAT_SECONDS = 3;
/** For one tick, the streams and two kubectl starts on a busy machine. */
const SLACK_MS = 30_000;
const MACHINES = ['edge-a-0', 'edge-a-1', 'edge-b-0', 'edge-b-1', 'edge-c-0', 'edge-c-1'];

const tested = kubectlOf(32);

describe.skipIf(tested === undefined).each([{ home: 'serve' }, { home: 'aws' }] as const)(
  'the first path in $home',
  { timeout: 120_000 },
  ({ home }) => {
    let local: LocalForTest;
    let place: KubectlPlace;

    const run = (...args: readonly string[]): Promise<KubectlResult> =>
      runKubectl(tested!, args, { kubeconfig: local.kubeconfig, place });

    /** Standard output of a command that must succeed. */
    async function kubectl(...args: readonly string[]): Promise<string> {
      const { exitCode, stdout, stderr } = await run(...args);
      if (exitCode !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${exitCode}\n${stderr}${stdout}`);
      return stdout;
    }

    const node = async (name: string) => (await local.read(`/api/v1/nodes/${name}`)) as KubeNode;
    const readyOf = (object: KubeNode) => object.status?.conditions?.find(({ type }) => type === 'Ready');
    const taintsOf = (object: KubeNode): string[] =>
      (object.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).sort();

    beforeAll(async () => {
      place = makePlace();
      local = await startLocalForTest({
        home,
        nodes: MACHINES.length,
        policy: {
          nodeMonitorPeriodSeconds: PERIOD_SECONDS,
          nodeMonitorGracePeriodSeconds: GRACE_SECONDS,
          beatIntervalSeconds: BEAT_SECONDS,
          leaseDurationSeconds: GRACE_SECONDS,
        },
      });
      await until(
        async () => {
          const { items } = (await local.read('/api/v1/nodes')) as { readonly items: readonly KubeNode[] };
          const clean = items.filter((item) => readyOf(item)?.status === 'True' && taintsOf(item).length === 0);
          if (clean.length === MACHINES.length) return true;
          throw new Error(`${clean.length} of ${items.length}:\n${JSON.stringify(items)}\n${local.output()}`);
        },
        { withinMs: 60_000, everyMs: 500, what: 'every machine Ready and without taints' },
      );
    }, 120_000);

    afterAll(async () => {
      await local?.stop();
      place?.remove();
    });

    describe.each(home === 'serve' ? findKubectls() : oldestAndNewest())('with $name', (each) => {
      it('lists, describes and discovers the resources', async () => {
        const own = makePlace();
        const ask = (...args: readonly string[]) =>
          runKubectl(each, args, { kubeconfig: local.kubeconfig, place: own });
        try {
          const listed = await ask('get', 'nodes');
          expect(listed).toMatchObject({ exitCode: 0, stderr: '' });
          expect(listed.stdout).toMatch(
            /^NAME +STATUS +ROLES +AGE +VERSION\nedge-a-0 +Ready +<none> +\d+[sm]\S* +v1\./,
          );
          const described = await ask('describe', 'node', 'edge-a-0');
          expect(described).toMatchObject({ exitCode: 0, stderr: '' });
          expect(described.stdout).toMatch(/^ {2}HolderIdentity: +edge-a-0$/m);
          expect(described.stdout).toMatch(/^ {2}Ready +True /m);
          const resources = await ask('api-resources', '-o', 'name');
          expect(resources).toMatchObject({ exitCode: 0, stderr: '' });
          expect(resources.stdout.split('\n')).toEqual(
            expect.arrayContaining(['nodes', 'pods', 'events', 'namespaces', 'leases.coordination.k8s.io']),
          );
          const version = await ask('version');
          expect(version.exitCode).toBe(0);
          expect(version.stdout).toMatch(/^Server Version: /m);
        } finally {
          own.remove();
        }
      });
    });

    it('shows addresses and machine facts in the wide list', async () => {
      const [header, first] = (await kubectl('get', 'nodes', '-o', 'wide')).split('\n');
      expect(header).toMatch(/INTERNAL-IP +EXTERNAL-IP +OS-IMAGE +KERNEL-VERSION +CONTAINER-RUNTIME/);
      expect(first).toMatch(/^edge-a-0 .* 10\.\d+\.\d+\.\d+ +<none> +Debian .* simulated:\/\//);
    });

    it('prints nodes as YAML', async () => {
      const text = await kubectl('get', 'nodes', '-o', 'yaml');
      expect(text).toMatch(/^kind: List$/m);
      expect(text).toMatch(/^ {6}topology\.kubernetes\.io\/zone: /m);
      expect(text.match(/^ {2}kind: Node$/gm)).toHaveLength(MACHINES.length);
    });

    it('lists one lease per machine, and the lease of our own probe', async () => {
      const leases = async () => {
        const text = await kubectl('get', 'leases', '-n', 'kube-node-lease', '-o', 'name');
        return text.trim().split('\n').sort();
      };
      const expected = [...MACHINES, 'nodekeeper-probe'].map((name) => `lease.coordination.k8s.io/${name}`);
      await until(async () => (await leases()).length === expected.length, { withinMs: 60_000, everyMs: 500 });
      expect(await leases()).toEqual(expected);
    });

    it('labels, cordons, uncordons and taints, without effect on heartbeats', async () => {
      expect(await kubectl('label', 'node', 'edge-a-0', 'rack=r1')).toBe('node/edge-a-0 labeled\n');
      expect(await kubectl('get', 'nodes', '-l', 'rack=r1', '-o', 'name')).toBe('node/edge-a-0\n');
      expect(await kubectl('cordon', 'edge-a-0')).toBe('node/edge-a-0 cordoned\n');
      expect(await kubectl('get', 'node', 'edge-a-0')).toContain('Ready,SchedulingDisabled');
      await until(
        async () => taintsOf(await node('edge-a-0')).includes('node.kubernetes.io/unschedulable:NoSchedule'),
        {
          withinMs: SLACK_MS,
          what: 'the unschedulable taint of a cordoned node',
        },
      );
      expect(await kubectl('uncordon', 'edge-a-0')).toBe('node/edge-a-0 uncordoned\n');
      expect(await kubectl('taint', 'node', 'edge-a-0', 'own=1:NoSchedule')).toBe('node/edge-a-0 tainted\n');
      await until(async () => taintsOf(await node('edge-a-0')).join() === 'own:NoSchedule', {
        withinMs: SLACK_MS,
        what: 'our own taint alone',
      });
      expect(await kubectl('taint', 'node', 'edge-a-0', 'own-')).toBe('node/edge-a-0 untainted\n');
      expect(readyOf(await node('edge-a-0'))?.status).toBe('True');
    });

    it('creates a node by hand, marks it as never started, and deletes it', async () => {
      const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'by-hand' } });
      const created = await runKubectl(tested!, ['create', '-f', '-'], {
        kubeconfig: local.kubeconfig,
        place,
        stdin: manifest,
      });
      expect(created).toMatchObject({ exitCode: 0, stdout: 'node/by-hand created\n' });
      expect(taintsOf(await node('by-hand'))).toEqual(['node.kubernetes.io/not-ready:NoSchedule']);
      expect(await kubectl('delete', 'node', 'by-hand')).toBe('node "by-hand" deleted\n');
      const gone = await run('get', 'node', 'by-hand');
      expect(gone).toMatchObject({
        exitCode: 1,
        stderr: 'Error from server (NotFound): nodes "by-hand" not found\n',
      });
    });

    it('says why there are no logs of a simulated machine', async () => {
      await kubectl('run', 'quiet', '--image=none', '--overrides', JSON.stringify({ spec: { nodeName: 'edge-a-0' } }));
      expect((await run('logs', 'quiet')).stderr).toContain(
        'node "edge-a-0" is simulated, and none of its containers runs; logs are available from nodes that run the nodekeeper agent',
      );
      await kubectl('delete', 'pod', 'quiet', '--wait=false');
    });

    it('warns of what nothing acts on, and says what cannot be done here', async () => {
      const manifests = [
        {
          apiVersion: 'networking.k8s.io/v1',
          kind: 'NetworkPolicy',
          spec: { podSelector: {}, policyTypes: ['Ingress'] },
        },
        {
          apiVersion: 'networking.k8s.io/v1',
          kind: 'Ingress',
          spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } },
        },
      ].map((each) => ({ ...each, metadata: { name: 'inert' } }));
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests });
      const applied = await runKubectl(tested!, ['apply', '-f', '-'], { kubeconfig: local.kubeconfig, place, stdin });
      expect(applied).toMatchObject({
        exitCode: 0,
        stderr: [
          'Warning: the NetworkPolicy is stored: no node has an agent that enforces it (services.enabled)',
          'Warning: the Ingress is stored: no traffic is routed by it',
          '',
        ].join('\n'),
      });
      await kubectl('delete', 'networkpolicy/inert', 'ingress/inert');

      const service = {
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name: 'v1.example.com' },
        spec: { group: 'example.com', version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 },
      };
      const refused = await runKubectl(tested!, ['create', '-f', '-'], {
        kubeconfig: local.kubeconfig,
        place,
        stdin: JSON.stringify(service),
      });
      expect(refused.stderr).toContain(
        'apiservices.apiregistration.k8s.io can be listed here, not written: no other server is asked',
      );
      const mayCreate = await run('auth', 'can-i', 'create', 'apiservices');
      expect([mayCreate.exitCode, mayCreate.stdout]).toEqual([1, expect.stringMatching(/^no - apiservices/)]);
      expect(await run('auth', 'can-i', 'list', 'apiservices')).toMatchObject({
        exitCode: 0,
        stdout: 'yes\n',
      });

      expect((await run('top', 'pods', '-A')).stderr).toMatch(
        /^Warning: pods are not measured here; kubectl top nodes/,
      );
    });

    it('reports an unknown resource', async () => {
      expect(await run('get', 'widgets')).toMatchObject({
        exitCode: 1,
        stderr: 'error: the server doesn\'t have a resource type "widgets"\n',
      });
    });

    it('registers a machine again after its node was deleted', async () => {
      const before = (await node('edge-c-1')).metadata.uid;
      await kubectl('delete', 'node', 'edge-c-1');
      const after = await until(
        async () => {
          const seen = await node('edge-c-1');
          return readyOf(seen)?.status === 'True' && taintsOf(seen).length === 0 ? seen : undefined;
        },
        { withinMs: 10_000 + SLACK_MS, everyMs: 300, what: 'the machine as a new node' },
      );
      expect(after.metadata.uid).not.toBe(before);
    });

    it('marks a machine that stops sending heartbeats, reports why, and clears it when it recovers', async () => {
      expect(await local.fleet('silence', 'edge-b-0')).toMatchObject({ exitCode: 0, stdout: 'edge-b-0 silent\n' });
      const silencedAtMs = performance.now();
      const marked = await until(
        async () => {
          const seen = await node('edge-b-0');
          return readyOf(seen)?.status === 'Unknown' &&
            taintsOf(seen).includes('node.kubernetes.io/unreachable:NoSchedule')
            ? seen
            : undefined;
        },
        // Below the 35 s in which the default policy marks nothing.
        { withinMs: (GRACE_SECONDS + PERIOD_SECONDS + 15) * 1_000, everyMs: 300, what: 'edge-b-0 marked' },
      );
      // Its last heartbeat was at most one interval before it was silenced.
      expect(performance.now() - silencedAtMs).toBeGreaterThan((GRACE_SECONDS - BEAT_SECONDS - 1) * 1_000);
      expect(readyOf(marked)).toMatchObject({
        reason: 'NodeStatusUnknown',
        message: 'Kubelet stopped posting node status.',
      });
      expect(await kubectl('get', 'node', 'edge-b-0')).toContain('NotReady');
      await until(
        async () =>
          (await kubectl('get', 'events', '--field-selector', 'involvedObject.name=edge-b-0')).includes('NodeNotReady'),
        { withinMs: SLACK_MS, everyMs: 500, what: 'the event NodeNotReady' },
      );
      expect(readyOf(await node('edge-b-1'))?.status).toBe('True');

      expect(await local.fleet('beat', 'edge-b-*')).toMatchObject({ exitCode: 0 });
      await until(
        async () => {
          const seen = await node('edge-b-0');
          return readyOf(seen)?.status === 'True' && taintsOf(seen).length === 0;
        },
        { withinMs: 2 * PERIOD_SECONDS * 1_000 + SLACK_MS, everyMs: 300, what: 'edge-b-0 Ready and clean' },
      );
      await until(
        async () =>
          (await kubectl('get', 'events', '--field-selector', 'involvedObject.name=edge-b-0')).includes('NodeReady '),
        { withinMs: SLACK_MS, everyMs: 500, what: 'the event NodeReady' },
      );
      const decisions = await kubectl('get', 'decisions.nodekeeper.dev', '--field-selector', 'node=edge-b-0');
      expect(decisions).toMatch(/node\/edge-b-0 +MarkUnknown +No heartbeat or status for \d+/);
      expect(decisions.trim().split('\n').at(-1)).toMatch(/TaintLifted +Ready is True/);
    });

    it('taints a node with Ready set to False by hand, until its machine posts its status', async () => {
      // A machine that beats may post its status before a tick has seen the one by hand.
      await local.fleet('silence', 'edge-a-1');
      const conditions = [{ type: 'Ready', status: 'False', reason: 'ByHand', message: 'said by hand' }];
      await kubectl(
        'patch',
        'node',
        'edge-a-1',
        '--subresource=status',
        '-p',
        JSON.stringify({ status: { conditions } }),
      );
      await until(async () => taintsOf(await node('edge-a-1')).includes('node.kubernetes.io/not-ready:NoSchedule'), {
        withinMs: SLACK_MS,
        what: 'the not-ready taint',
      });
      await local.fleet('beat', 'edge-a-1');
      await until(
        async () => {
          const seen = await node('edge-a-1');
          return readyOf(seen)?.status === 'True' && taintsOf(seen).length === 0;
        },
        { withinMs: 15_000 + SLACK_MS, everyMs: 300, what: 'edge-a-1 Ready again' },
      );
    });

    // The controllers are the same in both homes.
    if (home === 'serve') {
      it('shows dark zones and total disruption, and their end', async () => {
        const status = () => kubectl('get', 'clusterstatuses');
        const events = () => kubectl('get', 'events', '--field-selector', 'involvedObject.kind=ClusterStatus');
        expect(await status()).toMatch(/^NAME +GATE +EVICTIONS +LAST-TICK +NODES\ncluster +Open +Allowed +/);
        await local.fleet('silence', 'edge-*');
        await until(async () => /cluster +Open +Held \(no zone has a Ready node\)/.test(await status()), {
          withinMs: (GRACE_SECONDS + PERIOD_SECONDS) * 1_000 + SLACK_MS,
          everyMs: 1_000,
          what: 'total disruption',
        });
        await until(async () => (await events()).includes('TotalDisruption '), { withinMs: SLACK_MS, everyMs: 500 });
        expect(await events()).toMatch(
          /Warning +ZoneDisrupted +clusterstatus\/cluster +Zone \S+ is FullDisruption: 2 of 2 nodes are not ready/,
        );
        await local.fleet('beat', 'edge-*');
        await until(async () => (await events()).includes('TotalDisruptionEnded'), {
          withinMs: 3 * PERIOD_SECONDS * 1_000 + SLACK_MS,
          everyMs: 1_000,
          what: 'the end of total disruption',
        });
        expect(await status()).toMatch(/cluster +Open +Allowed/);
      });
    }

    it('refuses to silence an unknown machine', async () => {
      expect(await local.fleet('silence', 'edge-z-9')).toMatchObject({
        exitCode: 1,
        stdout: '',
        stderr: 'no such machine: edge-z-9\n',
      });
    });
  },
);
